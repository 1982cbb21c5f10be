"""What an upgrade of Kubernetes must leave as it is, read from a cluster under a load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_cluster.api import Cluster
from tests.e2e import loads

NEWEST, PREVIOUS = "1.37", "1.36"
OF_MOORAGE = "app.kubernetes.io/part-of=moorage"


@dataclass(frozen=True)
class Kept:
    """What stays.

    Attributes:
        slices: UIDs of the ResourceSlices; a kubelet that starts deletes those of its node.
        devices: The taints of each device in them.
        keepers: UIDs of the pods that run all the time.
        owner: Queue of the claim that they share, and the allocation of this claim.
        pods: UID and restarts of each pod of Moorage.
        stored: Versions in which objects of Moorage's definitions are stored.
    """

    slices: frozenset[str]
    devices: Mapping[str, str]
    keepers: Mapping[str, str]
    owner: tuple[str, str]
    pods: Mapping[str, tuple[str, int]]
    stored: Mapping[str, list[str]]


def kept(cluster: Cluster) -> Kept:
    """Read it."""
    shared = cluster.get("resourceclaim", "shared", namespace=loads.NAMESPACE) or {}
    pods = cluster.list("pods", namespace=loads.NAMESPACE)
    slices = cluster.list("resourceslices")
    return Kept(
        slices=frozenset(slice_["metadata"]["uid"] for slice_ in slices),
        devices={
            device["name"]: str(device.get("taints"))
            for slice_ in slices
            for device in slice_["spec"].get("devices", ())
        },
        keepers={
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in pods
            if pod["metadata"]["name"].startswith("keeper-")
        },
        owner=(shared["metadata"]["labels"][loads.QUEUE], str(shared["status"]["allocation"])),
        pods=restarts(cluster),
        stored={
            crd["metadata"]["name"]: crd["status"]["storedVersions"]
            for crd in cluster.list("crds")
            if crd["spec"]["group"] in ("akri.sh", "moorage.dev")
        },
    )


def restarts(cluster: Cluster) -> dict[str, tuple[str, int]]:
    """UID of each pod of Moorage, and how often its own containers were started again."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], _restarts(pod))
        for pod in cluster.list("pods", selector=OF_MOORAGE)
        if pod["status"]["phase"] == "Running"
    }


def _restarts(pod: Mapping[str, Any]) -> int:
    """Of Moorage's own containers: kube-scheduler ends when it cannot renew its Lease."""
    containers = pod["status"].get("containerStatuses", ())
    return sum(found["restartCount"] for found in containers if found["name"] != "kube-scheduler")


def versions(cluster: Cluster) -> tuple[str, set[str]]:
    """Minor versions of the API server and of all kubelets, such as `1.37`."""
    with cluster.api() as api:
        server = str(api.get("/version")["gitVersion"])
    nodes = cluster.list("nodes")
    kubelets = {str(node["status"]["nodeInfo"]["kubeletVersion"]) for node in nodes}
    return minor(server), set(map(minor, kubelets))


def minor(version: str) -> str:
    """The `1.37` of `v1.37.2`."""
    return version.removeprefix("v").rpartition(".")[0]

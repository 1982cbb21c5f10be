"""The kubelet of a node, as a story asks it: which containers it gave which devices."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from driver.kubelet_api.podresources.v1 import api_pb2 as v1
from driver.kubelet_api.podresources.v1 import api_pb2_grpc as v1_grpc
from local_cluster.api import Cluster

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
PREFIX = "akri.sh/"
SECONDS = 5.0
LAST_LINES = 15


def devices_given(cluster: Cluster, node: str) -> dict[str, set[str]]:
    """Device ids of `akri.sh/...` by `namespace/pod`, from the kubelet's pod-resources API."""
    with grpc.insecure_channel(f"unix:{cluster.node(node).path(SOCKET)}") as channel:
        answer = v1_grpc.PodResourcesListerStub(channel).List(
            v1.ListPodResourcesRequest(), timeout=SECONDS, wait_for_ready=True
        )
    given: dict[str, set[str]] = {}
    for pod in answer.pod_resources:
        for container in pod.containers:
            for devices in container.devices:
                if devices.resource_name.startswith(PREFIX):
                    key = f"{pod.namespace}/{pod.name}"
                    given.setdefault(key, set()).update(devices.device_ids)
    return given


def numa_nodes(cluster: Cluster, node: str) -> dict[str, set[int]]:
    """Of device ids of `akri.sh/...`, from the same API."""
    with grpc.insecure_channel(f"unix:{cluster.node(node).path(SOCKET)}") as channel:
        answer = v1_grpc.PodResourcesListerStub(channel).GetAllocatableResources(
            v1.AllocatableResourcesRequest(), timeout=SECONDS, wait_for_ready=True
        )
    return {
        device: {numa.ID for numa in devices.topology.nodes}
        for devices in answer.devices
        if devices.resource_name.startswith(PREFIX)
        for device in devices.device_ids
    }


def allocatable(cluster: Cluster, node: str) -> dict[str, int]:
    """What the Node offers of `akri.sh/...`, by name without the prefix."""
    status = cluster.read(f"/api/v1/nodes/{node}")["status"]
    return {
        name.removeprefix(PREFIX): _whole(amount)
        for name, amount in status["allocatable"].items()
        if name.startswith(PREFIX)
    }


def _whole(amount: str) -> int:
    """A whole number as the API writes it: a thousand is 1k."""
    return int(amount.removesuffix("k")) * (1000 if amount.endswith("k") else 1)


def described(cluster: Cluster, node: str) -> Iterator[str]:
    """What says why a node did not do as expected, line by line."""
    yield f"{node} offers {allocatable(cluster, node)}"
    try:
        yield f"{node} gave {devices_given(cluster, node)}"
    except grpc.RpcError as error:
        yield f"{node} does not say what it gave: {error}"
    log = cluster.part(f"kubelet-{node}").log_path
    yield f"the log of the kubelet of {node} ends so:"
    yield from log.read_text(errors="replace").splitlines()[-LAST_LINES:]

"""Namespaces for single tests: made with what pods need at once, removed without leftovers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from local_cluster.cluster import Cluster
from local_cluster.errors import ConditionTimeoutError
from local_cluster.fake_nodes import is_fake

DELETE_SECONDS = 90.0


def name_for(test: str, salt: str) -> str:
    """A DNS label that tells which test it belongs to."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_")).strip("-")
    return f"{words[:44].strip('-')}-{salt}"


def create(cluster: Cluster, name: str) -> None:
    """Returns when the default ServiceAccount exists: pods are refused before."""
    cluster.kubectl("create", "namespace", name)
    if "kube-controller-manager" in cluster.settings.parts:
        cluster.wait_until(
            f"ServiceAccount default in {name}",
            lambda: cluster.get("serviceaccount", "default", namespace=name),
        )


def empty(cluster: Cluster, name: str) -> None:
    """Ends all pods and claims, and waits: the next test finds nodes and devices free."""
    _drop_pods_of_fake_nodes(cluster, name)
    timeout = f"--timeout={DELETE_SECONDS:.0f}s"
    everything = ("delete", "--all", "--namespace", name, timeout)
    workloads = "deployments,daemonsets,replicasets,statefulsets,jobs"
    cluster.kubectl(*everything, workloads, "--cascade=background")
    cluster.kubectl(*everything, "pods", "--grace-period=1")
    if "resource.k8s.io" in cluster.kubectl("api-versions").stdout:
        cluster.kubectl(*everything, "resourceclaims,resourceclaimtemplates")


def delete(cluster: Cluster, name: str) -> None:
    """Does not wait: the namespace controller waits 5 s, and nothing is in there any more."""
    cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def wait_deleted(cluster: Cluster, names: Iterable[str]) -> None:
    """Until none of them is left, finalizers and all."""
    wanted = set(names)

    def left() -> list[str]:
        return sorted(wanted & {item["metadata"]["name"] for item in cluster.list("namespaces")})

    try:
        cluster.wait_until("the namespaces of all tests are gone", lambda: not left())
    except ConditionTimeoutError as error:
        raise ConditionTimeoutError(f"{error}; there still are {', '.join(left())}") from error


def _drop_pods_of_fake_nodes(cluster: Cluster, name: str) -> None:
    """Nobody would ever end them."""
    fake = {node["metadata"]["name"] for node in cluster.list("nodes") if is_fake(node)}
    lost = [
        pod["metadata"]["name"]
        for pod in cluster.list("pods", namespace=name)
        if pod["spec"].get("nodeName") in fake
    ]
    if lost:
        cluster.kubectl("delete", "pod", "-n", name, "--grace-period=0", "--force", *lost)

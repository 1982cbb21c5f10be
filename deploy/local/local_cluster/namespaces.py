"""Namespaces for single tests: made with what pods need at once, removed without leftovers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from local_cluster.cluster import Cluster
from local_cluster.errors import ApiError, ConditionTimeoutError
from local_cluster.fake_nodes import is_fake
from local_cluster.object_reads import NOT_FOUND

DELETE_SECONDS = 90.0
NAMESPACES = "/api/v1/namespaces"
WORKLOADS = ("deployments", "daemonsets", "replicasets", "statefulsets", "jobs")


def name_for(test: str, salt: str) -> str:
    """A DNS label that tells which test it belongs to."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_")).strip("-")
    return f"{words[:44].strip('-')}-{salt}"


def create(cluster: Cluster, name: str) -> None:
    """Returns when the default ServiceAccount exists: pods are refused before.

    A test begins with a whole cluster, whatever died in the one before.
    """
    cluster.revive()
    with cluster.api() as api:
        api.create(NAMESPACES, {"metadata": {"name": name}})
    if "kube-controller-manager" in cluster.settings.parts:
        cluster.wait_until(
            f"ServiceAccount default in {name}",
            lambda: cluster.get("serviceaccount", "default", namespace=name),
        )


def empty(cluster: Cluster, name: str) -> None:
    """Ends all pods and claims, and waits: the next test finds nodes and devices free."""
    _drop_pods_of_fake_nodes(cluster, name)
    _delete_all(cluster, name, WORKLOADS, propagationPolicy="Background")
    _delete_all(cluster, name, ("pods",), gracePeriodSeconds="1")
    _delete_all(cluster, name, ("resourceclaims", "resourceclaimtemplates"))


def _delete_all(cluster: Cluster, namespace: str, kinds: Iterable[str], **options: str) -> None:
    """Delete all that there is of these kinds, and wait until it is gone.

    Of a kind that is not served there is nothing.
    """
    paths = [path for kind in kinds if (path := cluster.path_of(kind, namespace))]
    found = {path: uids for path in paths if (uids := _uids(cluster, path))}
    with cluster.api() as api:
        for path in found:
            api.delete(f"{path}?{urlencode(options)}")
    for path, uids in found.items():
        _wait_gone(cluster, path, uids)


def _wait_gone(cluster: Cluster, path: str, uids: set[str]) -> None:
    cluster.wait_until(
        f"what was deleted of {path} is gone",
        lambda: not uids & _uids(cluster, path),
        seconds=DELETE_SECONDS,
    )


def _uids(cluster: Cluster, path: str) -> set[str]:
    return {item["metadata"]["uid"] for item in cluster.read(path)["items"]}


def delete(cluster: Cluster, name: str) -> None:
    """Does not wait: the namespace controller waits 5 s, and nothing is in there any more."""
    with cluster.api() as api, missing_is_fine():
        api.delete(f"{NAMESPACES}/{name}")


@contextmanager
def missing_is_fine() -> Iterator[None]:
    """Somebody else may have deleted it."""
    try:
        yield
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise


def wait_deleted(cluster: Cluster, names: Iterable[str]) -> None:
    """Until none of them is left, finalizers and all."""
    wanted = set(names)

    def left() -> list[str]:
        return sorted(wanted & {item["metadata"]["name"] for item in cluster.list("namespaces")})

    try:
        cluster.wait_until(
            "the namespaces of all tests are gone", lambda: not left(), seconds=DELETE_SECONDS
        )
    except ConditionTimeoutError as error:
        raise ConditionTimeoutError(f"{error}; there still are {', '.join(left())}") from error


def _drop_pods_of_fake_nodes(cluster: Cluster, name: str) -> None:
    """Nobody would ever end them."""
    fake = {node["metadata"]["name"] for node in cluster.list("nodes") if is_fake(node)}
    path = f"{NAMESPACES}/{name}/pods"
    with cluster.api() as api:
        for pod in cluster.list("pods", namespace=name):
            if pod["spec"].get("nodeName") in fake:
                with missing_is_fine():
                    api.delete(f"{path}/{pod['metadata']['name']}?gracePeriodSeconds=0")

"""Nodes whose kubelets do not answer, or that are gone, for as long as a story wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from local_cluster.api import Cluster


@contextmanager
def stuck(cluster: Cluster, node: str) -> Iterator[None]:
    """The kubelet keeps its connections and answers nothing."""
    kubelet = cluster.part(f"kubelet-{node}")
    kubelet.stop()
    try:
        yield
    finally:
        kubelet.cont()


@contextmanager
def lost(cluster: Cluster, node: str) -> Iterator[None]:
    """The kubelet is dead, and the Node says so at once and not after a while."""
    kubelet = cluster.part(f"kubelet-{node}")
    kubelet.kill()
    try:
        with cluster.api() as api:
            path = f"/api/v1/nodes/{node}"
            conditions = api.get(path)["status"]["conditions"]
            ready = {"type": "Ready", "status": "Unknown", "reason": "Lost", "message": "gone"}
            others = [c for c in conditions if c["type"] != "Ready"]
            now = max(c["lastHeartbeatTime"] for c in conditions)
            told = [*others, {**ready, "lastTransitionTime": now, "lastHeartbeatTime": now}]
            api.patch(f"{path}/status", {"status": {"conditions": told}})
        yield
    finally:
        kubelet.start()


@contextmanager
def shut_down(cluster: Cluster, node: str, *, effect: str = "NoSchedule") -> Iterator[None]:
    """An administrator says that the node is; its pods stay where they are, or are evicted."""
    taint = "node.kubernetes.io/out-of-service"
    cluster.kubectl("taint", "node", node, f"{taint}=shutdown:{effect}")
    try:
        yield
    finally:
        cluster.kubectl("taint", "node", node, f"{taint}-")

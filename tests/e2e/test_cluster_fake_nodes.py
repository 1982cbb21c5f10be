"""Fake nodes look alive to the cluster, though no machine is behind them."""

from __future__ import annotations

from local_cluster.api import Cluster
from local_cluster.fake_nodes import TAINT, is_fake
from tests.e2e.test_cluster_pods import a_pod

FAKE_NODES = 20


def test_fake_nodes_take_pods_and_go_without_leftovers(cluster: Cluster, namespace: str) -> None:
    toleration = {"key": TAINT["key"], "operator": "Exists"}
    there = a_pod("there", "sh", tolerations=[toleration])
    there["spec"]["nodeSelector"] = {"moorage.test/node": "fake"}
    elsewhere = a_pod("elsewhere", "sleep", "1000")

    cluster.add_fake_nodes(FAKE_NODES)
    try:
        cluster.apply([there, elsewhere], namespace=namespace)
        cluster.wait("pod/there", "condition=PodScheduled", namespace=namespace)
        cluster.wait("pod/elsewhere", "condition=Ready", namespace=namespace)
        assert sum(is_fake(node) for node in cluster.list("nodes")) == FAKE_NODES
        assert cluster.part("fake-nodes").is_healthy
        cluster.kubectl("delete", "pod", "there", "-n", namespace, "--force", "--grace-period=0")
    finally:
        cluster.remove_fake_nodes()

    assert not any(is_fake(node) for node in cluster.list("nodes"))
    assert "fake-nodes" not in cluster.parts

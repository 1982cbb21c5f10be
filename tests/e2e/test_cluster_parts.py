"""Parts of the local cluster are restarted, killed and stopped one by one."""

from __future__ import annotations

import os
import signal

import pytest

from local_cluster import namespaces
from local_cluster.api import ApiError, Cluster
from tests.e2e.test_cluster_pods import a_pod


def restarts_of(cluster: Cluster, namespace: str, name: str) -> int:
    pod = cluster.get("pod", name, namespace=namespace)
    assert pod is not None
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


@pytest.mark.parametrize("part", ["kubelet-node-a", "containerd-node-a"])
def test_containers_survive_the_death_of_a_node_part(
    cluster: Cluster, namespace: str, part: str
) -> None:
    cluster.apply(a_pod("survivor", "sleep", "1000", nodeName="node-a"), namespace=namespace)
    cluster.wait("pod/survivor", "condition=Ready", namespace=namespace)
    before = cluster.part(part).pid

    cluster.part(part).kill()
    assert cluster.part(part).pid is None
    cluster.part(part).start()

    assert cluster.part(part).pid not in (None, before)
    cluster.wait("node/node-a", "condition=Ready")
    # The kubelet is healthy before it has heard of its pods again.
    command = ("exec", "-n", namespace, "survivor", "--", "true")
    cluster.wait_until("exec works", lambda: not cluster.kubectl(*command, check=False).returncode)
    assert restarts_of(cluster, namespace, "survivor") == 0


def test_objects_survive_the_death_of_etcd_and_the_api_server(apiserver: Cluster) -> None:
    apiserver.kubectl("create", "configmap", "survivor")

    apiserver.part("kube-apiserver").kill()
    apiserver.part("etcd").kill()
    apiserver.part("etcd").start()
    apiserver.part("kube-apiserver").start()

    assert apiserver.get("configmap", "survivor", namespace="default") is not None


def test_stopped_part_lives_but_is_not_healthy(apiserver: Cluster) -> None:
    part = apiserver.part("kube-apiserver")
    before = part.pid

    part.stop()
    assert not part.is_healthy
    part.cont()

    assert part.is_healthy
    assert part.pid == before


def test_a_part_that_died_by_itself_runs_again_for_the_next_test(apiserver: Cluster) -> None:
    part = apiserver.part("kube-apiserver")
    assert part.pid is not None
    os.kill(part.pid, signal.SIGKILL)
    apiserver.wait_until("it is dead", lambda: part.pid is None)

    namespaces.create(apiserver, "after-a-death")

    assert part.is_healthy
    namespaces.delete(apiserver, "after-a-death")


def test_up_starts_again_what_died(apiserver: Cluster) -> None:
    apiserver.part("kube-apiserver").kill()

    apiserver.reconfigure()

    assert apiserver.part("kube-apiserver").is_healthy


def test_up_of_a_healthy_cluster_changes_nothing(apiserver: Cluster) -> None:
    before = {name: apiserver.part(name).pid for name in apiserver.parts}

    apiserver.reconfigure()

    assert {name: apiserver.part(name).pid for name in apiserver.parts} == before


def test_changed_flags_restart_the_api_server_only(apiserver: Cluster) -> None:
    etcd, server = (apiserver.part(name).pid for name in ("etcd", "kube-apiserver"))

    with apiserver.reconfigured(apiserver_flags={"max-requests-inflight": "401"}):
        during = apiserver.part("kube-apiserver").pid

    assert apiserver.part("etcd").pid == etcd
    assert during != server


def test_api_errors_carry_status_and_reason(apiserver: Cluster) -> None:
    with apiserver.api() as api, pytest.raises(ApiError) as caught:
        api.get("/api/v1/namespaces/nowhere")

    assert (caught.value.status, caught.value.reason) == (404, "NotFound")

"""The local cluster runs pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local_cluster.api import BUSYBOX_IMAGE, Cluster


def a_pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": BUSYBOX_IMAGE, "command": list(command)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


@pytest.mark.parametrize("scheduler", ["default-scheduler", "moorage"])
def test_cluster_schedules_pods_with_either_scheduler(
    cluster: Cluster, namespace: str, scheduler: str
) -> None:
    for node in ("node-a", "node-b"):
        pod = a_pod(f"on-{node}", "sleep", "1000", schedulerName=scheduler)
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        cluster.apply(pod, namespace=namespace)

    cluster.wait("pod/on-node-a", "condition=Ready", namespace=namespace)
    cluster.wait("pod/on-node-b", "condition=Ready", namespace=namespace)


def test_cluster_serves_logs_and_exec(cluster: Cluster, namespace: str) -> None:
    pod = a_pod("talker", "sh", "-c", "echo spoken; sleep 1000")
    cluster.apply(pod, namespace=namespace)
    cluster.wait("pod/talker", "condition=Ready", namespace=namespace)

    talker = ("-n", namespace, "talker")
    logs = cluster.wait_until("it has spoken", lambda: cluster.kubectl("logs", *talker).stdout)
    answer = cluster.kubectl("exec", *talker, "--", "echo", "heard").stdout

    assert (logs, answer) == ("spoken\n", "heard\n")


def test_pods_reach_each_other_through_services(cluster: Cluster, namespace: str) -> None:
    script = "echo served > /tmp/index.html; httpd -f -p 80 -h /tmp"
    server = a_pod("server", "sh", "-c", script, nodeName="node-a")
    server["metadata"]["labels"] = {"app": "server"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 8080, "targetPort": 80}]},
    }
    cluster.apply([server, service], namespace=namespace)
    cluster.wait("pod/server", "condition=Ready", namespace=namespace)
    found = cluster.get("service", "server", namespace=namespace)
    assert found is not None
    url = f"http://{found['spec']['clusterIP']}:8080/"

    # The first answers may come before kube-proxy knows the endpoint, so the client asks again.
    script = f"until wget -q -O - {url}; do sleep 0.2; done"
    client = a_pod("client", "sh", "-c", script, nodeName="node-b", restartPolicy="Never")
    cluster.apply(client, namespace=namespace)
    cluster.wait("pod/client", "jsonpath={.status.phase}=Succeeded", namespace=namespace)

    assert cluster.kubectl("logs", "-n", namespace, "client").stdout == "served\n"


def test_pods_reach_the_api_server(cluster: Cluster, namespace: str) -> None:
    # Busybox speaks no TLS that the server accepts; that it complains shows that it is there.
    urls = ("http://10.96.0.1:443/", f"http://{cluster.address}:6443/")
    checks = " && ".join(f"wget -O - {url} 2>&1 | grep 400" for url in urls)
    pod = a_pod("caller", "sh", "-c", checks, restartPolicy="Never")

    cluster.apply(pod, namespace=namespace)

    cluster.wait("pod/caller", "jsonpath={.status.phase}=Succeeded", namespace=namespace)


def test_node_keeps_its_state_folders_to_itself(cluster: Cluster) -> None:
    node, other = cluster.nodes

    node.exec(["mkdir", "-p", "/var/lib/only-here", "/etc/cdi/only-here", "/run/only-here"])

    for path in ("/var/lib/only-here", "/etc/cdi/only-here", "/run/only-here"):
        assert node.path(path).is_dir()
        assert not other.path(path).exists()
        assert not Path(path).exists()


def test_process_on_a_node_ends_with_its_popen(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    with node.popen(["sleep", "98765"]) as process:
        cluster.wait_until("sleep runs", lambda: "98765" in node.exec(["ps", "ax"]).stdout)
        process.kill()

    cluster.wait_until("sleep is gone", lambda: "98765" not in node.exec(["ps", "ax"]).stdout)


def test_collection_holds_logs_events_and_pods(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    cluster.apply(a_pod("refused", "sh", nodeSelector={"no": "node"}), namespace=namespace)
    cluster.wait_until(
        "the scheduler says no",
        lambda: cluster.list("events", namespace=namespace),
    )

    cluster.collect(tmp_path)

    assert "FailedScheduling" in (tmp_path / "events.txt").read_text()
    assert "refused" in (tmp_path / "pods-described.txt").read_text()
    assert (tmp_path / "kubelet-node-a.log").stat().st_size > 0
    assert (tmp_path / "audit.log").stat().st_size > 0

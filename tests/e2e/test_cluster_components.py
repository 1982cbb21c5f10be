"""Components run as processes or as pods, under the same verbs and the same identity."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from local_cluster.api import Cluster, Component, ComponentHandle, HttpReady, Mode, Workload

SCRIPT = """
trap 'exit 0' TERM
echo started on $NODE_NAME
mkdir -p /tmp/served && touch /tmp/served/readyz
busybox httpd -f -p 8099 -h /tmp/served &
wait
"""


@pytest.fixture(params=list(Mode))
def component(
    cluster: Cluster, namespace: str, request: pytest.FixtureRequest
) -> Iterator[ComponentHandle]:
    described = Component(
        name="server",
        argv=("sh", "-c", SCRIPT),
        namespace=namespace,
        service_account="server",
        manifests=(
            '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "server"}}',
        ),
        node="node-b",
        ready=HttpReady(8099),
        workload=Workload.DAEMON_SET,
    )
    handle = cluster.start_component(described, request.param)
    yield handle
    handle.stop()


def test_component_comes_back_after_kill_and_stop(component: ComponentHandle) -> None:
    component.wait_ready()
    component.kill()
    component.wait_ready()
    component.stop()
    component.start()
    component.wait_ready()

    assert "started on node-b" in component.logs()


def test_process_has_the_identity_that_its_pod_would_have(cluster: Cluster, namespace: str) -> None:
    kubeconfig = cluster.service_account_kubeconfig("driver", namespace=namespace, node="node-a")

    done = cluster.kubectl("--kubeconfig", str(kubeconfig), "auth", "whoami", "-o", "json")

    user = json.loads(done.stdout)["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{namespace}:driver"
    assert user["extra"]["authentication.kubernetes.io/node-name"] == ["node-a"]

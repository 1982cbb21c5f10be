"""Local clusters come and go without a trace, several side by side."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings, Profile
from local_cluster.layout import layout_of
from local_cluster.lifecycle import down
from local_cluster.linux_traces import traces_of
from tests.e2e.test_cluster_pods import a_pod

DEPLOY_LOCAL = Path(__file__).resolve().parents[2] / "deploy" / "local"


@pytest.fixture
def work_dir(tmp_path: Path) -> Iterator[Path]:
    """A folder whose cluster is taken down even when the test fails."""
    folder = tmp_path / "cluster"
    yield folder
    down(folder, purge=True)


def run_a_pod(cluster: Cluster, name: str, namespace: str = "default") -> None:
    cluster.wait_until(
        "the default ServiceAccount is there",
        lambda: cluster.get("serviceaccount", "default", namespace=namespace),
    )
    cluster.apply(a_pod(name, "sleep", "1000"), namespace=namespace)
    cluster.wait(f"pod/{name}", "condition=Ready", namespace=namespace)


def test_second_cluster_runs_beside_the_first_and_leaves_nothing(
    cluster: Cluster, namespace: str, work_dir: Path
) -> None:
    other = Cluster.up(ClusterSettings(work_dir=work_dir, nodes=1, udevd=True))
    run_a_pod(other, "there")
    run_a_pod(cluster, "here", namespace)
    assert other.server != cluster.server
    assert other.get("namespace", namespace) is None
    assert other.part("udevd").is_healthy
    assert traces_of(layout_of(work_dir))

    other.down()

    assert traces_of(layout_of(work_dir)) == ()
    assert sorted(path.name for path in work_dir.iterdir()) == ["lock", "logs"]
    cluster.kubectl("exec", "-n", namespace, "here", "--", "true")


def test_down_finds_what_a_killed_up_had_started(work_dir: Path) -> None:
    layout = layout_of(work_dir)
    command = [sys.executable, "-m", "local_cluster", "--dir", str(work_dir), "up", "--nodes", "1"]
    env = {**os.environ, "PYTHONPATH": str(DEPLOY_LOCAL)}
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as up:
        while not layout.log("kube-scheduler").exists():
            assert up.poll() is None
        up.send_signal(signal.SIGKILL)
    assert traces_of(layout)

    down(work_dir)

    assert traces_of(layout) == ()
    down(work_dir)


def test_cluster_of_1_33_runs_pods_and_has_no_dra(work_dir: Path) -> None:
    old = Cluster.up(ClusterSettings(work_dir=work_dir, nodes=1, kubernetes="1.33"))

    run_a_pod(old, "old")

    assert "resource.k8s.io" not in old.kubectl("api-versions").stdout


def test_profile_of_1_34_drops_the_fields_that_1_34_drops(
    apiserver: Cluster, work_dir: Path
) -> None:
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "camera"},
        "spec": {"extendedResourceName": "akri.sh/camera"},
    }
    settings = ClusterSettings(
        work_dir=work_dir, nodes=0, parts=CONTROL_PLANE, profile=Profile.DRA_1_34
    )
    clusters = {"1.34": Cluster.up(settings), "1.37": apiserver}
    kept = {}

    for version, cluster in clusters.items():
        cluster.apply(device_class)
        found = cluster.get("deviceclass", "camera")
        assert found is not None
        kept[version] = "extendedResourceName" in found["spec"]

    assert kept == {"1.34": False, "1.37": True}

"""What `moorage-scheduler-plugin leave` takes back, on the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from scheduler_plugin.leave_main import run_leave
from scheduler_plugin.settings import LeaveSettings
from tests.deploy.documents import CRDS
from tests.e2e import rights
from tests.e2e.charts import SYSTEM, named, render

RIGHTS = (("ClusterRole", "moorage-leave"), ("ClusterRoleBinding", "moorage-leave"))
CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {}}


def slice_of(driver: str) -> dict[str, Any]:
    pool = {"name": "shared/c", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": driver},
        "spec": {"driver": driver, "pool": pool, "allNodes": True, "devices": [{"name": "d"}]},
    }


OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "charged", "finalizers": ["moorage.dev/charges", "x.dev/other"]},
        "spec": {},
    },
    {
        "apiVersion": "akri.sh/v0",
        "kind": "Instance",
        "metadata": {
            "name": "camera-0a1b2c",
            "namespace": "default",
            "finalizers": ["moorage.dev/slots"],
        },
        "spec": {
            "configurationName": "camera",
            "cdiName": "akri.sh/camera=0a1b2c",
            "capacity": 1,
            "shared": True,
        },
    },
    {**CLASS, "metadata": {"name": "camera", "labels": {"moorage.dev/configuration": "camera"}}},
    {**CLASS, "metadata": {"name": "gpu"}},
    slice_of("moorage.dev"),
    slice_of("other.dev"),
]


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Cluster]:
    """An API server of its own, with what an installation leaves: what leaves it looks at all."""
    settings = ClusterSettings(work_dir=tmp_path / "cluster", nodes=0, parts=CONTROL_PLANE)
    cluster = Cluster.up(settings)
    try:
        cluster.kubectl("apply", "-f", str(CRDS))
        cluster.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=30s")
        cluster.apply(OBJECTS)
        yield cluster
        rights.note(cluster.logs)
    finally:
        cluster.down()


def leave(cluster: Cluster, *, purge: bool) -> None:
    """With the rights that the chart gives it for that."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    hooks = render({"uninstall": {"purge": purge}})
    cluster.apply([named(hooks, kind, name) for kind, name in RIGHTS])
    kubeconfig = cluster.service_account_kubeconfig("leave", namespace=SYSTEM)
    settings = LeaveSettings(kubeconfig=kubeconfig, log_level="INFO", purge=purge)
    asyncio.run(run_leave(settings))


def names(cluster: Cluster, kind: str) -> list[str]:
    return [o["metadata"]["name"] for o in cluster.list(kind)]


def test_nothing_of_ours_blocks_and_nothing_of_others_goes(left: Cluster) -> None:
    for _ in range(2):
        leave(left, purge=False)

        (queue,), (instance,) = left.list("queues"), left.list("akrii")
        assert queue["metadata"]["finalizers"] == ["x.dev/other"]
        assert "finalizers" not in instance["metadata"]
        assert names(left, "deviceclasses") == ["gpu"]
        assert names(left, "resourceslices") == ["other.dev"]


def test_a_purge_takes_the_definitions_along(left: Cluster) -> None:
    leave(left, purge=True)

    # Somebody else's finalizer is still on a Queue.
    left.wait_until("all others are gone", lambda: names(left, "crds") == ["queues.moorage.dev"])
    assert all("deletionTimestamp" in o["metadata"] for o in left.list("crds"))

"""Kubernetes is upgraded beneath Moorage and the pods that use its devices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from local_cluster.api import Cluster
from moorage_demo.disks import plugged_disk
from moorage_demo.release import install_release
from tests.e2e import loads
from tests.e2e.charts import SYSTEM, bare_cluster
from tests.e2e.loads import under_load
from tests.e2e.previous.kept import NEWEST, PREVIOUS, kept, restarts, versions

DISK = "disk"
OLD_KUBELET = "1.33"
GROUPS = "scheduling.k8s.io"
WITHOUT = ("DRAConsumableCapacity", "DRADeviceTaints", "DRAExtendedResource")
"""Feature gates whose fields decide how the driver offers devices."""

PROBED_SECONDS = 420.0
"""Some readings of the API server's version, 45 seconds each, a restart, and a look at a kubelet,
which is every five minutes."""


@contextmanager
def moorage_on(kubernetes: str, **changes: Any) -> Iterator[Cluster]:
    """A cluster of this version with the chart installed, and settings other than the default."""
    with bare_cluster("upgraded-kubernetes", kubernetes, nodes=2, images=False) as cluster:
        if changes:
            cluster.reconfigure(**changes)
        install_release(cluster)
        yield cluster


def test_control_plane_and_kubelets_are_upgraded_beneath_running_pods(tmp_path: Path) -> None:
    with moorage_on(PREVIOUS) as cluster, under_load(cluster, claims=True) as load:
        load.goes_on()
        a_disk_goes_offline(cluster, tmp_path)
        before = kept(cluster)
        assert "offline" in str(before.devices)
        assert {count for _, count in before.pods.values()} == {0}

        load.api_restarts(lambda: cluster.reconfigure(kubernetes=NEWEST, kubelets=PREVIOUS))

        assert versions(cluster) == (NEWEST, {PREVIOUS})
        load.goes_on(10)
        assert kept(cluster) == before

        cluster.reconfigure(kubelets=None)

        cluster.wait_until(
            "the kubelets say their version", lambda: versions(cluster) == (NEWEST, {NEWEST})
        )
        load.goes_on(10)
        now = kept(cluster)
        assert now == replace(before, slices=now.slices)
        assert (load.seen.wrong, load.seen.refused) == (set(), [])


def a_disk_goes_offline(cluster: Cluster, folder: Path) -> None:
    """Its device stays in the slice with a taint, since its grace period is an hour."""
    rule = f'SUBSYSTEM=="block", ATTR{{loop/backing_file}}=="{folder}/*"'
    cluster.apply(configuration(DISK, "udev", {"udevRules": [rule]}, offlineGracePeriod="1h"))
    with plugged_disk(folder, "goes"):
        cluster.wait_until("it is published", lambda: devices_of(cluster, DISK))
    cluster.wait_until(
        "its taints are written",
        lambda: all("taints" in device for device in devices_of(cluster, DISK)),
    )


def test_drivers_take_the_path_that_an_upgraded_api_server_allows() -> None:
    gates = dict.fromkeys(WITHOUT, False)
    with moorage_on(PREVIOUS, feature_gates=gates) as cluster:
        a_local_device(cluster, capacity=2)
        start(cluster, "first")
        before = restarts(cluster)
        assert claims(cluster) == []

        cluster.reconfigure(kubernetes=NEWEST, feature_gates={})

        cluster.wait_until(
            "devices are offered through DRA", lambda: is_dra(cluster), seconds=PROBED_SECONDS
        )
        started_again = started_since(cluster, before)
        assert all("driver" in name for name in started_again)
        assert len([name for name in started_again if "node" in name]) == len(cluster.nodes)
        start(cluster, "second")
        assert len(claims(cluster)) == 1
        assert runs(cluster, "first")


def test_an_old_kubelet_beside_a_new_api_server_gets_devices_of_the_device_plugin() -> None:
    with moorage_on(PREVIOUS, kubelets=OLD_KUBELET) as cluster:
        a_local_device(cluster, capacity=2)
        start(cluster, "first")
        assert "the kubelet is older than 1.36" in logs_of_drivers(cluster)
        assert claims(cluster) == []

        cluster.reconfigure(kubelets=None)

        cluster.wait_until(
            "devices are offered through DRA", lambda: is_dra(cluster), seconds=PROBED_SECONDS
        )
        assert runs(cluster, "first")
        start(cluster, "second")
        assert len(claims(cluster)) == 1


def test_podgroups_are_followed_to_the_version_that_an_upgraded_api_server_serves() -> None:
    alpha, beta = f"{GROUPS}/v1alpha2", f"{GROUPS}/v1beta1"
    settings = {"feature_gates": {"GenericWorkload": True}, "runtime_config": {alpha: "true"}}
    with moorage_on(PREVIOUS, **settings) as cluster:
        a_local_device(cluster, capacity=2)
        a_group_is_incomplete(cluster, "before", alpha)
        before = restarts(cluster)

        cluster.reconfigure(kubernetes=NEWEST, runtime_config={beta: "true"})

        a_group_is_incomplete(cluster, "after", beta, seconds=PROBED_SECONDS)
        cluster.wait_until(
            "the plugin was started again",
            lambda: any("scheduler" in name for name in started_since(cluster, before)),
        )


def a_group_is_incomplete(
    cluster: Cluster, name: str, version: str, seconds: float = 120.0
) -> None:
    """One of two pods waits for the other, as a PodGroup says. Pod and group go then."""
    cluster.wait_until("it is taken", lambda: a_group_is_applied(cluster, name, version))
    pod = loads.pod(name, loads.QUEUES[0], ["sleep", "100000"], resource=True)
    pod["spec"]["schedulingGroup"] = {"podGroupName": name}
    cluster.wait_until("the pod is taken", lambda: is_applied(cluster, pod))
    cluster.wait_until(
        "it waits for its group",
        lambda: (
            "PodGroupIncomplete" in json.dumps(cluster.get("pod", name, namespace=loads.NAMESPACE))
        ),
        seconds=seconds,
    )
    for kind in ("pod", "podgroup"):
        cluster.kubectl("delete", kind, name, "--namespace", loads.NAMESPACE)


def started_since(cluster: Cluster, before: Mapping[str, tuple[str, int]]) -> set[str]:
    """The pods of Moorage whose own containers were started again."""
    return {name for name, (_, count) in restarts(cluster).items() if count > before[name][1]}


def a_group_is_applied(cluster: Cluster, name: str, version: str) -> bool:
    group = {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": loads.NAMESPACE},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    return is_applied(cluster, group)


def a_local_device(cluster: Cluster, *, capacity: int) -> None:
    """One that each node has for itself, and the queue and namespace of its users."""
    rule = 'DEVPATH=="/devices/virtual/misc/loop-control"'
    found = configuration("echo", "udev", {"udevRules": [rule]}, capacity=capacity)
    cluster.apply([*loads.settings()[1:], found])


def configuration(name: str, handler: str, details: Any, **spec: Any) -> dict[str, Any]:
    """A Configuration in the default namespace."""
    asked = {"name": handler, "discoveryDetails": json.dumps(details)}
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"discoveryHandler": asked, **spec},
    }


def start(cluster: Cluster, name: str) -> None:
    """A pod that asks for the resource, whatever offers it."""
    cluster.wait_until("it is taken", lambda: applied(cluster, name))
    pod = f"pod/{name}"
    cluster.wait(pod, "condition=Ready", namespace=loads.NAMESPACE, seconds=120)


def applied(cluster: Cluster, name: str) -> bool:
    return is_applied(cluster, loads.pod(name, loads.QUEUES[0], ["sleep", "100000"], resource=True))


def is_applied(cluster: Cluster, found: dict[str, Any]) -> bool:
    text = json.dumps(found)
    return cluster.kubectl("apply", "-f", "-", stdin=text, check=False).returncode == 0


def runs(cluster: Cluster, name: str) -> bool:
    pod = cluster.get("pod", name, namespace=loads.NAMESPACE) or {}
    (container,) = pod["status"]["containerStatuses"]
    return bool(container["ready"] and not container["restartCount"])


def devices_of(cluster: Cluster, configuration_name: str) -> list[dict[str, Any]]:
    return [
        device
        for slice_ in cluster.list("resourceslices")
        for device in slice_["spec"].get("devices", ())
        if device["name"].startswith(f"{configuration_name}-")
    ]


def is_dra(cluster: Cluster) -> bool:
    """Whether each node offers the device in a slice, and none of it by its device plugin."""
    nodes = cluster.list("nodes")
    slots = {node["status"]["allocatable"].get("akri.sh/echo", "0") for node in nodes}
    return slots == {"0"} and len(devices_of(cluster, "echo")) == len(nodes)


def claims(cluster: Cluster) -> list[dict[str, Any]]:
    return cluster.list("resourceclaims", namespace=loads.NAMESPACE)


def logs_of_drivers(cluster: Cluster) -> str:
    selector = "--selector=app.kubernetes.io/name=moorage-driver"
    options = ("--tail=-1", "--prefix", "--all-containers", "--namespace", SYSTEM)
    return cluster.kubectl("logs", selector, *options).stdout

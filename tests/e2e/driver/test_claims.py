"""A claim's life: allocated, prepared, read, unprepared."""

from __future__ import annotations

from typing import Any

from local_cluster.api import Cluster
from tests.e2e.driver.stories import Story


def test_a_container_reads_the_device_of_its_claim(story: Story) -> None:
    disk = story.plug("hello from the disk")
    story.configure(brokerProperties={"UDEV_FLOOR": "2"})
    story.claim()
    story.pod()

    story.wait_running()

    node = story.pod_node()
    (instance,) = story.until(
        "its Instance is there",
        lambda: [i for i in story.instances() if i["spec"]["nodes"] == [node]],
    )
    digest = instance["metadata"]["name"].rpartition("-")[2].upper()
    assert story.read().splitlines() == [
        f"UDEV_DEVNODE=/dev/{disk.name}",
        f"UDEV_DEVNODE_{digest}=/dev/{disk.name}",
        f"UDEV_DEVPATH=/devices/virtual/block/{disk.name}",
        f"UDEV_DEVPATH_{digest}=/devices/virtual/block/{disk.name}",
        "UDEV_FLOOR=2",
        f"UDEV_FLOOR_{digest}=2",
        "hello from the disk",
    ]


def test_a_deleted_pod_leaves_nothing_behind_on_its_node(story: Story) -> None:
    story.plug()
    story.configure()
    story.claim()
    story.pod()
    story.wait_running()
    node, uid = story.pod_node(), story.claim_uid()
    assert len(story.cdi_files(uid, node)) == 1

    story.delete("pod", "reader")

    story.wait_unprepared(uid, node)


def test_two_pods_on_two_nodes_each_read_a_disk(story: Story) -> None:
    story.plug("one disk, seen from both nodes")
    story.configure()
    for node in ("node-a", "node-b"):
        story.claim(f"disk-of-{node}")
        story.pod(f"on-{node}", claim=f"disk-of-{node}", node=node)

    for node in ("node-a", "node-b"):
        story.wait_running(f"on-{node}")

    readers = [f"on-{node}" for node in ("node-a", "node-b")]
    assert [story.read(pod).splitlines()[-1] for pod in readers] == [
        "one disk, seen from both nodes"
    ] * 2


def test_pods_that_share_a_claim_share_its_device(story: Story) -> None:
    story.plug("shared")
    story.configure()
    story.claim()
    story.pod("first")
    story.wait_running("first")
    story.pod("second")

    story.wait_running("second")

    assert story.read("second") == story.read("first")
    node, uid = story.pod_node("first"), story.claim_uid()
    story.delete("pod", "first")
    assert len(story.cdi_files(uid, node)) == 1
    story.delete("pod", "second")
    story.wait_unprepared(uid, node)


def test_an_exclusive_device_is_given_to_one_claim_at_a_time(story: Story) -> None:
    story.plug()
    story.configure()
    for number in ("1", "2"):
        story.claim(f"disk-{number}")
        story.pod(f"reader-{number}", claim=f"disk-{number}", node="node-a")
    running = story.until("one of the two runs", lambda: _running(story))
    (waiting,) = {"reader-1", "reader-2"} - {running}

    story.delete("pod", running)

    story.wait_running(waiting)


def _running(story: Story) -> str | None:
    pods = story.cluster.list("pods", namespace=story.namespace)
    running = [p["metadata"]["name"] for p in pods if p["status"]["phase"] == "Running"]
    assert len(running) < 2
    return running[0] if running else None


def test_a_device_with_slots_serves_as_many_claims_and_no_more(story: Story) -> None:
    story.plug("slots")
    story.configure(capacity=2)
    for number in ("1", "2"):
        story.claim(f"disk-{number}")
        story.pod(f"reader-{number}", claim=f"disk-{number}", node="node-a")
        story.wait_running(f"reader-{number}")
    (device,) = story.devices("node-a")
    assert device["capacity"]["slots"]["value"] == "2"

    story.claim("disk-3")
    story.pod("reader-3", claim="disk-3", node="node-a")

    story.cluster.wait(
        "pod/reader-3",
        "condition=PodScheduled=False",
        namespace=story.namespace,
    )
    assert "allocation" not in story.get("resourceclaim", "disk-3").get("status", {})


def test_a_device_with_slots_goes_to_nobody_else_when_its_capacity_falls_to_1(story: Story) -> None:
    story.plug("mine alone now")
    story.configure(capacity=2)
    for number in ("1", "2"):
        story.claim(f"disk-{number}")
    story.pod("reader-1", claim="disk-1", node="node-a")
    story.wait_running("reader-1")
    story.configure(capacity=1)
    story.until(
        "the device has one slot",
        lambda: [d for d in story.devices("node-a") if _slots(d) == "1"],
    )

    story.pod("reader-2", claim="disk-2", node="node-a")

    story.cluster.wait("pod/reader-2", "condition=PodScheduled=False", namespace=story.namespace)
    story.delete("pod", "reader-1")
    story.wait_running("reader-2")


def _slots(device: dict[str, Any]) -> str:
    return str(device.get("capacity", {}).get("slots", {}).get("value", ""))


def test_a_pod_written_for_the_device_plugin_runs_unchanged(story: Story) -> None:
    story.plug("as before")
    story.configure()
    limits = {f"akri.sh/{story.name}": "1"}
    story.pod(container={"resources": {"limits": limits}}, spec={"resourceClaims": None})

    story.wait_running()

    assert story.read().splitlines()[-1] == "as before"


def test_a_broken_configuration_says_where_and_the_others_go_on(
    story: Story, cluster: Cluster
) -> None:
    story.plug()
    story.configure("broken", rule="KERNEL=x", capacity=0)

    accepted = story.until("the condition is there", lambda: story.condition("broken"))

    assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
    assert "spec.capacity: " in accepted["message"]
    assert "spec.discoveryHandler.discoveryDetails.udevRules[0]: " in accepted["message"]
    story.configure()
    story.wait_devices(1)
    assert cluster.get("deviceclass", "broken") is None


def test_a_configuration_that_is_repaired_is_discovered(story: Story) -> None:
    story.plug()
    story.configure(rule="KERNEL=x")
    story.until(
        "it is refused", lambda: (story.condition(story.name) or {}).get("status") == "False"
    )

    story.configure()

    story.wait_devices(1)
    story.until(
        "it is accepted", lambda: (story.condition(story.name) or {}).get("status") == "True"
    )


def test_a_class_that_moorage_did_not_make_is_left_alone(story: Story, cluster: Cluster) -> None:
    foreign: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": story.name},
        "spec": {"selectors": [{"cel": {"expression": "false"}}]},
    }
    cluster.apply(foreign)
    try:
        story.configure()

        story.until("the condition is there", lambda: story.condition(story.name, "NameTaken"))
        left = cluster.get("deviceclass", story.name)
        assert left is not None
        assert left["spec"]["selectors"] == foreign["spec"]["selectors"]
    finally:
        cluster.kubectl("delete", "deviceclass", story.name)


def test_a_deleted_configuration_takes_its_class_devices_and_instances_along(
    story: Story, cluster: Cluster
) -> None:
    story.plug()
    story.configure()
    story.wait_devices(1)
    story.until("the class is there", lambda: cluster.get("deviceclass", story.name))

    story.delete("akric", story.name)

    story.until("the class is gone", lambda: cluster.get("deviceclass", story.name) is None)
    story.until("the devices are gone", lambda: not story.devices())
    story.until("the Instances are gone", lambda: not story.instances())

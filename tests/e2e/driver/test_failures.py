"""Processes die at bad moments, and devices are pulled: nothing that was granted is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from local_cluster.api import BUSYBOX_IMAGE, Cluster
from tests.e2e.driver.installation import node_driver, shared_driver
from tests.e2e.driver.stories import Story

OFFLINE = "moorage.dev/offline"


def test_a_driver_killed_between_prepare_and_start_does_not_keep_the_pod_from_starting(
    story: Story,
) -> None:
    story.plug("still here")
    story.configure()
    story.claim()
    story.pod(node="node-a", container={"image": f"moorage.test/{story.name}:late"})
    uid = story.until("the claim is there", lambda: story.claim_uid())
    story.until("the claim is prepared", lambda: story.cdi_files(uid, "node-a"))

    story.drivers.nodes["node-a"].kill()
    story.cluster.tag_image(BUSYBOX_IMAGE, f"moorage.test/{story.name}:late")

    story.wait_running()
    assert story.read().splitlines()[-1] == "still here"
    story.drivers.nodes["node-a"].wait_ready()
    story.delete("pod", "reader")
    story.wait_unprepared(uid, "node-a")


def test_a_restarted_kubelet_leaves_the_container_untouched(story: Story, cluster: Cluster) -> None:
    story.plug("untouched")
    story.configure()
    story.claim()
    story.pod(node="node-a")
    story.wait_running()
    before = story.container()

    cluster.part("kubelet-node-a").restart()

    story.wait_devices(1)
    cluster.wait("node/node-a", "condition=Ready")
    uid = story.claim_uid()
    assert story.container() == before
    assert len(story.cdi_files(uid, "node-a")) == 1
    story.delete("pod", "reader")
    story.wait_unprepared(uid, "node-a")


def test_an_unplugged_device_is_no_longer_published(story: Story) -> None:
    disks = [story.plug(), story.plug()]
    story.configure()
    story.wait_devices(2)

    story.unplug(disks[0])

    (device,) = story.wait_devices(1)
    assert device["attributes"]["UDEV_DEVNODE"]["string"] == f"/dev/{disks[1].name}"
    story.until("its Instances are gone", lambda: len(story.instances()) == 2)


def _taints(story: Story) -> list[list[tuple[str, str]]]:
    return [
        [(taint["key"], taint["effect"]) for taint in device.get("taints", ())]
        for device in story.devices("node-a")
    ]


def test_a_device_that_comes_back_is_offered_again(story: Story) -> None:
    disk = story.plug()
    story.configure(offlineGracePeriod="5m")
    (before,) = story.wait_devices(1)
    disk.detach()
    story.until("it is tainted", lambda: _taints(story) == [[(OFFLINE, "NoSchedule")]])

    disk.attach(story.folder / disk.name)

    assert story.wait_devices(1) == [before]
    story.until(
        "its Instances are back", lambda: all(i["spec"]["nodes"] for i in story.instances())
    )


def test_a_device_plugged_while_the_api_server_is_away_is_published_later(
    story: Story, cluster: Cluster
) -> None:
    story.plug()
    story.configure()
    story.wait_devices(1)
    cluster.part("kube-apiserver").kill()
    story.plug()

    cluster.part("kube-apiserver").start()

    story.wait_devices(2)


def test_a_device_unplugged_while_the_driver_is_away_is_removed_when_it_is_back(
    story: Story,
) -> None:
    disks = [story.plug(), story.plug()]
    story.configure()
    story.wait_devices(2)
    story.drivers.nodes["node-a"].stop()
    story.unplug(disks[0])

    story.drivers.nodes["node-a"].start()

    story.wait_devices(1)


def test_a_restarted_driver_changes_nothing(story: Story, cluster: Cluster) -> None:
    story.plug()
    story.configure()
    story.wait_devices(1)
    before = _versions(story)

    story.drivers.nodes["node-a"].kill()
    story.drivers.nodes["node-a"].wait_ready()
    story.plug()

    # The new disk is seen, so the driver has read everything by now.
    story.wait_devices(2)
    after = _versions(story)
    assert {name: after[name] for name in before} == before


def _versions(story: Story) -> dict[str, str]:
    return {i["metadata"]["name"]: i["metadata"]["resourceVersion"] for i in story.instances()}


@pytest.fixture
def second_node(story: Story, cluster: Cluster) -> Iterator[Any]:
    """Another driver of node-a that reads Configurations otherwise, as a new version may."""
    first = node_driver("node-a")
    argv = (*first.argv, "--unique-devices-default", "false")
    env = {"POD_UID": "00000000-1111-4222-8333-444444444444"}
    handle = cluster.start_component(
        replace(first, name="driver-node-2", argv=argv, env=env, ready=None)
    )
    yield handle
    handle.stop()


def test_two_drivers_of_a_node_that_disagree_do_not_flood_the_api_server(
    story: Story, second_node: Any
) -> None:
    story.plug()
    story.configure(capacity=2)
    story.until("the second publishes", lambda: len(story.devices("node-a")) == 2)
    before = _writes(story)

    time.sleep(5)

    assert _writes(story) - before < 10


def _writes(story: Story) -> int:
    slices = story.cluster.list("resourceslices")
    return sum(s["metadata"]["generation"] for s in slices if s["spec"].get("nodeName") == "node-a")


@pytest.fixture
def second_shared(story: Story, cluster: Cluster) -> Iterator[Any]:
    """Another `moorage-driver shared`, which waits for the first to fall."""
    handle = cluster.start_component(shared_driver("driver-shared-2"))
    yield handle
    handle.stop()


def test_another_shared_driver_takes_over(story: Story, second_shared: Any) -> None:
    story.until(
        "it is a candidate",
        lambda: story.cluster.get("lease", "moorage-driver-shared", namespace="moorage-system"),
    )
    story.drivers.shared.stop()
    try:
        story.configure()

        story.until("the class is made", lambda: story.cluster.get("deviceclass", story.name))
    finally:
        story.drivers.shared.start()

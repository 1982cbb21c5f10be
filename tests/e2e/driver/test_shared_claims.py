"""One device, several nodes, and Dynamic Resource Allocation: slots, and what going away does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver.echoes import (
    OFFLINE,
    configure,
    is_waiting,
    say,
    slices,
    taints,
    wait_published,
)
from tests.e2e.driver.installation import NODES
from tests.e2e.driver.stories import Story


@pytest.fixture(autouse=True)
def everything_back(cluster: Cluster) -> Iterator[None]:
    """No node is left without its debugEcho devices."""
    yield
    say(cluster, "ONLINE")


def legacy_pod(story: Story, name: str, resource: str, node: str | None = None) -> None:
    """A pod that was written for the device plugin."""
    container = {
        "command": ["sh", "-c", "env | grep DEBUG_ECHO; exec sleep 100000"],
        "resources": {"limits": {f"akri.sh/{resource}": 1}},
    }
    story.pod(name, container=container, node=node, spec={"resourceClaims": []})


def test_slots_of_one_device_are_used_on_several_nodes(story: Story) -> None:
    configure(story, capacity=3)
    device = wait_published(story)
    (instance,) = story.instances()

    assert device["name"] == instance["metadata"]["name"]
    assert device["allowMultipleAllocations"] is True
    assert device["capacity"]["slots"]["value"] == "3"

    users = {"first": "node-a", "second": "node-b", "third": "node-b"}
    for name, node in users.items():
        legacy_pod(story, name, story.name, node)
    for name in users:
        story.wait_running(name)
        assert f"DEBUG_ECHO_DESCRIPTION={story.name}" in story.read(name)
    legacy_pod(story, "fourth", instance["metadata"]["name"])
    story.until("the fourth waits", lambda: is_waiting(story, "fourth"))

    story.delete("pod", "second")
    story.wait_running("fourth")
    assert story.instances()[0]["metadata"]["uid"] == instance["metadata"]["uid"]


def share(story: Story) -> str:
    """Let a pod of each node use one claim, and give its UID."""
    story.claim()
    for node in NODES:
        command = ["sh", "-c", "env | grep DEBUG_ECHO; exec sleep 100000"]
        story.pod(node, node=node, container={"command": command})
    for node in NODES:
        story.wait_running(node)
        assert f"DEBUG_ECHO_DESCRIPTION={story.name}" in story.read(node)
    return story.claim_uid()


def test_a_claim_of_pods_on_two_nodes_keeps_its_device_while_that_is_away(story: Story) -> None:
    configure(story, offlineGracePeriod="1s")
    wait_published(story)
    uid = share(story)
    assert all(story.cdi_files(uid, node) for node in NODES)
    story.delete("pod", "node-a")
    story.wait_unprepared(uid, "node-a")
    assert story.cdi_files(uid, "node-b"), "the other node's part is its own"

    (before,) = story.instances()
    say(story.cluster, "OFFLINE")
    story.until("it is tainted", lambda: taints(story) == [OFFLINE])
    story.drivers.shared.restart()
    story.claim("late")
    story.pod("late", claim="late")
    story.until("no new claim gets it", lambda: is_waiting(story, "late"))
    say(story.cluster, "ONLINE")
    wait_published(story)
    assert story.instances()[0]["metadata"]["uid"] == before["metadata"]["uid"], "a claim has it"

    say(story.cluster, "OFFLINE")
    story.until("it is tainted again", lambda: taints(story) == [OFFLINE])
    story.delete("pod", "late")
    story.delete("pod", "node-b")
    story.until("Instance and pool are gone", lambda: not story.instances() and not slices(story))
    name = before["metadata"]["name"]
    story.until("so is its class", lambda: story.cluster.get("deviceclass", name) is None)

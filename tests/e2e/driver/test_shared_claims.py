"""One device, several nodes, and Dynamic Resource Allocation: slots, and what going away does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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


def health(story: Story, pod: str) -> list[str]:
    """What the kubelet says of the devices of a pod."""
    (status,) = story.get("pod", pod)["status"]["containerStatuses"]
    claims = status.get("allocatedResourcesStatus", ())
    return [one["health"] for claim in claims for one in claim["resources"]]


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


@pytest.fixture
def dotted(story: Story) -> Story:
    """A story whose Configuration has a name that is no label."""
    return replace(story, name=f"{story.name}.north")


def test_a_claim_of_pods_on_two_nodes_keeps_its_device_while_that_is_away(dotted: Story) -> None:
    configure(dotted, offlineGracePeriod="1s")
    wait_published(dotted)
    uid = share(dotted)
    assert all(dotted.cdi_files(uid, node) for node in NODES)
    dotted.delete("pod", "node-a")
    dotted.wait_unprepared(uid, "node-a")
    assert dotted.cdi_files(uid, "node-b"), "the other node's part is its own"

    (before,) = dotted.instances()
    say(dotted.cluster, "OFFLINE")
    dotted.until("it is tainted", lambda: taints(dotted) == [OFFLINE])
    dotted.until("its pod is told", lambda: health(dotted, "node-b") == ["Unhealthy"])
    dotted.drivers.shared.restart()
    dotted.claim("late")
    dotted.pod("late", claim="late")
    dotted.until("no new claim gets it", lambda: is_waiting(dotted, "late"))
    say(dotted.cluster, "ONLINE")
    wait_published(dotted)
    assert dotted.instances()[0]["metadata"]["uid"] == before["metadata"]["uid"], "a claim has it"

    say(dotted.cluster, "OFFLINE")
    dotted.until("it is tainted again", lambda: taints(dotted) == [OFFLINE])
    dotted.delete("pod", "late")
    dotted.delete("pod", "node-b")
    dotted.until(
        "Instance and pool are gone", lambda: not dotted.instances() and not slices(dotted)
    )
    name = before["metadata"]["name"]
    dotted.until("so is its class", lambda: dotted.cluster.get("deviceclass", name) is None)

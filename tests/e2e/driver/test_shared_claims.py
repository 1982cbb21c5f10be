"""One device, several nodes, and Dynamic Resource Allocation: slots, and what going away does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver.installation import DEBUG_ECHO_FILE, NODES
from tests.e2e.driver.stories import Story

OFFLINE = "moorage.dev/offline"


@pytest.fixture(autouse=True)
def everything_back(cluster: Cluster) -> Iterator[None]:
    """No node is left without its debugEcho devices."""
    yield
    say(cluster, "ONLINE")


def say(cluster: Cluster, word: str) -> None:
    """Take the debugEcho devices of all nodes away, or bring them back."""
    for node in NODES:
        cluster.node(node).path(DEBUG_ECHO_FILE).write_text(word)


def configure(story: Story, **spec: Any) -> None:
    details = json.dumps({"descriptions": [story.name], "shared": True})
    handler = {"name": "debugEcho", "discoveryDetails": details}
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": story.name, "namespace": story.namespace},
        "spec": {"discoveryHandler": handler, **spec},
    }
    story.cluster.apply(body)


def slices(story: Story) -> list[dict[str, Any]]:
    """The slices of this story's pool."""
    pool = f"shared/{story.name}"
    found = story.cluster.list("resourceslices")
    return [s for s in found if s["spec"]["pool"]["name"] == pool]


def hosts(slice_: dict[str, Any]) -> list[str]:
    """Whom a slice is for."""
    (term,) = slice_["spec"]["nodeSelector"]["nodeSelectorTerms"]
    (requirement,) = term["matchExpressions"]
    assert (requirement["key"], requirement["operator"]) == ("kubernetes.io/hostname", "In")
    values: list[str] = requirement["values"]
    return values


def wait_published(story: Story) -> dict[str, Any]:
    """Wait until the story's device is there for all nodes, and give it."""

    def published() -> dict[str, Any] | None:
        found = slices(story)
        if len(found) != 1 or hosts(found[0]) != list(NODES):
            return None
        (device,) = found[0]["spec"]["devices"]
        return None if device.get("taints") else dict(device)

    return story.until("the device is published for all nodes", published)


def taints(story: Story) -> list[str]:
    return [
        t["key"] for s in slices(story) for d in s["spec"]["devices"] for t in d.get("taints", ())
    ]


def legacy_pod(story: Story, name: str, node: str | None = None) -> None:
    """A pod that was written for the device plugin."""
    container = {
        "command": ["sh", "-c", "env | grep DEBUG_ECHO; exec sleep 100000"],
        "resources": {"limits": {f"akri.sh/{story.name}": 1}},
    }
    story.pod(name, container=container, node=node, spec={"resourceClaims": []})


def is_waiting(story: Story, pod: str) -> bool:
    """Whether the scheduler found no place for it."""
    conditions = story.get("pod", pod).get("status", {}).get("conditions", ())
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)


def test_slots_of_one_device_are_used_on_several_nodes(story: Story) -> None:
    configure(story, capacity=3)
    device = wait_published(story)
    (instance,) = story.instances()

    assert device["name"] == instance["metadata"]["name"]
    assert device["allowMultipleAllocations"] is True
    assert device["capacity"]["slots"]["value"] == "3"

    users = {"first": "node-a", "second": "node-b", "third": "node-b"}
    for name, node in users.items():
        legacy_pod(story, name, node)
    for name in users:
        story.wait_running(name)
        assert f"DEBUG_ECHO_DESCRIPTION={story.name}" in story.read(name)
    legacy_pod(story, "fourth")
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

"""One Configuration has many devices: those of another do not wait for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.driver.installation import NODES
from tests.e2e.driver.stories import Story

MANY = 1_000
"""Of each node; they take far longer than one."""

MANY_FOR_A_SLICE = 65
"""Of each node; from so many on they have a pool of their own."""

SECONDS = 120.0


@pytest.fixture
def many(story: Story) -> Iterator[str]:
    """The name of a Configuration of many devices; all are gone at the end."""
    name = f"{story.name}-many"
    yield name
    there = ("configuration", name, f"--namespace={story.namespace}")
    story.cluster.kubectl("delete", *there, "--ignore-not-found")
    story.until("all of them are gone", lambda: not instances(story, name), SECONDS)


def configure(story: Story, name: str, devices: int) -> None:
    """By descriptions that are the same each time.

    Of 2,000 other names two have the same six digits in one run of nine, and an Instance fewer.
    """
    describe(story, name, [f"device-{number}" for number in range(devices)])


def describe(story: Story, name: str, descriptions: list[str]) -> None:
    details = json.dumps({"descriptions": descriptions, "shared": False})
    story.cluster.apply(
        {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": name, "namespace": story.namespace},
            "spec": {"discoveryHandler": {"name": "debugEcho", "discoveryDetails": details}},
        }
    )


def instances(story: Story, name: str) -> int:
    found = story.cluster.list("instances", namespace=story.namespace)
    return sum(one["spec"]["configurationName"] == name for one in found)


def instances_when_there(story: Story, name: str, came: str) -> int:
    """How many there were of a Configuration when the last Instance of another had just come."""
    path = f"/apis/akri.sh/v0/namespaces/{story.namespace}/instances"
    newest = max(
        int(one["metadata"]["resourceVersion"])
        for one in story.cluster.list("instances", namespace=story.namespace)
        if one["spec"]["configurationName"] == came
    )
    query = f"?resourceVersion={newest}&resourceVersionMatch=Exact"
    found = json.loads(story.cluster.kubectl("get", "--raw", path + query).stdout)
    return sum(one["spec"]["configurationName"] == name for one in found["items"])


def devices(story: Story, name: str) -> int:
    return sum(
        device["attributes"]["configuration"]["string"] == name
        for found in story.cluster.list("resourceslices")
        for device in found["spec"].get("devices") or ()
    )


def wait_there(story: Story, name: str) -> None:
    """Until a Configuration of one device has it on every node, in slices and as an Instance."""
    story.until(f"{name} has its Instances", lambda: instances(story, name) == len(NODES), SECONDS)
    story.until(f"{name} is published", lambda: devices(story, name) == len(NODES), SECONDS)


def test_a_new_configuration_does_not_wait_for_the_many_of_another(story: Story, many: str) -> None:
    all_of_them = MANY * len(NODES)
    configure(story, many, MANY)
    story.until("some have come", lambda: instances(story, many) > 0, SECONDS)
    configure(story, f"{story.name}-a", 1)

    wait_there(story, f"{story.name}-a")
    there = instances_when_there(story, many, came=f"{story.name}-a")
    assert there < all_of_them, "it waited for the last of them"

    story.until("all have come", lambda: instances(story, many) == all_of_them, SECONDS)
    story.delete("configuration", many)
    story.until("some have gone", lambda: instances(story, many) < all_of_them, SECONDS)
    configure(story, f"{story.name}-b", 1)

    wait_there(story, f"{story.name}-b")
    there = instances_when_there(story, many, came=f"{story.name}-b")
    assert there > 0, "it waited until the last of them had gone"


def pools(story: Story) -> dict[str, str]:
    """The pool of each of the story's devices."""
    return {
        device["name"]: found["spec"]["pool"]["name"]
        for found in story.cluster.list("resourceslices")
        for device in found["spec"].get("devices") or ()
        if device["attributes"]["configuration"]["string"] == story.name
    }


def use(story: Story, pod: str) -> str:
    """What a pod sees of the claimed device."""
    command = ["sh", "-c", "env | grep ^DEBUG_ECHO_DESCRIPTION=; exec sleep 100000"]
    story.pod(pod, container={"command": command})
    story.wait_running(pod)
    return story.read(pod).strip().partition("=")[2]


def test_what_a_pod_has_of_many_stays_in_its_pool_though_they_are_few_now(story: Story) -> None:
    configure(story, story.name, MANY_FOR_A_SLICE)
    every = MANY_FOR_A_SLICE * len(NODES)
    story.until("all are published", lambda: devices(story, story.name) == every, SECONDS)
    story.claim()
    description, node = use(story, "first"), story.pod_node("first")
    claim = story.get("resourceclaim", "disk")
    (given,) = claim["status"]["allocation"]["devices"]["results"]
    assert given["pool"] == f"local/{node}/{story.name}"

    describe(story, story.name, [description])
    story.until("one of each node is left", lambda: devices(story, story.name) == len(NODES))
    story.drivers.nodes[node].kill()
    story.drivers.nodes[node].wait_ready()
    describe(story, story.name, [description, "newcomer"])
    story.until("another has come", lambda: devices(story, story.name) == 2 * len(NODES))

    shown = pools(story)
    assert shown[given["device"]] == given["pool"]
    assert sorted(shown.values()).count(node) == 1, "the newcomer is one of few"
    assert use(story, "second") == description
    for pod in ("first", "second"):
        story.delete("pod", pod)
    story.wait_unprepared(claim["metadata"]["uid"], node)

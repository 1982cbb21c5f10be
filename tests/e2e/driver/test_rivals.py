"""One disk through two Configurations: two claims never have it at the same time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kube.shapes.times import timestamp
from tests.e2e.driver.stories import Story

NODE = "node-a"
SCHEDULER_ACCOUNT = "system:serviceaccount:moorage-system:scheduler"


@pytest.fixture
def rival(story: Story) -> Iterator[str]:
    """A second Configuration whose rules select the story's disks, too."""
    name = f"{story.name}-too"
    story.plug("the one and only")
    story.configure()
    story.configure(name)
    yield name
    story.cluster.kubectl("delete", "akric", name, "-n", story.namespace, "--ignore-not-found")


def devices_of(story: Story, configuration: str) -> list[dict[str, Any]]:
    return [
        device
        for body in story.cluster.list("resourceslices")
        if body["spec"].get("nodeName") == NODE
        for device in body["spec"].get("devices") or ()
        if device["attributes"]["configuration"]["string"] == configuration
    ]


def what_is_said(story: Story, configuration: str) -> str:
    """The condition by which a Configuration tells of the other one."""
    found = story.until(
        f"{configuration} says whose its device is, too",
        lambda: story.condition(configuration, "DevicesDistinct"),
    )
    assert found["status"] == "False"
    return str(found["message"])


def rivals_are_counted(story: Story, names: tuple[str, str]) -> list[str]:
    """The counter set that both devices consume of, once they are published."""
    devices = [device for name in names for device in devices_of(story, name)]
    sets = {c["counterSet"] for device in devices for c in device.get("consumesCounters") or ()}
    return sorted(sets) if len(devices) == len(names) and len(sets) == 1 else []


def test_a_pod_waits_while_another_has_its_disk_through_another_configuration(
    story: Story, rival: str
) -> None:
    names = (story.name, rival)
    for mine, other in (names, (rival, story.name)):
        message = what_is_said(story, mine)
        assert f"of Configuration {other}, too" in message
        assert f"/dev/{story.disks[0].name}" in message
    (counters,) = story.until("both are counted", lambda: rivals_are_counted(story, names))
    slices = story.cluster.list("resourceslices")
    sets = [each for body in slices for each in body["spec"].get("sharedCounters") or ()]
    assert counters in {each["name"] for each in sets}

    story.claim("first")
    story.claim("second", of_class=rival)
    story.pod("first", claim="first", node=NODE)
    story.wait_running("first")
    story.pod("second", claim="second", node=NODE)
    story.cluster.wait("pod/second", "condition=PodScheduled=False", namespace=story.namespace)
    assert "allocation" not in story.get("resourceclaim", "second").get("status", {})

    story.delete("pod", "first")

    story.wait_running("second")
    assert story.read("second").splitlines()[-1] == "the one and only"


def test_a_disk_that_is_allocated_through_both_is_prepared_for_one_claim(
    story: Story, rival: str
) -> None:
    """As where kube-scheduler cannot know: of two pools, or of Kubernetes 1.35."""
    names = (story.name, rival)
    story.until("both are counted", lambda: rivals_are_counted(story, names))
    story.claim("first")
    story.claim("second", of_class=rival)
    story.pod("first", claim="first", node=NODE)
    story.wait_running("first")
    (device,) = devices_of(story, rival)
    allocate(story, "second", device["name"])
    story.pod("second", claim="second", node=NODE)

    holder = f"{story.namespace}/first (UID {story.claim_uid('first')})"
    (held,) = devices_of(story, story.name)
    sentence = (
        f"device {NODE}/{device['name']} of Configuration {rival} is at"
        f" /dev/{story.disks[0].name}, as is device {NODE}/{held['name']} of Configuration"
        f" {story.name}, which is still prepared for ResourceClaim {holder}"
    )
    story.until("the second pod is told why it waits", lambda: story.tells("second", sentence))

    story.delete("pod", "first")

    story.wait_running("second")
    assert story.read("second").splitlines()[-1] == "the one and only"


def allocate(story: Story, claim: str, device: str) -> None:
    """Give a claim a device as a kube-scheduler does that knows no counters."""
    result = {"request": "disk", "driver": "moorage.dev", "pool": NODE, "device": device}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "allocationTimestamp": timestamp(datetime.now(UTC)),
    }
    patch = json.dumps({"status": {"allocation": allocation}})
    story.cluster.kubectl(
        *("patch", "resourceclaim", claim, "-n", story.namespace, f"--as={SCHEDULER_ACCOUNT}"),
        *("--subresource=status", "--type=merge", "-p", patch),
    )

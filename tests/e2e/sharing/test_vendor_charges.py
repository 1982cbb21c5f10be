"""Entries that select a vendor's devices, and what they are charged once their slices are gone."""

from __future__ import annotations

from typing import Any

from tests.e2e import vendor_devices
from tests.e2e.sharing.stories import Story
from tests.e2e.sharing.test_vendor_reclaim import NODE, claim, gpus, kind, memory, wait_used
from tests.e2e.vendor_hardware import divisible_gpus, partitionable_gpus
from tests.e2e.vendor_stories import one

CHARGED = "moorage.dev/charged"


def whole(story: Story, limit: int) -> dict[str, Any]:
    """An entry that counts whole GPUs, and none of their partitions."""
    selected = {"name": "whole", "driver": story.driver, "selector": kind(story, "gpu")}
    return {**selected, "limit": limit}


def test_a_selector_counts_the_devices_that_it_selects_and_no_others(story: Story) -> None:
    with gpus(story, *partitionable_gpus("gpu-0", "gpu-1", "gpu-2")):
        queue = story.queue("mine", resources=[whole(story, 1), *memory(story)["resources"]])
        for name, of in (("slice", "partition"), ("gpu", "gpu")):
            claim(story, name, one("gpu", story.driver, kind(story, of)))
            story.pod(name, queue, name)
            story.wait_running(name)
        full = f"mine-{story.name}"
        story.until(
            "each device is counted as what it is",
            lambda: story.status(full).get("usage") == {"whole": 1, "gpu-memory": "90Gi"},
        )

        claim(story, "more", one("gpu", story.driver, kind(story, "gpu")))
        story.pod("more", queue, "more")

        assert "uses 1 whole" in story.wait_condition("more", "OverLimit")
        claim(story, "small", one("gpu", story.driver, kind(story, "partition")))
        story.pod("small", queue, "small")
        story.wait_running("small")


def test_what_a_device_costs_is_noted_and_charged_once_its_slice_is_gone(story: Story) -> None:
    with vendor_devices.running(
        story.cluster, story.driver, partitionable_gpus("gpu-0"), NODE
    ) as driver:
        queue = story.queue("mine", resources=[whole(story, 4), *memory(story)["resources"]])
        claim(story, "slice", one("gpu", story.driver, kind(story, "partition")))
        story.pod("slice", queue, "slice")
        story.wait_running("slice")
        story.until("the cost is noted", lambda: CHARGED in notes(story, "slice"))
        assert '"gpu-memory":"10Gi"' in notes(story, "slice")[CHARGED]

        driver.replace_hardware(divisible_gpus("gpu-1"))
        story.plugin.restart()
        claim(story, "part", one("gpu", story.driver, memory="20Gi"))
        story.pod("part", queue, "part")

        story.wait_running("part")
        wait_used(story, mine="30Gi")
        story.delete("pod", "slice")
        story.until("the note is gone", lambda: CHARGED not in notes(story, "slice"))
        story.end_pods()


def notes(story: Story, name: str) -> dict[str, str]:
    found: dict[str, str] = story.get("claim", name)["metadata"].get("annotations", {})
    return found

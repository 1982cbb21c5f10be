"""A DeviceClass of an administrator's own gives no device of Moorage's away for nothing."""

from __future__ import annotations

import pytest

from driver.api import ATTRIBUTE_CONFIGURATION, DRIVER_NAME
from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import NODE, Story

OURS = f'device.attributes["{DRIVER_NAME}"].{ATTRIBUTE_CONFIGURATION}'


def publish(story: Story, count: int) -> str:
    """Devices of our driver on a node, as a driver publishes them; returns the Configuration."""
    configuration = f"cameras-{story.name}"
    body = objects.resource_slice(DRIVER_NAME, NODE, count)
    body["metadata"]["name"] = story.name
    body["spec"]["pool"]["name"] = story.name
    for device in body["spec"]["devices"]:
        device["attributes"] = {ATTRIBUTE_CONFIGURATION: {"string": configuration}}
    story.create("slice", body)
    return configuration


@pytest.mark.parametrize("selector", ["named", "of-any-shape"])
def test_whoever_asks_through_a_class_that_no_queue_lists_is_charged_for_the_device(
    story: Story, selector: str
) -> None:
    configuration = publish(story, 2)
    compares = {
        "named": f'{OURS} == "{configuration}"',
        "of-any-shape": f'{OURS} in ["{configuration}"]',
    }
    made = objects.device_class(story.name, DRIVER_NAME, accounted=None, only=compares[selector])
    story.create("class", made)
    vision = story.queue("vision", shares={configuration: {"quota": 1, "limit": 1}})
    story.claim("first")
    story.claim("second")

    story.pod("of-nobody", "", "first")
    story.wait_refused("of-nobody", "NoQueue")
    story.delete("pod", "of-nobody")
    story.pod("one", vision, "first")
    story.wait_bound("one")
    story.until("it is charged", lambda: story.figure(vision, key=configuration) == 1)
    assert story.owner("first") == vision

    story.pod("two", vision, "second")
    assert f"uses 1 {configuration}" in story.wait_refused("two", "OverLimit")
    story.delete("pod", "one")
    story.wait_bound("two")
    story.until("it is charged once", lambda: story.figure(vision, key=configuration) == 1)

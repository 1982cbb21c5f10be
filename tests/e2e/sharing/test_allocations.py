"""Pods that other schedulers take get no accounted device, in whatever order things are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.sharing import admission
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import CLAIM, Story
from tests.e2e.test_allocation_policies import ACCOUNTED, with_drivers

STOCK = "default-scheduler"


@pytest.fixture(scope="module", autouse=True)
def webhook(plugin: Plugin) -> Iterator[None]:
    """It admits pods whose claims do not exist yet."""
    with admission.webhook(plugin.cluster):
        yield


@pytest.fixture
def guarded(story: Story) -> Iterator[Story]:
    """A story whose driver the administrator has listed."""
    story.devices(1)
    with guarding(story):
        yield story


@contextmanager
def guarding(story: Story) -> Iterator[None]:
    """The administrator has listed the story's driver, and the policy is in force so."""
    cluster = story.cluster
    cluster.apply(with_drivers(ACCOUNTED, story.driver))
    story.claim("probe")
    try:
        story.until("its devices are guarded", lambda: is_guarded(story))
        story.delete("claim", "probe")
        yield
    finally:
        cluster.apply(with_drivers(ACCOUNTED))


def unguarded(story: Story, queue: str) -> str:
    """What a Queue says of drivers that nobody guards; "" for nothing."""
    found = story.status(queue).get("conditions", ())
    return "".join(c["message"] for c in found if c["type"] == "Unguarded")


def test_a_queue_says_which_driver_other_schedulers_may_give_away(story: Story) -> None:
    story.devices(1)
    vision = story.queue("vision", limit=1)
    said = story.until("its queue says so", lambda: unguarded(story, vision))
    assert f"Set accounting.drivers: [{ACCOUNTED}, {story.driver}]." in said
    story.pod("early", vision, schedulerName=STOCK)
    story.claim()
    story.wait_bound("early")

    story.delete("pod", "early")
    story.until("nobody has the device", lambda: not story.is_allocated())
    story.delete("claim", CLAIM)
    with guarding(story):
        story.pod("late", vision, schedulerName=STOCK)
        story.claim()
        assert "are charged to queues" in story.wait_condition("late", "are charged to queues")
        assert not story.is_allocated()


def is_guarded(story: Story) -> bool:
    """Whether an administrator, who is no scheduler, is refused."""
    try:
        said = story.refusal(lambda: story.allocate("probe", "nowhere"))
    except AssertionError:
        story.patch("claim", "probe", {"status": {"allocation": None}}, "/status")
        return False
    return "charged to queues" in said


def test_a_pod_that_was_there_before_its_claim_gets_nothing_for_nothing(guarded: Story) -> None:
    story = guarded
    vision = story.queue("vision")
    story.pod("early", vision, schedulerName=STOCK)

    story.claim()

    said = story.wait_condition("early", "are charged to queues")
    assert f"ResourceClaim {story.namespace}/{CLAIM}: status.allocation: " in said
    assert (story.is_allocated(), story.consumers(), story.owner()) == (False, [], "")

    story.pod("honest", vision)
    story.wait_bound("honest")
    story.wait_figures({vision: 1})
    # The device has its owner now, and joining is judged, too.
    story.wait_condition("early", "status.reservedFor: ")
    assert (story.consumers(), story.bound()) == (["honest"], {"honest"})
    story.delete("pod", "honest")
    story.wait_figures({vision: 0})
    story.until("its device is free again", lambda: not story.is_allocated())


def test_nobody_chooses_the_node_of_a_pod_that_uses_a_claim(guarded: Story) -> None:
    story = guarded
    vision = story.queue("vision")

    refused = story.refusal(lambda: story.pod("placed", vision, nodeName="fake-0000"))

    assert "spec.nodeName: uses are charged to queues" in refused

"""Quota is guaranteed without DRA: slots of pods whose containers run are taken back with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.driver.installation import Drivers
from tests.e2e.legacy import kubelets
from tests.e2e.legacy.stories import LegacyStory, configuration
from tests.e2e.sharing import objects
from tests.e2e.sharing.test_reclaim import GATE, unmet

NODE = "node-a"
HERE: dict[str, Any] = {**objects.on(NODE), "terminationGracePeriodSeconds": 1}
WAITS: dict[str, Any] = {"schedulingGates": [GATE], **HERE}


@pytest.fixture
def devices(story: LegacyStory, drivers: Drivers) -> Iterator[None]:
    """Two devices that both nodes see, with one slot each."""
    details = json.dumps({"descriptions": ["left", "right"]})
    body = configuration(story.name, 1)
    body["spec"]["discoveryHandler"] = {"name": "debugEcho", "discoveryDetails": details}
    story.create("configuration", body)
    story.until("they are offered", lambda: _offered(story) == 2)
    yield
    story.end_pods()
    story.api.delete(story.path("configuration", story.name))
    story.until("its Instances are gone", lambda: not story.all("instance"))


def _offered(story: LegacyStory) -> int:
    return kubelets.allocatable(story.cluster, NODE).get(story.name, 0)


@pytest.mark.usefixtures("devices")
def test_room_is_made_by_whom_no_budget_keeps_and_the_queue_says_where_all_are_kept(
    story: LegacyStory,
) -> None:
    root = story.queue("root", limit=2, quota=2)
    mine = story.queue("mine", parent=root, quota=2)
    robots = story.queue("robots", parent=root, quota=0)
    story.user("guarded", robots, labels={"app": "guarded"}, **HERE)
    story.user("other", robots, **HERE)
    story.wait_running("guarded", "other")
    story.create("budget", objects.budget("some", {"app": "guarded"}, at_least=1))
    story.until("the budget is in force", lambda: "observedGeneration" in _budget(story))

    story.user("w1", mine, **WAITS)

    story.wait_running("w1")
    assert story.evictions() == ["other"]
    assert story.wait_told("other", "Reclaimed") == story.wait_told("w1", "RoomReclaimed")
    story.user("w2", mine, **WAITS)
    story.until("the queue says so", lambda: "a budget" in unmet(story, mine))
    assert story.bound() == {"guarded", "w1"}
    story.api.delete(story.path("budget", "some"))
    story.wait_running("w2")
    assert story.evictions() == ["other", "guarded"]
    story.wait_figures({mine: 2, robots: 0})


def _budget(story: LegacyStory) -> dict[str, Any]:
    status: dict[str, Any] = story.get("budget", "some").get("status", {})
    return status


@pytest.mark.usefixtures("devices")
def test_the_higher_priority_goes_first_once_the_least_time_is_over(story: LegacyStory) -> None:
    root = story.queue("root", limit=1, preemptMinRuntime="1h")
    vision = story.queue("vision", parent=root, quota=2)
    story.priority_class(50)
    story.user("low", vision, **HERE)
    story.wait_running("low")

    story.user("w", vision, priorityClassName=story.name, **WAITS)

    story.until("the queue says so", lambda: "the minimum runtime" in unmet(story, vision))
    assert story.is_running("low")
    story.change_queue(root, {"preemptMinRuntime": "1s"})
    story.wait_running("w")
    assert story.evictions() == ["low"]

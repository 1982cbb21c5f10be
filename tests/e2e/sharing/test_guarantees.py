"""Quota is guaranteed where containers run: who has to go, who may stay, and who is let down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import Story
from tests.e2e.sharing.test_reclaim import GATE, condition, unmet
from tests.e2e.sharing.test_waiting import wait_told

pytestmark = pytest.mark.usefixtures("disk")

NODE = "node-a"
# A pod without any grace is gone from the API before its node has given the device back.
HERE: dict[str, Any] = {**objects.on(NODE), "terminationGracePeriodSeconds": 1}
WAITS: dict[str, Any] = {"schedulingGates": [GATE], **HERE}
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
NEVER_ENDS = "8784h"
"""A year: no longer one is admitted."""


def deaf() -> dict[str, Any]:
    """A container that ignores its end until the kubelet kills it.

    That leaves a busy machine the time to show what is so meanwhile.
    """
    script = "trap '' TERM; while :; do sleep 0.2; done"
    return {"command": ["sh", "-c", script], "terminationGracePeriodSeconds": 20}


def queues(story: Story, limit: int = -1, mine: int = 1) -> tuple[str, str]:
    """Two queues below one: of one the quota is guaranteed, the other has none."""
    root = story.queue("root", limit=limit, quota=limit)
    return (
        story.queue("mine", parent=root, quota=mine),
        story.queue("robots", parent=root, quota=0),
    )


def run(story: Story, claim: str, *pods: tuple[str, str], **options: Any) -> None:
    """Pods, each with its queue, that share a claim, and run one after the other."""
    story.claim(claim)
    for pod, queue in pods:
        story.pod(pod, queue, claim, **{**HERE, **options})
        story.wait_running(pod)


def ask(story: Story, queue: str, **options: Any) -> None:
    """A pod that waits at its gate for a claim of its own."""
    story.claim("w")
    story.pod("w", queue, "w", **{**WAITS, **options})


def test_pods_of_five_queues_leave_a_claim_and_one_that_does_not_hear_is_waited_for(
    story: Story,
) -> None:
    mine, robots = queues(story, limit=1)
    run(story, "held", ("owner", robots))
    for number in range(4):
        options = {**HERE, **(deaf() if number == 3 else {})}
        story.pod(f"f{number}", story.queue(f"other{number}"), "held", **options)
    story.wait_running("f0", "f1", "f2", "f3")

    ask(story, mine)

    why = story.wait_told("f3", "Reclaimed")
    assert "is given up by all its users (5 pods)" in why
    story.until("one does not hear", lambda: story.bound() == {"f3"})
    assert condition(story, "w")[0] == "True"
    story.wait_running("w")
    # A pod that ended gives its device back before the kubelet deletes it.
    story.until("the others are gone", lambda: story.bound() == {"w"})
    assert sorted(story.evictions()) == ["f0", "f1", "f2", "f3", "owner"]
    assert story.wait_told("owner", "Reclaimed") == why
    story.wait_figures({mine: 1, robots: 0})


def test_a_budget_that_lets_each_go_and_not_all_keeps_them_and_the_queue_says_so(
    story: Story,
) -> None:
    mine, robots = queues(story, limit=1)
    run(story, "held", ("one", robots), ("two", robots), labels={"app": "guarded"})
    story.create("budget", objects.budget("some", {"app": "guarded"}, at_least=1))
    story.until("the budget lets one go", lambda: _allowed(story) == 1)

    ask(story, mine)

    together = "allows eviction of 1 of its pods now, and 2 would have to be evicted together"
    assert together in story.wait_told("w", "ReclaimHeldBack")
    story.until("the queue says so", lambda: "a budget" in unmet(story, mine))
    assert story.bound() == {"one", "two"}
    story.patch("budget", "some", {"spec": {"minAvailable": 0}})
    story.wait_running("w")
    assert sorted(story.evictions()) == ["one", "two"]
    story.until("it has what it asks for", lambda: not unmet(story, mine))


def _allowed(story: Story) -> int:
    return int(story.get("budget", "some").get("status", {}).get("disruptionsAllowed", 0))


def test_the_higher_priority_goes_first_once_the_least_time_of_the_parent_is_over(
    story: Story,
) -> None:
    root = story.queue("root", limit=1, preemptMinRuntime=NEVER_ENDS)
    vision = story.queue("vision", parent=root, quota=2)
    story.priority_class(50)
    run(story, "held", ("low", vision))

    ask(story, vision, priorityClassName=story.name)

    story.until("the queue says so", lambda: "the minimum runtime" in unmet(story, vision))
    assert story.is_running("low")
    story.change_queue(root, {"preemptMinRuntime": "1s"})
    story.wait_running("w")
    assert story.evictions() == ["low"]
    assert "has priority 50" in story.wait_told("low", "Reclaimed")


def test_another_branch_gives_once_the_least_time_is_over_where_the_branches_part(
    story: Story,
) -> None:
    """What counts is where they part: the queue itself says another time."""
    root = story.queue("root", limit=1)
    mine = story.queue("mine", parent=root, quota=1)
    branch = story.queue("branch", parent=root, quota=0, reclaimMinRuntime=NEVER_ENDS)
    robots = story.queue("robots", parent=branch, quota=0, reclaimMinRuntime="1s")
    run(story, "held", ("owner", robots))

    ask(story, mine)

    story.until("the queue says so", lambda: "the minimum runtime" in unmet(story, mine))
    assert story.is_running("owner")
    story.change_queue(branch, {"reclaimMinRuntime": "1s"})
    story.wait_running("w")
    assert story.evictions() == ["owner"]


@pytest.mark.parametrize("still_waits", [True, False])
def test_a_leader_that_dies_between_two_evictions_is_followed_by_one_that_knows(
    story: Story, still_waits: bool
) -> None:
    """He finishes what was begun, or lets the other be where nobody waits any more."""
    mine, robots = queues(story, limit=1)
    run(story, "held", ("one", robots), ("two", robots))
    with story.evictions_stopped() as gate:
        ask(story, mine)
        first = story.until("the first is asked to go", lambda: gate.stopped[:1])[0]
        second = {"one": "two", "two": "one"}[first]
        gate.let(first)
        story.until("then the second is", lambda: second in gate.stopped)
        story.plugin.kill()
        if not still_waits:
            story.delete("pod", "w")
        story.plugin.wait_ready()
        assert story.bound() - {first} == {second}

    if still_waits:
        story.wait_running("w")
        assert story.evictions() == [first, second]
    else:
        story.until("nothing is held", lambda: not story.status(mine).get("held"))
        story.pod("next", robots, "w", **WAITS)
        wait_told(story, "next", "OverLimit: ")
        assert story.is_running(second)
        assert story.evictions() == [first]


@pytest.mark.parametrize("as_written_by", ["this version", "the version before"])
def test_a_device_stays_held_while_the_plugin_that_took_it_is_killed(
    story: Story, as_written_by: str
) -> None:
    """Its node takes nobody until then but pods that do not mind."""
    mine, robots = queues(story)
    others = story.queue("others", quota=0)
    run(story, "held", ("owner", robots), **deaf())
    story.claim("w")
    story.pod("w", mine, "w", **HERE)
    story.wait_told("owner", "Reclaimed")
    with cordoned(story):
        story.until("the device is free", lambda: not story.bound())
        if as_written_by == "the version before":
            name_no_device(story, "w")
        story.plugin.kill()
        story.plugin.wait_ready()

        story.claim("next")
        story.pod("next", others, "next", tolerations=[CORDON], **HERE)

        story.wait_refused("next", "DeviceHeld")
    story.wait_running("w")
    assert story.bound() == {"w"}
    assert story.evictions() == ["owner"]


def name_no_device(story: Story, pod: str) -> None:
    """What the version before wrote: that something is held, and not what."""
    _, said = condition(story, pod)
    told = said.partition(" Held: ")[0]
    found = story.get("pod", pod)["status"]["conditions"]
    others = [c for c in found if c.get("message") != said]
    (held,) = (c for c in found if c.get("message") == said)
    conditions = [*others, {**held, "message": told}]
    story.patch("pod", pod, {"status": {"conditions": conditions}}, part="/status")
    assert condition(story, pod) == ("True", told)


@contextmanager
def cordoned(story: Story) -> Iterator[None]:
    """The node takes no new pods for as long as this lasts."""
    story.api.patch(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        story.api.patch(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": None}})

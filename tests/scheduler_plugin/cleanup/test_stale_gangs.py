"""A PodGroup that lost pods: told, given time, given up as one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.owner_exits import RequeueAt
from scheduler_plugin.cleanup.stale_gangs import (
    EvictGang,
    GangStep,
    MarkStale,
    MarkWhole,
    gang_step,
)
from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION, STALE_CONDITION
from scheduler_plugin.objects.pods import PodGroupView, PodView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    admit,
    an_allocated_claim,
    pod_uid,
    put,
)

GRACE = timedelta(seconds=60)
GROUP = {"annotations": {POD_GROUP_ANNOTATION: "g"}}


def a_member(name: str, **fields: Any) -> PodView:
    if "since" in fields:
        condition = {"type": STALE_CONDITION, "status": "True"}
        since = {"lastTransitionTime": fields.pop("since")}
        fields["status"] = {"conditions": [condition | since]}
    given = {"queue": "vision", "claims": [name], "node": "n", "phase": "Running", **GROUP}
    return a_pod(name, **{**given, **fields})


def a_group_world(*pods: PodView, least: int | None = 2) -> World:
    """Each pod that is bound has a claim of its own."""
    world = a_world(a_queue("vision", onvif=(9, 9)))
    world.serve_groups(served=True)
    world.put_group(PodGroupView("default", "g", NO_QUEUE, least))
    for pod in pods:
        put(world, an_allocated_claim(pod.name, pod.name, queue="vision"), pod)
    return world


def step(world: World, now: datetime = NOW, grace: timedelta | None = GRACE) -> GangStep | None:
    return gang_step(("default", "g"), world, now, grace)


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_those_left_are_told_first() -> None:
    found = step(a_group_world(a_member("a")))
    assert isinstance(found, MarkStale)
    assert [pod.name for pod in found.pods] == ["a"]
    assert found.since == at(0)
    assert "has 1 of the 2 pods that it needs" in found.sentence
    assert at(60) in found.sentence


def test_a_restart_does_not_extend_the_grace() -> None:
    world = a_group_world(a_member("a", since=at(-40)))
    assert step(world) == RequeueAt(NOW + timedelta(seconds=20))
    late = step(world, NOW + timedelta(seconds=20))
    assert isinstance(late, EvictGang)
    assert [pod.name for pod in late.pods] == ["a"]


def test_all_that_are_left_go_as_one_from_when_the_first_was_told() -> None:
    world = a_group_world(a_member("a", since=at(-61)), a_member("b", since=at(-10)), least=3)
    found = step(world)
    assert isinstance(found, EvictGang)
    assert {pod.name for pod in found.pods} == {"a", "b"}


def test_whoever_came_meanwhile_is_told_the_same_time() -> None:
    world = a_group_world(a_member("a", since=at(-30)), a_member("b"), least=3)
    found = step(world)
    assert isinstance(found, MarkStale)
    assert ([pod.name for pod in found.pods], found.since) == (["b"], at(-30))


def test_one_that_comes_back_ends_it() -> None:
    world = a_group_world(a_member("a", since=at(-30)), a_member("b"))
    found = step(world)
    assert isinstance(found, MarkWhole)
    assert [pod.name for pod in found.pods] == ["a"]


def test_one_that_is_on_its_way_is_waited_for() -> None:
    world = a_group_world(a_member("a", since=at(-90)))
    pod = a_member("b", node="", phase="Pending")
    put(world, a_claim("b"), pod)
    assert isinstance(step(world), EvictGang)
    admit(world, pod)
    assert not isinstance(step(world), EvictGang)


@pytest.mark.parametrize(
    "lost", [{"phase": "Failed"}, {"node": "", "phase": "Pending"}, {"deleting": True}]
)
def test_failed_waiting_and_leaving_pods_do_not_count(lost: dict[str, Any]) -> None:
    from dataclasses import replace

    is_deleting = lost.pop("deleting", False)
    other = replace(a_member("b", **lost), deleting=is_deleting)
    assert isinstance(step(a_group_world(a_member("a"), other)), MarkStale)


def test_a_group_of_which_some_succeeded_is_about_to_be_done() -> None:
    assert step(a_group_world(a_member("a"), a_member("b", phase="Succeeded"))) is None


@pytest.mark.parametrize(
    "fields", [{"non_preemptible": True}, {"spec": {"schedulerName": "another"}}]
)
def test_nobody_goes_of_whom_one_may_not(fields: dict[str, Any]) -> None:
    world = a_group_world(a_member("a", since=at(-90)), a_member("b", **fields), least=3)
    assert not isinstance(step(world), EvictGang | RequeueAt)


def test_a_group_without_devices_is_nobodys_business() -> None:
    assert step(a_group_world(a_member("a"))) is not None
    world = a_group_world(a_member("a"))
    world.delete_claim(a_claim("a").uid)
    assert step(world) is None


def test_a_group_that_shrinks_or_goes_is_not_short() -> None:
    world = a_group_world(a_member("a"))
    world.put_group(PodGroupView("default", "g", NO_QUEUE, 1))
    assert step(world) is None
    world.put_group(PodGroupView("default", "g", NO_QUEUE, None))
    assert step(world) is None
    world.delete_group("default", "g")
    assert step(world) is None


@pytest.mark.parametrize("since", ["gibberish", at(300)])
def test_a_time_that_cannot_be_is_now(since: str) -> None:
    assert step(a_group_world(a_member("a", since=since))) == RequeueAt(NOW + GRACE)


@pytest.mark.parametrize(
    ("own", "flag", "goes"),
    [
        (timedelta(seconds=20), GRACE, True),
        (timedelta(seconds=20), None, True),
        (timedelta.max, timedelta(), False),
        (None, timedelta(seconds=20), True),
        (None, None, False),
    ],
)
def test_what_the_group_says_itself_goes_before_the_flag(
    own: timedelta | None, flag: timedelta | None, goes: bool
) -> None:
    world = a_group_world(a_member("a", since=at(-30)))
    world.put_group(PodGroupView("default", "g", NO_QUEUE, 2, stale_grace=own))
    assert isinstance(step(world, grace=flag), EvictGang if goes else MarkWhole)


def test_without_grace_they_go_at_once() -> None:
    world = a_group_world(a_member("a", since=at(0)))
    assert isinstance(step(world, grace=timedelta()), EvictGang)
    assert world.facts.pod(pod_uid("a")) is not None

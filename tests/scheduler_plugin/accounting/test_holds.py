"""Room that is held for a pod by name: for nobody else, and counted once."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.names import QueueName, Reason
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    admit,
    amounts,
    an_allocated_claim,
    pod_uid,
    put,
    refusal,
    verdict,
)

ROOT = QueueName("root")


def a_held_world() -> World:
    """One device for two queues, held for pod `a`."""
    world = a_world(
        a_queue("root", onvif=(1, 1)),
        a_queue("mine", parent="root", onvif=(1, 1)),
        a_queue("others", parent="root"),
        a_claim("for-a"),
        a_claim("for-b"),
        a_pod("a", queue="mine", claims=["for-a"]),
        a_pod("b", queue="others", claims=["for-b"]),
    )
    world.assumptions.hold(
        Hold(pod_uid("a"), "Pod default/a", QueueName("mine"), amounts(onvif=1), NO_CHARGES)
    )
    return world


def assumed(world: World) -> int:
    return world.assumptions.usage.amount(ROOT, amounts(onvif=1).items[0][0])


def test_what_is_held_is_nobody_elses() -> None:
    world = a_held_world()

    assert refusal(world, a_pod("b", queue="others", claims=["for-b"])).reason is Reason.OVER_LIMIT
    assert isinstance(verdict(world, a_pod("a", queue="mine", claims=["for-a"])), Admitted)


def test_it_counts_once_while_the_pod_is_assumed_to_be_bound_and_again_when_that_lapses() -> None:
    world = a_held_world()
    admit(world, a_pod("a", queue="mine", claims=["for-a"]))
    assert assumed(world) == 1

    world.assumptions.expire(NOW + timedelta(hours=1))

    assert assumed(world) == 1
    assert refusal(world, a_pod("b", queue="others", claims=["for-b"])).reason is Reason.OVER_LIMIT


def test_a_pod_that_is_bound_holds_nothing_but_what_it_is_charged() -> None:
    world = a_held_world()

    put(
        world,
        an_allocated_claim("for-a", "a", queue="mine"),
        a_pod("a", queue="mine", claims=["for-a"], node="node-a"),
    )

    assert (assumed(world), list(world.assumptions.holds)) == (0, [])


def test_a_pod_that_is_gone_holds_nothing() -> None:
    world = a_held_world()
    admit(world, a_pod("a", queue="mine", claims=["for-a"]))

    world.delete_pod(pod_uid("a"))

    assert assumed(world) == 0
    assert isinstance(verdict(world, a_pod("b", queue="others", claims=["for-b"])), Admitted)


def test_a_hold_that_ends_leaves_nothing() -> None:
    world = a_held_world()
    admit(world, a_pod("a", queue="mine", claims=["for-a"]))

    world.assumptions.holds.end(pod_uid("a"))
    assert assumed(world) == 1
    world.assumptions.forget(pod_uid("a"))

    assert assumed(world) == 0

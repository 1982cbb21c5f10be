"""What a claim needs next, where it needs several things."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.keeping.leaving import EvictForeign, LookAgain, OwnerLeftAt
from scheduler_plugin.keeping.leftovers import GRACE, Attribution, ClaimCleared, EndedOwner
from scheduler_plugin.keeping.upkeep import Upkeep
from scheduler_plugin.objects.names import OWNER_LEFT_AT_ANNOTATION
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    admit,
    an_allocated_claim,
    claim_uid,
)

CLAIM = claim_uid("cam")
FOREIGN = a_pod("b", queue="b", claims=["cam"], node="node-a")
ENDED = a_pod("ended", queue="b", claims=["cam"], node="node-a", phase="Failed")
QUEUES = (
    a_queue("a", claimSharing={"onOwnerExit": "Evict", "ownerExitGracePeriod": "5m"}),
    a_queue("b"),
)
LEFT = {"annotations": {OWNER_LEFT_AT_ANNOTATION: "2026-11-21T12:00:00Z"}}


def test_an_ended_owner_goes_first() -> None:
    world = a_world(*QUEUES, a_claim("cam", queue="a", owner_pod="gone", **LEFT))

    assert isinstance(Upkeep(world).next_step(CLAIM, NOW), EndedOwner)


def test_an_orphan_has_an_owner_before_anything_is_cleared_of_it() -> None:
    world = a_world(*QUEUES, FOREIGN, ENDED, an_allocated_claim("cam", "b", "ended"))
    upkeep = Upkeep(world, timedelta(0))

    assert isinstance(upkeep.next_step(CLAIM, NOW), Attribution)


def test_the_grace_of_what_is_left_over_runs_while_other_steps_are_taken() -> None:
    cam = an_allocated_claim("cam", "ended", "b", queue="a")
    world = a_world(*QUEUES, FOREIGN, ENDED, cam)
    upkeep = Upkeep(world)

    assert isinstance(upkeep.next_step(CLAIM, NOW), OwnerLeftAt)
    assert isinstance(upkeep.next_step(CLAIM, NOW + GRACE), ClaimCleared)


def test_the_earlier_of_two_times_is_the_one_to_look_again() -> None:
    cam = an_allocated_claim("cam", "ended", "b", queue="a", **LEFT)
    world = a_world(*QUEUES, FOREIGN, ENDED, cam)

    assert Upkeep(world).next_step(CLAIM, NOW) == LookAgain(NOW + GRACE)
    long = Upkeep(world, timedelta(hours=1))
    assert long.next_step(CLAIM, NOW) == LookAgain(NOW + timedelta(minutes=5))


def test_a_left_over_alone_is_looked_at_when_its_grace_is_over() -> None:
    upkeep = Upkeep(a_world(an_allocated_claim("cam")))

    assert upkeep.next_step(CLAIM, NOW) == LookAgain(NOW + GRACE)


def test_an_eviction_does_not_wait_for_the_grace_of_left_overs() -> None:
    cam = an_allocated_claim("cam", "ended", "b", queue="a", **LEFT)
    upkeep = Upkeep(a_world(*QUEUES, FOREIGN, ENDED, cam), timedelta(hours=1))
    due = NOW + timedelta(minutes=5)

    found = upkeep.next_step(CLAIM, due)
    assert isinstance(found, EvictForeign)
    assert upkeep.is_due(found, due)
    assert not upkeep.is_due(found, due - timedelta(seconds=1))


def test_an_eviction_goes_on_while_its_pods_go_and_until_the_owner_comes() -> None:
    other = a_pod("c", queue="c", claims=["cam"], node="node-a")
    back = a_pod("a", queue="a", claims=["cam"])
    cam = an_allocated_claim("cam", "b", "c", queue="a", **LEFT)
    world = a_world(*QUEUES, FOREIGN, other, back, cam)
    upkeep, due = Upkeep(world), NOW + timedelta(minutes=5)
    found = upkeep.next_step(CLAIM, due)
    assert isinstance(found, EvictForeign)

    world.delete_pod(FOREIGN.uid)

    assert not upkeep.is_due(found, due)
    assert upkeep.goes_on(found)
    admit(world, back, now=due)
    assert not upkeep.goes_on(found)
    world.delete_claim(CLAIM)
    assert not upkeep.goes_on(found)


def test_a_claim_in_order_needs_nothing() -> None:
    world = a_world(*QUEUES, FOREIGN, an_allocated_claim("cam", "b", queue="b"))

    assert Upkeep(world).next_step(CLAIM, NOW) is None
    assert Upkeep(world).next_step(claim_uid("unknown"), NOW) is None

"""What a claim needs next, where it needs several things."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.cleanup.claim_cleanup import ClaimCleanup
from scheduler_plugin.cleanup.owner_exits import EvictForeign, OwnerExitTime, RequeueAt
from scheduler_plugin.cleanup.stale_claims import GRACE, Attribution, ClaimCleared, EndedOwner
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

    assert isinstance(ClaimCleanup(world).next_step(CLAIM, NOW), EndedOwner)


def test_an_orphan_has_an_owner_before_anything_is_cleared_of_it() -> None:
    world = a_world(*QUEUES, FOREIGN, ENDED, an_allocated_claim("cam", "b", "ended"))
    cleanup = ClaimCleanup(world, timedelta(0))

    assert isinstance(cleanup.next_step(CLAIM, NOW), Attribution)


def test_the_grace_of_what_is_left_over_runs_while_other_steps_are_taken() -> None:
    cam = an_allocated_claim("cam", "ended", "b", queue="a")
    world = a_world(*QUEUES, FOREIGN, ENDED, cam)
    cleanup = ClaimCleanup(world)

    assert isinstance(cleanup.next_step(CLAIM, NOW), OwnerExitTime)
    assert isinstance(cleanup.next_step(CLAIM, NOW + GRACE), ClaimCleared)


def test_the_earlier_of_two_times_is_the_one_to_look_again() -> None:
    cam = an_allocated_claim("cam", "ended", "b", queue="a", **LEFT)
    world = a_world(*QUEUES, FOREIGN, ENDED, cam)

    assert ClaimCleanup(world).next_step(CLAIM, NOW) == RequeueAt(NOW + GRACE)
    long = ClaimCleanup(world, timedelta(hours=1))
    assert long.next_step(CLAIM, NOW) == RequeueAt(NOW + timedelta(minutes=5))


def test_a_left_over_alone_is_looked_at_when_its_grace_is_over() -> None:
    cleanup = ClaimCleanup(a_world(an_allocated_claim("cam")))

    assert cleanup.next_step(CLAIM, NOW) == RequeueAt(NOW + GRACE)


def test_an_eviction_does_not_wait_for_the_grace_of_left_overs() -> None:
    cam = an_allocated_claim("cam", "ended", "b", queue="a", **LEFT)
    cleanup = ClaimCleanup(a_world(*QUEUES, FOREIGN, ENDED, cam), timedelta(hours=1))
    due = NOW + timedelta(minutes=5)

    found = cleanup.next_step(CLAIM, due)
    assert isinstance(found, EvictForeign)
    assert cleanup.is_due(found, due)
    assert not cleanup.is_due(found, due - timedelta(seconds=1))


def test_an_eviction_goes_on_while_its_pods_go_and_until_the_owner_comes() -> None:
    other = a_pod("c", queue="c", claims=["cam"], node="node-a")
    back = a_pod("a", queue="a", claims=["cam"])
    cam = an_allocated_claim("cam", "b", "c", queue="a", **LEFT)
    world = a_world(*QUEUES, FOREIGN, other, back, cam)
    cleanup, due = ClaimCleanup(world), NOW + timedelta(minutes=5)
    found = cleanup.next_step(CLAIM, due)
    assert isinstance(found, EvictForeign)

    world.delete_pod(FOREIGN.uid)

    assert not cleanup.is_due(found, due)
    assert cleanup.may_continue(found)
    admit(world, back, now=due)
    assert not cleanup.may_continue(found)
    world.delete_claim(CLAIM)
    assert not cleanup.may_continue(found)


def test_a_claim_in_order_needs_nothing() -> None:
    world = a_world(*QUEUES, FOREIGN, an_allocated_claim("cam", "b", queue="b"))

    assert ClaimCleanup(world).next_step(CLAIM, NOW) is None
    assert ClaimCleanup(world).next_step(claim_uid("unknown"), NOW) is None

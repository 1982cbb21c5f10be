"""When an owner that the binder wrote ends, and when it is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.stale_claims import EndedOwner, ended_owner
from scheduler_plugin.objects.names import AccountingSettings, OwnerLifetime
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    admit,
    an_allocated_claim,
    claim_uid,
    put,
)

CLAIM = claim_uid("cam")
WRITTEN = {"queue": "a", "owner_pod": "a"}
FOR_THE_CLAIMS_LIFE = AccountingSettings(owner_lifetime=OwnerLifetime.CLAIM)


def has_ended(world: World) -> bool:
    return ended_owner(CLAIM, world) is not None


def test_an_owner_ends_with_the_allocation() -> None:
    world = a_world(a_claim("cam", **WRITTEN))

    assert ended_owner(CLAIM, world) == EndedOwner(
        namespace="default", name="cam", uid=CLAIM, resource_version="1"
    )


def test_an_owner_ends_although_its_pod_waits_to_run_again() -> None:
    assert has_ended(a_world(a_pod("a", claims=["cam"]), a_claim("cam", **WRITTEN)))


@pytest.mark.parametrize("allocated", [True, False])
def test_an_owner_stays_for_the_claims_life_where_that_is_set(allocated: bool) -> None:
    claim = an_allocated_claim if allocated else a_claim
    world = a_world(claim("cam", **WRITTEN), settings=FOR_THE_CLAIMS_LIFE)

    assert not has_ended(world)


def test_an_owner_that_a_user_named_never_ends() -> None:
    assert not has_ended(a_world(a_claim("cam", queue="a")))


def test_a_claim_without_a_label_is_left_alone_while_it_is_allocated() -> None:
    pod = a_pod("b", claims=["cam"])

    assert not has_ended(a_world(pod, an_allocated_claim("cam", "b", owner_pod="a")))


def test_a_pod_that_nobody_owns_by_is_removed_with_the_allocation() -> None:
    assert has_ended(a_world(a_claim("cam", owner_pod="a")))


def test_a_claim_that_is_not_known_has_nothing_to_end() -> None:
    assert not has_ended(a_world())


def test_an_owner_stays_while_its_pod_has_reserved_the_claim() -> None:
    """Between the label and the binding: the pod has no node yet."""
    pod = a_pod("a", claims=["cam"])

    assert not has_ended(a_world(pod, an_allocated_claim("cam", "a", **WRITTEN)))


def test_an_owner_stays_while_a_foreign_pod_runs() -> None:
    pod = a_pod("b", claims=["cam"], node="node-a")

    assert not has_ended(a_world(pod, an_allocated_claim("cam", "b", **WRITTEN)))


def test_a_stale_owner_ends_while_others_wait_to_be_bound() -> None:
    pod = a_pod("b", claims=["cam"])

    assert has_ended(a_world(pod, an_allocated_claim("cam", "b", **WRITTEN)))


def test_an_owner_stays_until_deleted_consumers_are_taken_out_of_the_claim() -> None:
    world = a_world(an_allocated_claim("cam", "b", **WRITTEN))

    assert not has_ended(world)
    put(world, an_allocated_claim("cam", **WRITTEN))
    assert has_ended(world)


def test_an_owner_stays_where_something_else_than_a_pod_uses_the_claim() -> None:
    used = an_allocated_claim("cam", **WRITTEN)
    assert has_ended(a_world(used))

    assert not has_ended(a_world(replace(used, other_consumers=1)))


def test_a_decision_in_flight_keeps_the_owner_until_it_is_over() -> None:
    pod = a_pod("b", queue="b", claims=["cam"])
    world = a_world(a_queue("a"), a_queue("b"), pod, a_claim("cam", **WRITTEN))
    admit(world, pod)
    assert not has_ended(world)

    world.assumptions.forget(pod.uid)

    assert has_ended(world)


def test_a_decision_that_lapsed_keeps_nothing() -> None:
    pod = a_pod("b", queue="b", claims=["cam"])
    world = a_world(a_queue("a"), a_queue("b"), pod, a_claim("cam", **WRITTEN), settings=SETTINGS)
    admit(world, pod)

    world.assumptions.expire(NOW.replace(hour=13))

    assert has_ended(world)

"""What is cleared of claims after a while, and what is left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.stale_claims import GRACE, ClaimCleared, StaleClaims, lost_queue
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.claims import ClaimView, DeviceId, GroupConsumer
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_class,
    a_group,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    admit,
    amounts,
    an_allocated_claim,
    claim_uid,
    pod_uid,
    put,
)

CLAIM = claim_uid("cam")
RUNS = a_pod("runs", queue="a", claims=["cam"], node="node-a")
ENDED = a_pod("ended", queue="a", claims=["cam"], node="node-a", phase="Succeeded")


def cleared(*gone: PodUid, deallocate: bool) -> ClaimCleared:
    return ClaimCleared(
        namespace="default",
        name="cam",
        uid=CLAIM,
        resource_version="1",
        gone=gone,
        deallocate=deallocate,
    )


def after_the_grace(world: World) -> object:
    stale_parts = StaleClaims(world)
    assert not isinstance(stale_parts.look(CLAIM, NOW), ClaimCleared)
    return stale_parts.look(CLAIM, NOW + GRACE)


def test_an_allocation_that_nobody_reserves_is_cleared_after_a_grace() -> None:
    stale_parts = StaleClaims(a_world(an_allocated_claim("cam")))

    assert stale_parts.look(CLAIM, NOW) == NOW + GRACE
    assert stale_parts.look(CLAIM, NOW + GRACE - timedelta(seconds=1)) == NOW + GRACE
    assert stale_parts.look(CLAIM, NOW + GRACE) == cleared(deallocate=True)


def test_an_allocation_that_is_used_in_between_has_its_grace_anew() -> None:
    world = a_world(RUNS, an_allocated_claim("cam"))
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    put(world, an_allocated_claim("cam", "runs"))
    assert stale_parts.look(CLAIM, NOW + GRACE) is None
    assert len(stale_parts) == 0
    put(world, an_allocated_claim("cam"))

    assert stale_parts.look(CLAIM, NOW + GRACE) == NOW + 2 * GRACE


def test_a_clock_that_is_set_back_begins_the_grace_anew_and_adds_nothing_to_it() -> None:
    stale_parts = StaleClaims(a_world(an_allocated_claim("cam")))
    stale_parts.look(CLAIM, NOW + timedelta(days=1))

    assert stale_parts.look(CLAIM, NOW) == NOW + GRACE
    assert stale_parts.look(CLAIM, NOW + GRACE) == cleared(deallocate=True)


def test_an_allocation_that_a_decision_relies_on_is_left_alone() -> None:
    pod = a_pod("a", queue="a", claims=["cam"])
    world = a_world(a_queue("a"), pod, an_allocated_claim("cam"))
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    admit(world, pod, now=NOW + GRACE)

    assert stale_parts.look(CLAIM, NOW + GRACE) is None


@pytest.mark.parametrize("groups", [["train"], []])
def test_a_group_that_is_tried_in_vain_does_not_keep_an_allocation(groups: list[str]) -> None:
    """kube-scheduler asks for each pod of a group, though another of them fits nowhere.

    The allocation may be the reason: it keeps the group on nodes that have no room for it.
    """
    pod = member("a")
    world = a_world(a_queue("a"), a_group(), pod, with_groups(groups=groups))
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    for seconds in range(0, 150, 10):
        now = NOW + timedelta(seconds=seconds)
        admit(world, pod, now=now)
        assert stale_parts.look(CLAIM, now) is None
        world.assumptions.forget(pod.uid)
        assert (stale_parts.look(CLAIM, now) == NOW + GRACE) is (now < NOW + GRACE)

    assert isinstance(stale_parts.look(CLAIM, NOW + GRACE), ClaimCleared)


def test_finished_pods_are_taken_out_of_a_claim() -> None:
    world = a_world(RUNS, ENDED, an_allocated_claim("cam", "ended", "runs"))

    assert after_the_grace(world) == cleared(pod_uid("ended"), deallocate=False)


def test_with_the_last_finished_pod_the_allocation_goes() -> None:
    world = a_world(ENDED, an_allocated_claim("cam", "ended"))

    assert after_the_grace(world) == cleared(pod_uid("ended"), deallocate=True)


def test_a_pod_that_finishes_later_has_its_own_grace() -> None:
    world = a_world(RUNS, ENDED, an_allocated_claim("cam", "ended", "runs"))
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    put(world, replace(RUNS, ended=True))
    later = NOW + GRACE

    # Whoever ends next holds nobody up: pods that share a claim may end all the time.
    assert stale_parts.look(CLAIM, later) == cleared(pod_uid("ended"), deallocate=False)
    put(world, an_allocated_claim("cam", "runs"))
    assert stale_parts.look(CLAIM, later) == later + GRACE
    assert stale_parts.look(CLAIM, later + GRACE) == cleared(pod_uid("runs"), deallocate=True)


def test_consumers_that_are_not_known_or_no_pods_keep_the_allocation() -> None:
    assert after_the_grace(a_world(an_allocated_claim("cam", "unknown"))) is None
    used = replace(an_allocated_claim("cam"), other_consumers=1)
    assert after_the_grace(a_world(used)) is None


def test_what_queues_do_not_count_is_left_alone() -> None:
    theirs = [a_result(driver="gpu.example.com")]
    uncounted = an_allocated_claim("cam", requests=[a_request("gpu")], results=theirs)

    assert after_the_grace(a_world(a_class("gpu"), uncounted)) is None


def test_a_claim_for_extended_resources_is_kube_schedulers_to_delete() -> None:
    pod = replace(a_pod("a", queue="a", requests={"akri.sh/onvif": 1}), extended_claim="cam")

    assert after_the_grace(a_world(pod, an_allocated_claim("cam"))) is None


def test_a_claim_that_is_deleted_is_forgotten() -> None:
    world = a_world(an_allocated_claim("cam"))
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    world.delete_claim(CLAIM)

    assert stale_parts.look(CLAIM, NOW + GRACE) is None
    assert len(stale_parts) == 0


def test_a_claim_of_a_deleted_queue_is_told() -> None:
    world = a_world(a_queue("a"), a_claim("cam", queue="a"))
    assert lost_queue(CLAIM, world) is None

    world.delete_queue(QueueName("a"))

    found = lost_queue(CLAIM, world)
    assert str(found) == (
        'ResourceClaim default/cam belongs to queue "a", which does not exist: pods cannot use'
        " it. Create the queue or the claim again."
    )


def test_a_running_claim_of_a_deleted_queue_is_told() -> None:
    world = a_world(RUNS, an_allocated_claim("cam", "runs", queue="gone"))

    assert "counts against no limit" in str(lost_queue(CLAIM, world))


def test_a_stale_label_of_a_deleted_queue_is_no_news() -> None:
    """The binder removes it anyway."""
    assert lost_queue(CLAIM, a_world(a_claim("cam", queue="gone", owner_pod="a"))) is None
    uncounted = a_claim("cam", queue="gone", requests=[a_request("gpu")])
    assert lost_queue(CLAIM, a_world(a_class("gpu"), uncounted)) is None


# Of what is held for others.


def a_world_with_a_hold() -> World:
    """Pod `a` was given the device that is held for pod `w`, and was refused."""
    pod = a_pod("a", queue="a", claims=["cam"])
    waits = a_pod("w", queue="a", claims=["other"])
    given = a_result(pool="n", device="d1")
    allocated = an_allocated_claim("cam", results=[given])
    world = a_world(a_queue("a"), pod, waits, allocated, a_claim("other"))
    hold = Hold(waits.uid, "Pod default/w", QueueName("a"), amounts(onvif=1), NO_CHARGES)
    devices = ((DeviceId("moorage.dev", "n", "d1"), 1),)
    world.hold(replace(hold, is_device=True, devices=devices, node="n"))
    return world


def test_an_allocation_of_a_device_that_is_held_for_another_pod_is_cleared_at_once() -> None:
    """Kept, it would keep the device from the pod that it is held for."""
    world = a_world_with_a_hold()

    assert StaleClaims(world).look(CLAIM, NOW) == cleared(deallocate=True)


def test_it_is_cleared_while_the_pod_that_was_given_it_is_tried_again() -> None:
    world = a_world_with_a_hold()
    pod = world.facts.pod(pod_uid("a"))
    assert pod is not None
    admit(world, pod, now=NOW)

    assert StaleClaims(world).look(CLAIM, NOW) == cleared(deallocate=True)


def test_what_the_pod_has_for_which_it_is_held_is_left_alone() -> None:
    world = a_world_with_a_hold()
    put(world, a_pod("w", queue="a", claims=["cam"]))

    assert StaleClaims(world).look(CLAIM, NOW) == NOW + GRACE


# PodGroups.


TRAIN = GroupConsumer("train", "uid-of-train")


def member(name: str, **traits: Any) -> PodView:
    return a_pod(name, **{"queue": "a", "claims": ["cam"], "group": "train", **traits})


def with_groups(*pods: str, **traits: Any) -> ClaimView:
    return an_allocated_claim("cam", *pods, **{"groups": ["train"], **traits})


def test_a_group_without_users_is_removed_after_a_grace_with_the_allocation() -> None:
    runs = member("runs", node="node-a")
    world = a_world(a_queue("a"), a_group(), runs, member("waits"), with_groups())
    stale_parts = StaleClaims(world)
    assert stale_parts.look(CLAIM, NOW) is None

    put(world, replace(runs, ended=True))

    assert stale_parts.look(CLAIM, NOW) == NOW + GRACE
    assert stale_parts.look(CLAIM, NOW + GRACE) == replace(
        cleared(deallocate=True), groups=(TRAIN,)
    )


def test_a_group_that_was_evicted_for_room_of_its_queue_is_removed_at_once() -> None:
    """The pod that waits gets another device, but not before this claim is paid for no more."""
    world = a_world(a_queue("a"), a_group(), with_groups())
    none = amounts()
    world.hold(Hold(pod_uid("w"), "Pod w", QueueName("a"), none, NO_CHARGES, awaits=(CLAIM,)))

    found = StaleClaims(world).look(CLAIM, NOW)

    assert found == replace(cleared(deallocate=True), groups=(TRAIN,))


def test_a_nominated_pod_does_not_keep_a_claim_that_was_taken_back() -> None:
    """Bind refuses it: its devices are held for another pod."""
    named = member("a", status={"nominatedNodeName": "node-a"})
    world = a_world(a_queue("a"), a_group(), named, with_groups())
    none = amounts()
    world.hold(Hold(pod_uid("w"), "Pod w", QueueName("a"), none, NO_CHARGES, awaits=(CLAIM,)))

    found = StaleClaims(world).look(CLAIM, NOW)

    assert found == replace(cleared(deallocate=True), groups=(TRAIN,))


def test_a_group_that_uses_the_claim_again_has_its_grace_anew() -> None:
    world = a_world(a_queue("a"), a_group(), with_groups())
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    put(world, member("runs", node="node-a"))
    assert stale_parts.look(CLAIM, NOW + GRACE) is None

    world.delete_pod(pod_uid("runs"))

    assert stale_parts.look(CLAIM, NOW + GRACE) == NOW + 2 * GRACE


def test_a_group_without_users_beside_a_pod_leaves_the_allocation() -> None:
    world = a_world(a_queue("a"), a_group(), RUNS, with_groups("runs"))

    assert after_the_grace(world) == replace(cleared(deallocate=False), groups=(TRAIN,))


def test_a_finished_pod_and_a_group_without_users_end_the_allocation_together() -> None:
    world = a_world(a_queue("a"), a_group(), ENDED, with_groups("ended"))

    expected = cleared(pod_uid("ended"), deallocate=True)
    assert after_the_grace(world) == replace(expected, groups=(TRAIN,))


def test_a_second_group_that_uses_the_claim_keeps_it() -> None:
    users = member("runs", node="node-a", group="other"), a_group("other")
    world = a_world(a_queue("a"), a_group(), *users, with_groups(groups=["train", "other"]))

    assert after_the_grace(world) == replace(cleared(deallocate=False), groups=(TRAIN,))


def test_of_an_unknown_group_nothing_is_cleared() -> None:
    assert after_the_grace(a_world(a_queue("a"), with_groups())) is None


def test_a_deleted_group_is_removed_where_kubernetes_did_not() -> None:
    world = a_world(a_queue("a"), a_group(), with_groups())
    world.delete_group("default", "train")

    assert after_the_grace(world) == replace(cleared(deallocate=True), groups=(TRAIN,))


def test_a_group_of_which_a_pod_is_being_bound_is_left_alone() -> None:
    pod = member("a")
    world = a_world(a_queue("a"), a_group(), pod, with_groups())
    stale_parts = StaleClaims(world)
    stale_parts.look(CLAIM, NOW)
    admit(world, pod, now=NOW + GRACE)

    assert stale_parts.look(CLAIM, NOW + GRACE) is None


def test_a_group_of_which_a_pod_waits_for_its_devices_to_be_ready_is_left_alone() -> None:
    """Binding conditions and volumes may take minutes, and its assumption has lapsed by then."""
    named = member("a", status={"nominatedNodeName": "node-a"})
    world = a_world(a_queue("a"), a_group(), named, with_groups())

    assert after_the_grace(world) is None
    put(world, member("a"))
    assert after_the_grace(world) == replace(cleared(deallocate=True), groups=(TRAIN,))


def test_a_nominated_pod_that_is_being_deleted_keeps_no_group() -> None:
    named = member("a", status={"nominatedNodeName": "node-a"})
    world = a_world(a_queue("a"), a_group(), replace(named, deleting=True), with_groups())

    assert after_the_grace(world) == replace(cleared(deallocate=True), groups=(TRAIN,))


def test_a_group_whose_device_is_held_is_removed_at_once() -> None:
    user = member("runs", node="node-a")
    world = a_world(a_queue("a"), a_group(), user, with_groups())
    device = next(iter(with_groups().devices))
    world.hold(
        Hold(
            pod_uid("w"),
            "Pod w",
            QueueName("a"),
            amounts(onvif=1),
            NO_CHARGES,
            is_device=True,
            devices=((device, 1),),
        )
    )
    stale_parts = StaleClaims(world)
    assert stale_parts.look(CLAIM, NOW) is None

    world.delete_pod(user.uid)

    assert stale_parts.look(CLAIM, NOW) == replace(cleared(deallocate=True), groups=(TRAIN,))
    other = member("a")
    put(world, other)
    admit(world, other)
    assert stale_parts.look(CLAIM, NOW) == replace(cleared(deallocate=True), groups=(TRAIN,))
    world.assumptions.binding_requested(other.uid)
    assert stale_parts.look(CLAIM, NOW) is None

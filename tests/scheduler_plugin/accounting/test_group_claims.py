"""Claims that are reserved for PodGroups: which pods use them, who pays, and when they end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting.charges.owners import (
    is_orphan,
    is_stale,
    labelled_owner,
    owner_of,
)
from scheduler_plugin.accounting.freshness import claims_to_read
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.claims import ClaimView, GroupConsumer
from scheduler_plugin.objects.names import NO_QUEUE, QueueName, Reason
from scheduler_plugin.objects.pods import PodClaim, PodGroupView, PodView
from scheduler_plugin.reclaiming.victims.effects import has_no_user_without
from scheduler_plugin.reclaiming.victims.victims import Victim, held_by_claim
from tests.scheduler_plugin.builders import (
    NOW,
    UNSCHEDULABLE,
    a_claim,
    a_group,
    a_pod,
    a_queue,
    a_result,
    a_world,
    admit,
    amounts,
    an_allocated_claim,
    claim_uid,
    our_class,
    pod_uid,
    put,
    refusal,
    usage,
)

VISION, ROBOTS = QueueName("vision"), QueueName("robots")
CAM = claim_uid("cam")


def a_member(name: str, *, queue: str = "vision", **traits: Any) -> PodView:
    return a_pod(name, **{"queue": queue, "claims": ["cam"], "group": "train", **traits})


def bound(name: str, **traits: Any) -> PodView:
    return a_member(name, **{"node": "node-a", **traits})


def reserved(**traits: Any) -> ClaimView:
    return an_allocated_claim("cam", **{"groups": ["train"], **traits})


def the_claim(world: World) -> ClaimView:
    claim = world.facts.claim(CAM)
    assert claim is not None
    return claim


def a_shared_world(*objects: object) -> World:
    queues = a_queue("vision", onvif=(9, 9)), a_queue("robots", onvif=(9, 9))
    return a_world(*queues, a_group(), *objects)


# Users.


def test_bound_pods_of_the_group_that_name_the_claim_use_it() -> None:
    world = a_shared_world(
        bound("a"),
        bound("b", status={"conditions": []}, created="2026-11-21T10:00:00Z"),
        a_member("waits"),
        bound("ended", phase="Succeeded"),
        bound("elsewhere", claims=["other"]),
        bound("of-another", group="other"),
        a_pod("alone", claims=["cam"], node="node-a"),
        reserved(),
    )

    assert the_claim(world).reserved_for == (pod_uid("b"), pod_uid("a"))
    assert world.facts.groups_without_users(the_claim(world)) == ()


def test_a_pod_with_an_entry_of_its_own_is_counted_once() -> None:
    world = a_shared_world(bound("a"), bound("b"), reserved(pods=["b"]))
    claim = the_claim(world)

    assert claim.reserved_for == (pod_uid("b"), pod_uid("a"))
    assert (claim.group_users, claim.consumer_entries) == ((pod_uid("a"),), 2)


def test_a_podgroup_of_another_api_stands_for_nothing() -> None:
    """KAI's PodGroup of that name may even have the UID."""
    kais = replace(a_group(), api_version="scheduling.run.ai/v2alpha2")
    world = a_world(kais, bound("a"), reserved())

    assert the_claim(world).reserved_for == ()
    assert the_claim(world).unknown_groups == (GroupConsumer("train", "uid-of-train"),)


@pytest.mark.parametrize("kai_last", [True, False])
def test_a_podgroup_of_another_api_with_the_same_name_changes_nothing(kai_last: bool) -> None:
    kais = PodGroupView("default", "train", ROBOTS, api_version="scheduling.run.ai/v2alpha2")
    groups = [a_group(), kais] if kai_last else [kais, a_group()]
    world = a_world(*groups, bound("a"), reserved())

    assert the_claim(world).reserved_for == (pod_uid("a"),)


def test_users_follow_every_event() -> None:
    world = a_shared_world(reserved(), bound("a"))
    assert the_claim(world).reserved_for == (pod_uid("a"),)
    put(world, a_member("b"))
    assert the_claim(world).reserved_for == (pod_uid("a"),)
    put(world, bound("b"))
    assert the_claim(world).reserved_for == (pod_uid("a"), pod_uid("b"))
    put(world, bound("a", phase="Failed"))
    assert the_claim(world).reserved_for == (pod_uid("b"),)
    world.delete_pod(pod_uid("b"))
    assert the_claim(world).reserved_for == ()
    assert world.take_regrouped() == (CAM,)
    assert world.take_regrouped() == ()


def test_the_same_claim_once_more_changes_nothing() -> None:
    world = a_shared_world(bound("a"), reserved())

    put(world, reserved(), the_claim(world))

    assert the_claim(world).reserved_for == (pod_uid("a"),)
    assert the_claim(world).consumer_entries == 1


# PodGroups that are unknown, deleted, or created anew.


def test_while_the_podgroup_is_unknown_its_entry_is_another_consumer() -> None:
    world = a_world(bound("a"), reserved(queue="vision", owner_pod="gone"))
    claim = the_claim(world)

    assert (claim.groups, claim.other_consumers, claim.consumer_entries) == ((), 1, 1)
    assert not is_stale(claim, world.facts)
    put(world, a_group())
    assert (the_claim(world).other_consumers, the_claim(world).reserved_for) == (0, (pod_uid("a"),))


def test_the_entry_of_a_deleted_podgroup_stands_for_no_pod() -> None:
    world = a_shared_world(bound("a"), reserved())

    world.delete_group("default", "train")

    claim = the_claim(world)
    assert (claim.reserved_for, claim.other_consumers) == ((), 0)
    assert claim.groups == (GroupConsumer("train", "uid-of-train"),)


def test_a_podgroup_of_which_pods_run_is_not_cleared_though_it_is_deleted() -> None:
    world = a_shared_world(bound("a"), reserved())
    world.delete_group("default", "train")

    assert world.facts.groups_without_users(the_claim(world)) == ()
    world.delete_pod(pod_uid("a"))
    assert world.facts.groups_without_users(the_claim(world)) == the_claim(world).groups


def test_the_entry_of_a_former_podgroup_does_not_stand_for_the_pods_of_the_new_one() -> None:
    world = a_shared_world(a_group(uid="of-the-new-one"), a_member("a"), reserved())

    claim = the_claim(world)
    assert not world.facts.is_reserved_for(claim, a_member("a"))
    assert claims_to_read(a_member("a"), world.facts) == ("cam",)
    put(world, bound("a"))
    assert the_claim(world).reserved_for == ()


# Binding.


def test_a_claim_is_fresh_for_the_pods_of_the_podgroup() -> None:
    world = a_shared_world(reserved())

    assert claims_to_read(a_member("a"), world.facts) == ()
    assert claims_to_read(a_member("a", group="other"), world.facts) == ("cam",)
    assert claims_to_read(a_pod("a", claims=["cam"]), world.facts) == ("cam",)


def test_the_owner_stands_from_its_writing_to_the_binding_and_after() -> None:
    world = a_shared_world(a_member("a"), a_member("b"), reserved(queue="vision", owner_pod="a"))

    assert labelled_owner(the_claim(world), world.facts) == VISION
    assert usage(world, "vision") == amounts(onvif=1)
    put(world, bound("a"))
    assert labelled_owner(the_claim(world), world.facts) == VISION
    put(world, bound("b"), bound("a", phase="Succeeded"))
    assert labelled_owner(the_claim(world), world.facts) == VISION
    world.delete_pod(pod_uid("a"))
    assert usage(world, "vision") == amounts(onvif=1)


def test_the_queue_pays_until_the_reservation_of_the_group_is_removed() -> None:
    """Otherwise groups that end at once would keep devices at the cost of no queue."""
    world = a_shared_world(bound("a"), reserved(queue="vision", owner_pod="a"))

    world.delete_pod(pod_uid("a"))

    entry = world.ledger.claim(CAM)
    assert entry is not None
    assert (usage(world, "vision"), entry.terminating) == (amounts(onvif=1), True)
    put(world, a_claim("cam", queue="vision", owner_pod="a"))
    assert labelled_owner(the_claim(world), world.facts) is None
    assert usage(world, "vision") == amounts()


def test_a_running_group_that_was_deleted_is_charged_until_its_reservation_is_removed() -> None:
    world = a_shared_world(bound("a"), reserved(queue="vision", owner_pod="a"))

    world.delete_group("default", "train")

    assert usage(world, "vision") == amounts(onvif=1)


def test_an_owner_that_was_never_bound_stays_as_long_as_the_reservation() -> None:
    world = a_shared_world(a_member("a"), a_member("b"), reserved(queue="vision", owner_pod="a"))

    world.delete_pod(pod_uid("a"))

    assert labelled_owner(the_claim(world), world.facts) == VISION
    admit(world, a_member("b"))


def test_no_pod_of_another_queue_uses_a_claim_at_the_cost_of_the_former_users() -> None:
    waits = a_member("b", queue="robots")
    world = a_shared_world(bound("a"), waits, reserved(queue="vision", owner_pod="a"))
    world.delete_pod(pod_uid("a"))

    found = refusal(world, waits)

    assert found.reason is Reason.POD_GROUP_QUEUE_MISMATCH
    assert found.sentence == (
        'ResourceClaim default/cam is reserved for PodGroup default/train, and queue "vision" pays'
        ' for it until the reservation is removed; Pod default/b is of queue "robots".'
    )
    put(world, a_claim("cam", queue="vision", owner_pod="a"))
    assert [use.owner for use in admit(world, waits).claims] == [ROBOTS]


def test_before_an_owner_is_written_the_oldest_waiting_member_decides_it() -> None:
    """After a restart: no decision in flight is known."""
    young, old = a_member("a"), a_member("b", created="2026-11-21T10:00:00Z")
    world = a_shared_world(young, old, reserved())
    claim = the_claim(world)

    found = owner_of(claim, world.facts, None)

    assert found is not None
    assert (found.queue, found.pod, found.is_orphans) == (VISION, pod_uid("b"), False)


def test_two_members_that_bind_at_once_add_nothing_to_each_other() -> None:
    world = a_world(a_queue("vision", onvif=(1, 1)), a_group())
    members = [a_member("a"), a_member("b")]
    put(world, *members, reserved())
    for member in members:
        admit(world, member, at_bind=True)
    put(world, reserved(queue="vision", owner_pod="a"))

    found = admit(world, members[1], at_bind=True)

    assert [(use.owner, use.counted) for use in found.claims] == [(VISION, amounts(onvif=1))]


def test_sixty_four_pods_of_a_group_are_charged_for_one_claim() -> None:
    results = [a_result(device=f"onvif-{number}") for number in range(8)]
    world = a_world(a_queue("vision", onvif=(8, 8)), a_group())
    put(world, reserved(results=results, queue="vision", owner_pod="0"))
    for number in range(64):
        member = a_member(str(number))
        put(world, member)
        assume(member, admit(world, member, at_bind=True), world, NOW)
        put(world, bound(str(number)))

    assert usage(world, "vision") == amounts(onvif=8)
    assert world.ledger.of(VISION).owned == 1


def test_more_pods_than_a_status_holds_share_a_claim_of_a_group() -> None:
    world = a_shared_world(*(bound(f"p{number}") for number in range(300)), a_member("next"))
    put(world, reserved(queue="vision", owner_pod="p0"))

    admit(world, a_member("next"))

    assert the_claim(world).consumer_entries == 1
    alone = a_pod("alone", queue="vision", claims=["cam"])
    put(world, alone, reserved(pods=[f"x{number}" for number in range(255)], queue="vision"))
    assert refusal(world, alone).reason is Reason.CLAIM_FULL
    admit(world, a_member("next"))


@pytest.mark.parametrize(
    ("entry", "listed", "count"),
    [
        ({"resourceClaimName": "cam"}, ("cam", "cam", ""), 1),
        ({"resourceClaimTemplateName": "cams"}, ("cam", "", "cams"), 1),
        ({"resourceClaimName": "cam"}, ("another-name", "cam", ""), 300),
        ({"resourceClaimName": "cam"}, ("cam", "", "cams"), 300),
    ],
)
def test_a_group_that_comes_as_a_whole_adds_one_entry_if_it_lists_the_claim(
    entry: dict[str, str], listed: tuple[str, str, str], count: int
) -> None:
    """Before it is reserved for the first time: no entry tells of the group yet."""
    world = a_world(a_queue("vision", onvif=(9, 9)), a_group(claims=frozenset({PodClaim(*listed)})))
    put(world, a_claim("cam"))
    claims = [{"name": "cam", **entry}]
    status = {"resourceClaimStatuses": [{"name": "cam", "resourceClaimName": "cam"}]}
    pods = [a_member(f"p{n}", resource_claims=claims, status=status) for n in range(300)]
    put(world, *pods)

    admitted = 0
    for pod in pods:
        found = judge(pod, world.facts.claims_of(pod), world)
        if isinstance(found, Admitted):
            assume(pod, found, world, NOW)
            admitted += 1

    assert admitted == (300 if count == 1 else 256)
    alone = a_pod("alone", queue="vision", claims=["cam"])
    put(world, alone)
    assert isinstance(judge(alone, world.facts.claims_of(alone), world), Admitted) is (count == 1)


def test_a_class_limits_pods_and_not_entries() -> None:
    world = a_shared_world(bound("a"), bound("b"), a_member("c"), reserved(queue="vision"))
    world.put_class(our_class(annotations={"moorage.dev/max-pods-per-claim": "2"}))

    assert refusal(world, a_member("c")).reason is Reason.TOO_MANY_SHARERS
    world.delete_pod(pod_uid("b"))
    admit(world, a_member("c"))


def test_the_users_of_a_group_go_as_one_set_where_the_claim_is_taken_back() -> None:
    members = bound("a"), bound("b"), a_member("waits")
    world = a_shared_world(*members, reserved(queue="vision", owner_pod="a"))

    victim = held_by_claim(CAM, world)

    assert isinstance(victim, Victim)
    assert {pod.name for pod in victim.users} == {"a", "b"}
    gone = {pod_uid("a")}
    assert not has_no_user_without(the_claim(world), gone, world)
    assert has_no_user_without(the_claim(world), {*gone, pod_uid("b")}, world)


# Whose claim it is.


def test_a_group_shares_what_is_reserved_for_another_group_also_while_that_has_no_pod() -> None:
    waits = a_member("b", queue="robots", group="other")
    world = a_shared_world(bound("a"), a_group("other"), waits)
    put(world, reserved(queue="vision", owner_pod="a", groups=["train", "other"]))
    world.delete_pod(pod_uid("a"))

    assert [use.owner for use in admit(world, waits).claims] == [VISION]
    put(world, a_queue("vision", onvif=(9, 9), claimSharing={"policy": "Deny"}))
    assert refusal(world, waits).reason is Reason.CLAIM_SHARING_DENIED


def test_members_of_another_queue_are_refused_once_a_member_uses_the_claim() -> None:
    world = a_shared_world(bound("a"), reserved(queue="vision", owner_pod="a"))
    other = a_member("b", queue="robots")
    put(world, other)

    found = refusal(world, other)

    assert found.reason is Reason.POD_GROUP_QUEUE_MISMATCH
    assert found.sentence == (
        "ResourceClaim default/cam is reserved for PodGroup default/train, and Pod default/a of"
        ' queue "vision" uses it; Pod default/b is of queue "robots".'
    )


def test_the_queue_of_a_member_counts_from_the_writing_of_the_owner() -> None:
    world = a_shared_world(a_member("a"), reserved(queue="vision", owner_pod="a"))

    found = refusal(world, a_member("b", queue="robots"), at_bind=True)

    assert found.reason is Reason.POD_GROUP_QUEUE_MISMATCH


def test_a_group_may_share_the_claim_of_another_queue_if_that_queue_shares() -> None:
    """Entries of pods and of a PodGroup stand side by side."""
    owner = a_pod("owner", queue="vision", claims=["cam"], node="node-a")
    claim = reserved(pods=["owner"], queue="vision", owner_pod="owner")
    members = [bound("a", queue="robots"), a_member("b", queue="robots")]
    world = a_shared_world(owner, claim, *members)

    admit(world, members[1])
    assert (usage(world, "vision"), usage(world, "robots")) == (amounts(onvif=1), amounts())
    assert world.ledger.of(VISION).shared_out == 1

    put(world, a_queue("vision", onvif=(9, 9), claimSharing={"policy": "Deny"}))
    assert refusal(world, members[1]).reason is Reason.CLAIM_SHARING_DENIED


def test_a_foreign_member_must_be_preemptible() -> None:
    owner = a_pod("owner", queue="vision", claims=["cam"], node="node-a")
    claim = reserved(pods=["owner"], queue="vision", owner_pod="owner")
    member = a_member("a", queue="robots", non_preemptible=True)
    world = a_shared_world(owner, claim, member)

    assert refusal(world, member).reason is Reason.FOREIGN_NON_PREEMPTIBLE


def test_a_claim_of_a_group_that_another_scheduler_bound_is_an_orphan() -> None:
    pods = bound("b", unjudged=True), bound("a", unjudged=True, created="2026-11-21T10:00:00Z")
    world = a_shared_world(*pods, reserved())
    claim = the_claim(world)

    found = owner_of(claim, world.facts, None)

    assert is_orphan(claim, world.facts)
    assert found is not None
    assert (found.queue, found.pod, found.is_orphans) == (VISION, pod_uid("a"), True)
    assert world.ledger.orphans() == (CAM,)


def test_a_claim_without_an_owner_and_without_users_is_nobodys() -> None:
    world = a_shared_world(reserved())
    entry = world.ledger.claim(CAM)

    assert entry is not None
    assert (entry.owner, entry.orphan) == (NO_QUEUE, False)


@pytest.mark.parametrize(("group", "is_assumed"), [("train", False), ("", True)])
def test_a_cycle_of_a_group_that_failed_ends_what_is_assumed_of_its_pods(
    group: str, is_assumed: bool
) -> None:
    """Any other pod fails before Filter, or is tried again: its condition may be an older one."""
    waits = a_member("a", group=group)
    world = a_shared_world(waits, reserved(groups=["train"], pods=["a"]))
    admit(world, waits)

    put(world, a_member("a", group=group, status=UNSCHEDULABLE))

    assert world.assumptions.is_assumed(pod_uid("a")) is is_assumed
    admit(world, a_member("a", group=group, status=UNSCHEDULABLE))
    put(world, a_member("a", group=group, status=UNSCHEDULABLE, labels={"another": "label"}))
    assert world.assumptions.is_assumed(pod_uid("a"))


def test_a_decision_in_flight_decides_for_the_members_that_bind_before_its_pod() -> None:
    world = a_shared_world(a_member("a"), a_member("b"), reserved())
    admit(world, a_member("a"))

    found = admit(world, a_member("b"), at_bind=True)

    assert [use.owner_pod for use in found.claims] == [pod_uid("a")]
    assert world.assumptions.pods(CAM)
    world.assumptions.expire(NOW + timedelta(days=1))
    assert not world.assumptions.pods(CAM)

"""Whose a claim is, what the ledger makes of it, and how long a decision is believed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler_plugin.accounting.assumed import AssumedClaim, AssumedPod
from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.accounting.charges.entries import QueueUsage
from scheduler_plugin.accounting.charges.owners import (
    Owner,
    is_orphan,
    labelled_owner,
    owner_of,
)
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.names import (
    NO_QUEUE,
    AccountingSettings,
    ClaimUid,
    OrphanPolicy,
    OwnerLifetime,
    PodUid,
    QueueName,
)
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_world,
    admit,
    amounts,
    an_allocated_claim,
    claim_uid,
    pod_uid,
    put,
    usage,
)

VISION, ROBOTS = QueueName("vision"), QueueName("robots")


def test_label_that_a_user_set_never_becomes_stale() -> None:
    world = a_world()

    assert labelled_owner(a_claim(queue="vision"), world.facts) == VISION
    assert labelled_owner(an_allocated_claim("cam", "b", queue="vision"), world.facts) == VISION


@pytest.mark.parametrize(
    ("consumers", "bound", "owner"),
    [
        (["a"], "", VISION),
        (["b"], "b", VISION),
        (["b"], "", None),
        ([], "", None),
    ],
)
def test_label_of_the_binder_ends_with_its_allocation(
    consumers: list[str], bound: str, owner: QueueName | None
) -> None:
    world = a_world(a_pod("b", node="node-a" if bound else ""))
    claim = an_allocated_claim("cam", *consumers, queue="vision", owner_pod="a")

    assert labelled_owner(claim, world.facts) == owner


def test_label_stays_where_a_consumer_is_no_pod() -> None:
    claim = an_allocated_claim("cam", "b", queue="vision", owner_pod="a")

    found = labelled_owner(replace(claim, other_consumers=1), a_world().facts)

    assert found == VISION


def test_label_of_the_binder_may_last_as_long_as_the_claim() -> None:
    world = a_world(settings=AccountingSettings(owner_lifetime=OwnerLifetime.CLAIM))

    assert labelled_owner(a_claim(queue="vision", owner_pod="a"), world.facts) == VISION


def test_label_counts_whatever_the_queue_of_its_pod_is_by_now() -> None:
    pod = a_pod("a", queue="vision", node="n")
    world = a_world(pod, a_pod("b", queue="robots", node="n"))
    put(world, an_allocated_claim("cam", "a", "b", queue="robots", owner_pod="a"))

    assert usage(world, "robots") == amounts(onvif=1)
    assert usage(world, "vision") == NO_CHARGES


def test_pod_is_bound_to_the_queue_that_its_label_was_written_with() -> None:
    """Killed between label and binding, while the namespace went to another queue."""
    world = a_world(a_queue("vision", onvif=(1, 1)), a_queue("robots"))
    pod = a_pod("a", claims=["cam"])
    put(world, pod, an_allocated_claim("cam", "a", queue="vision", owner_pod="a"))
    world.put_namespace(NamespaceView("default", {"moorage.dev/queue": "robots"}))

    assert admit(world, pod, at_bind=True).queue == VISION


def test_label_stays_while_a_pod_that_relies_on_it_may_be_bound() -> None:
    """The pod that it was written for is gone, and the watch of pods has not shown the other."""
    world = a_world(a_queue("vision"), a_queue("robots"))
    joiner = a_pod("b", claims=["cam"], queue="robots")
    put(world, a_pod("a", claims=["cam"], queue="vision"), joiner)
    put(world, an_allocated_claim("cam", "a", "b", queue="vision", owner_pod="a"))
    admit(world, joiner, at_bind=True)
    world.assumptions.binding_requested(joiner.uid)

    world.delete_pod(pod_uid("a"))
    put(world, an_allocated_claim("cam", "b", queue="vision", owner_pod="a"))

    assert usage(world, "vision") == amounts(onvif=1)
    assert world.assumptions.usage.by_queue() == {}
    world.assumptions.forget(joiner.uid)
    assert usage(world, "vision") == NO_CHARGES, "it is not bound for certain"


def test_label_that_was_taken_away_does_not_decide_through_an_assumption() -> None:
    world = a_world(a_queue("vision"), a_queue("robots"), a_claim("cam", queue="vision"))
    pod = a_pod("a", claims=["cam"], queue="robots")
    admit(world, pod)

    put(world, an_allocated_claim("cam", "a"))

    assert world.assumptions.usage.by_queue() == {"robots": amounts(onvif=1)}
    assert [s.owner for s in admit(world, pod, at_bind=True).claims] == [ROBOTS]


# What is told about edited labels.


def edits(world: World) -> list[str]:
    return [str(edit) for edit in world.take_label_edits()]


@pytest.mark.parametrize("owner_pod", ["", "a"])
def test_label_that_was_seen_to_change_is_told_once(owner_pod: str) -> None:
    pod = a_pod("a", queue="vision", node="n")
    world = a_world(pod, an_allocated_claim("cam", "a", queue="vision", owner_pod=owner_pod))

    for _ in range(2):
        put(world, an_allocated_claim("cam", "a", queue="robots", owner_pod=owner_pod))

    assert usage(world, "robots") == amounts(onvif=1)
    assert edits(world) == [
        'ResourceClaim default/cam is labelled "robots": a user edited its label while it was'
        ' allocated. Before, it was labelled "vision". Now queue "robots" is charged.'
    ]
    assert edits(world) == []


def test_what_the_binder_writes_is_no_edit() -> None:
    world = a_world(a_pod("a", queue="vision"))
    for queue, pod in (("", ""), ("vision", "a"), ("", ""), ("vision", "a")):
        put(world, an_allocated_claim("cam", "a", queue=queue, owner_pod=pod))
    put(world, a_claim("cam"))

    assert edits(world) == []


def test_edit_of_a_claim_that_is_gone_is_not_told() -> None:
    world = a_world(an_allocated_claim("cam", "a", queue="vision"))
    put(world, an_allocated_claim("cam", "a"))

    world.delete_claim(claim_uid("cam"))

    assert edits(world) == []


# The order.


def test_owner_is_looked_for_in_one_order() -> None:
    world = a_world(a_queue(), a_pod("a", queue="vision"), a_pod("b", queue="robots"))
    assumed = Owner(ROBOTS, pod_uid("b"))
    unlabelled = an_allocated_claim("cam", "gone", "a", "b")

    labelled = owner_of(an_allocated_claim("cam", "b", queue="vision"), world.facts, assumed)
    in_flight = owner_of(unlabelled, world.facts, assumed)
    reserved = owner_of(unlabelled, world.facts, None)
    nobodys = owner_of(a_claim(), world.facts, None)

    assert labelled == Owner(VISION)
    assert in_flight == assumed
    assert reserved == Owner(VISION, pod_uid("a"))
    assert nobodys is None


def test_reservation_of_a_pod_without_a_queue_decides_nothing() -> None:
    world = a_world(a_pod("a"), a_pod("b", queue="vision", phase="Failed"))

    assert owner_of(an_allocated_claim("cam", "a", "b"), world.facts, None) is None


def test_orphan_goes_to_the_oldest_pod_that_has_a_queue() -> None:
    world = a_world(
        a_queue("vision"),
        a_queue("robots"),
        a_pod("a", node="n", created="2026-01-01T00:00:00Z"),
        a_pod("c", node="n", queue="robots"),
        a_pod("b", node="n", queue="vision"),
    )
    claim = an_allocated_claim("cam", "c", "b", "a")

    assert is_orphan(claim, world.facts)
    assert owner_of(claim, world.facts, None) == Owner(VISION, pod_uid("b"), is_orphans=True)
    only_a = an_allocated_claim("cam", "a")
    assert owner_of(only_a, world.facts, None) is None


def test_orphan_is_nobodys_where_the_policy_says_so() -> None:
    policy = AccountingSettings(orphan_policy=OrphanPolicy.UNATTRIBUTED)
    world = a_world(a_pod("a", node="n", queue="vision"), settings=policy)

    assert owner_of(an_allocated_claim("cam", "a"), world.facts, None) is None


# The queue of a pod.


def test_queue_of_a_pod_is_looked_for_in_one_order() -> None:
    settings = AccountingSettings(default_queue=QueueName("default"))
    world = a_world(settings=settings)
    pod = a_pod(annotations={"pod-group-name": "g"})
    unknown = world.facts.queue_of(pod)
    world.put_group(PodGroupView("default", "g", NO_QUEUE))
    found = [world.facts.queue_of(pod)]

    world.put_namespace(NamespaceView("default", {"moorage.dev/queue": "of-namespace"}))
    found.append(world.facts.queue_of(pod))
    world.put_group(PodGroupView("default", "g", QueueName("of-group")))
    found.append(world.facts.queue_of(pod))
    found.append(world.facts.queue_of(replace(pod, queue=QueueName("of-pod"))))

    assert unknown == ""
    assert found == ["default", "of-namespace", "of-group", "of-pod"]


# The ledger.


def status(world: World, queue: str) -> QueueUsage:
    return world.ledger.of(QueueName(queue))


def test_status_of_a_queue_and_of_its_parent() -> None:
    world = a_world(a_queue("vision", parent="research"), a_queue("research"))
    put(world, an_allocated_claim("cam", "a", "b", queue="vision", owner_pod="a"))
    put(world, a_pod("a", queue="vision", node="n", non_preemptible=True))
    put(
        world,
        a_pod("b", queue="robots", node="n"),
        a_claim("wanted", requests=[a_request(count=2)]),
    )
    put(world, a_pod("c", queue="vision", claims=["cam", "wanted"]))
    put(world, a_pod("d", queue="vision", claims=["wanted"], requests={"akri.sh/onvif": 1}))

    assert status(world, "vision") == QueueUsage(
        usage=amounts(onvif=1),
        non_preemptible=amounts(onvif=1),
        requested=amounts(onvif=4),
        owned=1,
        shared_out=1,
    )
    assert status(world, "research") == replace(status(world, "vision"), owned=0, shared_out=0)
    assert status(world, "robots") == QueueUsage()
    assert list(world.ledger.by_queue()) == ["research", "vision"]


def test_claim_is_released_with_its_allocation_and_with_itself() -> None:
    world = a_world(
        an_allocated_claim("cam", queue="vision"), an_allocated_claim("x", queue="vision")
    )
    assert usage(world, "vision") == amounts(onvif=2)

    put(world, a_claim("cam", queue="vision"))
    world.delete_claim(claim_uid("x"))
    world.delete_claim(claim_uid("x"))

    assert usage(world, "vision") == NO_CHARGES


def test_claim_made_anew_under_its_old_name_replaces_the_old_one() -> None:
    world = a_world(an_allocated_claim("cam", queue="vision"))

    put(world, an_allocated_claim("cam", queue="robots", uid="another"))

    assert (usage(world, "vision"), usage(world, "robots")) == (NO_CHARGES, amounts(onvif=1))
    assert world.facts.claim(claim_uid("cam")) is None
    assert world.facts.claim(ClaimUid("another")) is not None


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_requests_are_charged_from_binding_until_the_end(phase: str) -> None:
    world = a_world()
    seen = []
    for node, now_in in (("", "Pending"), ("n", "Running"), ("n", phase)):
        pod = a_pod(requests={"akri.sh/onvif": 2}, queue="vision", node=node, phase=now_in)
        put(world, pod)
        seen.append(usage(world, "vision"))

    assert seen == [NO_CHARGES, amounts(onvif=2), NO_CHARGES]


# Assumptions.


def test_assumption_lapses_after_a_minute_and_the_next_pods_queue_takes_over() -> None:
    world = a_world(a_queue("vision"), a_queue("robots"), a_claim())
    admit(world, a_pod("a", claims=["cam"], queue="vision"))
    later = NOW + timedelta(seconds=30)
    admit(world, a_pod("b", claims=["cam"], queue="robots"), now=later)

    assert world.assumptions.expire(NOW + timedelta(seconds=59)) == ()
    assert world.assumptions.usage.of(VISION) == amounts(onvif=1)
    assert world.assumptions.expire(NOW + timedelta(seconds=60)) == (pod_uid("a"),)
    assert world.assumptions.usage.by_queue() == {"robots": amounts(onvif=1)}
    assert world.assumptions.expire(later + timedelta(seconds=60)) == (pod_uid("b"),)
    assert world.assumptions.usage.by_queue() == {}


def test_pod_whose_binding_is_under_way_does_not_lapse_as_the_one_that_decided_an_owner() -> None:
    assumptions = a_world().assumptions
    decider = AssumedPod(pod_uid("a"), VISION)
    assumptions.assume(decider, (), amounts(onvif=1), NOW)
    assumptions.binding_requested(decider.uid)

    claim = AssumedClaim(claim_uid("cam"), NO_QUEUE, amounts(onvif=1), decided_by=decider)
    assumptions.assume(AssumedPod(pod_uid("b"), ROBOTS), [claim], NO_CHARGES, NOW)

    assert assumptions.expire(NOW + ASSUMED_TTL) == (pod_uid("b"),)
    assert assumptions.usage.of(VISION) == amounts(onvif=2)


def test_second_decision_about_a_pod_keeps_its_place() -> None:
    world = a_world(a_queue("vision"), a_queue("robots"), a_claim())
    first = a_pod("a", claims=["cam"], queue="vision")
    admit(world, first)
    admit(world, a_pod("b", claims=["cam"], queue="robots"))

    admit(world, first, now=NOW + timedelta(seconds=59))

    assert world.assumptions.pods(claim_uid("cam")) == (pod_uid("a"), pod_uid("b"))
    assert world.assumptions.expire(NOW + timedelta(seconds=60)) == (pod_uid("b"),)


def test_deleted_claim_is_no_longer_assumed() -> None:
    world = a_world(a_queue("vision"), a_claim())
    admit(world, a_pod("a", claims=["cam"], queue="vision"))

    world.delete_claim(claim_uid("cam"))

    assert world.assumptions.usage.by_queue() == {}
    world.assumptions.forget(pod_uid("a"))
    world.assumptions.forget(PodUid("unheard-of"))
    assert len(world.assumptions) == 0


def test_only_what_counts_for_a_pod_alone_is_set_aside_in_its_verdict() -> None:
    world = a_world(a_queue("vision", onvif=(1, 1)))
    put(world, an_allocated_claim("cam", "a", queue="vision"))
    for name in ("b", "c"):
        admit(world, a_pod(name, claims=["cam"], queue="vision", non_preemptible=True))

    assert world.assumptions.counted_for(pod_uid("b"))[1].of(VISION) == NO_CHARGES
    world.assumptions.forget(pod_uid("c"))
    assert world.assumptions.counted_for(pod_uid("b"))[1].of(VISION) == amounts(onvif=1)


def test_orphan_that_got_its_owner_is_none_any_more() -> None:
    world = a_world(a_pod("a", queue="vision", node="n"), an_allocated_claim("cam", "a"))
    assert world.ledger.orphans() == (claim_uid("cam"),)

    put(world, an_allocated_claim("cam", "a", queue="vision", owner_pod="a"))

    assert world.ledger.orphans() == ()
    assert usage(world, "vision") == amounts(onvif=1)


def test_all_who_subscribed_hear_of_decisions_until_they_end_it() -> None:
    world = a_world(a_queue("vision"), a_claim())
    heard: list[str] = []
    world.assumptions.subscribe(lambda claims: heard.extend(f"first {uid}" for uid in claims))
    end = world.assumptions.subscribe(lambda claims: heard.extend(f"then {uid}" for uid in claims))
    admit(world, a_pod("a", claims=["cam"], queue="vision"))
    assert heard == ["first uid-of-cam", "then uid-of-cam"]

    end()
    world.assumptions.forget(pod_uid("a"))
    assert heard == ["first uid-of-cam", "then uid-of-cam", "first uid-of-cam"]

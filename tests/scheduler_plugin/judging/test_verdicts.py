"""The verdict on a pod: every rule, its sentence, and the order of the rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler_plugin.accounting import facts_views
from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.equivalence_classes import equivalence_class
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, bind_request, judge
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.bindings import BindRequest, ClaimOwner
from scheduler_plugin.objects.claim_objects import claim_template_view
from scheduler_plugin.objects.names import (
    NO_POD,
    NO_QUEUE,
    QUEUE_LABEL,
    AccountingSettings,
    OrphanPolicy,
    QueueName,
    Reason,
)
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_class,
    a_group,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_slice,
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
    verdict,
)

VISION, ROBOTS = QueueName("vision"), QueueName("robots")


def two_queues(**vision: Any) -> World:
    """Queues vision and robots under research; what is given is vision's."""
    return a_world(
        a_queue("research"),
        a_queue("vision", parent="research", **vision),
        a_queue("robots", parent="research"),
    )


# What is not counted.


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod(claims=["gpu"]),
        a_pod(requests={"example.com/gpu": 1, "akri.sh/unknown": 1, "cpu": "1"}),
    ],
)
def test_pod_without_accounted_devices_needs_no_queue(pod: Any) -> None:
    world = a_world(a_class("gpu"), a_claim("gpu", requests=[a_request("gpu")]))

    admitted = admit(world, pod)

    assert admitted == Admitted()
    assert len(world.assumptions) == 0


def test_pod_that_only_administers_needs_no_queue() -> None:
    world = a_world(a_claim(requests=[a_request(adminAccess=True)]))

    assert verdict(world, a_pod(claims=["cam"])) == Admitted()


def test_pod_that_runs_is_never_judged_again() -> None:
    world = a_world(a_queue(onvif=(0, 0)), a_claim())

    pod = a_pod(claims=["cam"], queue="vision", node="node-a")

    assert verdict(world, pod) == Admitted(queue=VISION)


# The queue.


def test_pod_without_a_queue() -> None:
    world = a_world(a_claim())

    assert refusal(world, a_pod(claims=["cam"])) == Refused(
        Reason.NO_QUEUE,
        "ResourceClaim default/cam needs a queue, and Pod default/a has none: no label"
        ' "moorage.dev/queue" of its own, of its PodGroup or of its namespace, and there is no'
        " default.",
    )


def test_pod_of_a_queue_that_does_not_exist() -> None:
    world = a_world()

    found = refusal(world, a_pod(requests={"akri.sh/onvif": 1}, queue="vision"))

    sentence = 'A request of Pod default/a needs a queue, and queue "vision" does not exist.'
    assert found == Refused(Reason.QUEUE_NOT_FOUND, sentence)


def test_claim_of_a_queue_that_does_not_exist_is_charged_to_nobody_else() -> None:
    world = a_world(a_queue("robots"), a_claim(queue="gone"))

    found = refusal(world, a_pod(claims=["cam"], queue="robots"))

    sentence = 'ResourceClaim default/cam belongs to queue "gone", which does not exist.'
    assert found == Refused(Reason.QUEUE_NOT_FOUND, sentence)


def test_pod_whose_namespace_may_not_use_the_queue() -> None:
    world = a_world(a_queue(namespaceSelector={"matchLabels": {"team": "vision"}}), a_claim())
    pod = a_pod(claims=["cam"], queue="vision")

    found = refusal(world, pod)
    world.put_namespace(NamespaceView("default", {"team": "vision"}))

    sentence = (
        'ResourceClaim default/cam needs a queue, and namespace "default" may not use queue'
        ' "vision". Its spec.namespaceSelector does not select that namespace.'
    )
    assert found == Refused(Reason.QUEUE_NOT_ALLOWED, sentence)
    assert isinstance(verdict(world, pod), Admitted)


def test_no_namespace_may_use_a_queue_that_selects_none() -> None:
    world = a_world(a_queue(namespaceSelector=None), a_claim())
    world.put_namespace(NamespaceView("default", {"team": "vision"}))
    pod = a_pod(claims=["cam"], queue="vision")

    found = refusal(world, pod)
    world.put_queue(a_queue(namespaceSelector={}))

    sentence = (
        'ResourceClaim default/cam needs a queue, and namespace "default" may not use queue'
        ' "vision". It has no spec.namespaceSelector, so no namespace may use it.'
        " spec.namespaceSelector: {} allows all namespaces, spec.namespaceSelector:"
        " {matchLabels: {kubernetes.io/metadata.name: default}} allows this one."
    )
    assert found == Refused(Reason.QUEUE_NOT_ALLOWED, sentence)
    assert isinstance(verdict(world, pod), Admitted)


def test_what_the_refusal_says_to_write_lets_that_namespace_alone() -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    world = a_world(
        a_queue(namespaceSelector=selector), a_claim(), a_claim(namespace="other", uid="2")
    )
    for name in ("default", "other"):
        world.put_namespace(NamespaceView(name, {"kubernetes.io/metadata.name": name}))

    mine = verdict(world, a_pod(claims=["cam"], queue="vision"))
    others = refusal(world, a_pod(claims=["cam"], queue="vision", namespace="other"))

    assert isinstance(mine, Admitted)
    assert others.reason is Reason.QUEUE_NOT_ALLOWED


# How many share a claim.


def test_claim_with_256_consumers_takes_no_other() -> None:
    pods = [f"p{number}" for number in range(256)]
    world = a_world(a_queue(), an_allocated_claim("cam", *pods, queue="vision"))

    newcomer = refusal(world, a_pod(claims=["cam"], queue="vision"))
    last = verdict(world, a_pod("p255", claims=["cam"], queue="vision"), at_bind=True)

    sentence = "ResourceClaim default/cam has 256 consumers; a claim can have at most 256."
    assert newcomer == Refused(Reason.CLAIM_FULL, sentence)
    assert isinstance(last, Admitted)


def test_pods_in_flight_count_as_consumers() -> None:
    world = a_world(a_queue(), a_claim(), settings=AccountingSettings(max_consumers=2))
    for name in ("a", "b"):
        admit(world, a_pod(name, claims=["cam"], queue="vision"))

    found = refusal(world, a_pod("c", claims=["cam"], queue="vision"))

    assert found.reason is Reason.CLAIM_FULL


def max_pods(most: str) -> Any:
    return our_class(annotations={"moorage.dev/max-pods-per-claim": most})


def test_more_pods_than_the_class_lets_share_a_claim() -> None:
    world = a_world(max_pods("2"), a_queue(), an_allocated_claim("cam", "a", queue="vision"))
    put(world, a_pod("a", claims=["cam"], queue="vision", node="node-a"))
    admit(world, a_pod("b", claims=["cam"], queue="vision"))

    found = refusal(world, a_pod("c", claims=["cam"], queue="vision"))

    sentence = (
        'ResourceClaim default/cam is shared by 2 pods, and DeviceClass "onvif" allows at most 2.'
    )
    assert found == Refused(Reason.TOO_MANY_SHARERS, sentence)


def test_pods_that_ended_share_nothing() -> None:
    world = a_world(max_pods("1"), a_queue(), an_allocated_claim("cam", "a", queue="vision"))
    put(world, a_pod("a", claims=["cam"], queue="vision", node="node-a", phase="Succeeded"))

    assert isinstance(verdict(world, a_pod("b", claims=["cam"], queue="vision")), Admitted)


def test_of_too_many_reserved_pods_the_earlier_ones_are_bound() -> None:
    world = a_world(max_pods("2"), a_queue(), an_allocated_claim("cam", "a", "b", "c"))
    pods = [a_pod(name, claims=["cam"], queue="vision") for name in "abc"]
    put(world, *pods[1:])

    found = [verdict(world, pod, at_bind=True) for pod in pods]

    assert [isinstance(v, Admitted) for v in found] == [True, True, False]


def test_later_reservation_that_runs_already_counts() -> None:
    world = a_world(max_pods("1"), a_queue(), an_allocated_claim("cam", "a", "b", queue="vision"))
    put(world, a_pod("b", claims=["cam"], queue="vision", node="node-a"))

    found = refusal(world, a_pod("a", claims=["cam"], queue="vision"), at_bind=True)

    assert found.reason is Reason.TOO_MANY_SHARERS


# Sharing between queues.


def owned(world: World, **pod: Any) -> World:
    """A claim that a pod of vision uses."""
    put(world, a_pod("a", claims=["cam"], queue="vision", node="node-a", **pod))
    put(world, an_allocated_claim("cam", "a", queue="vision", owner_pod="a"))
    return world


def test_queue_that_opted_out_keeps_its_claims_to_itself() -> None:
    world = owned(two_queues(claimSharing={"policy": "Deny"}))

    found = refusal(world, a_pod("b", claims=["cam"], queue="robots"))

    sentence = (
        'ResourceClaim default/cam belongs to queue "vision", which does not share its claims with'
        ' queue "robots".'
    )
    assert found == Refused(Reason.CLAIM_SHARING_DENIED, sentence)
    assert isinstance(verdict(world, a_pod("c", claims=["cam"], queue="vision")), Admitted)


def test_exception_to_the_opt_out_includes_descendants() -> None:
    world = owned(two_queues(claimSharing={"policy": "Deny", "queues": ["robots"]}))
    put(world, a_queue("arms", parent="robots"), a_queue("other"))

    assert isinstance(verdict(world, a_pod("b", claims=["cam"], queue="arms")), Admitted)
    found = refusal(world, a_pod("b", claims=["cam"], queue="other"))
    assert found.reason is Reason.CLAIM_SHARING_DENIED


def test_opt_out_of_the_parent_is_inherited() -> None:
    world = owned(two_queues())
    put(world, a_queue("research", claimSharing={"policy": "Deny"}))

    found = refusal(world, a_pod("b", claims=["cam"], queue="robots"))

    assert found.reason is Reason.CLAIM_SHARING_DENIED


def test_foreign_pod_is_charged_nothing() -> None:
    world = owned(two_queues(onvif=(0, 1)))
    put(world, a_queue("robots", parent="research", onvif=(0, 0)))

    admitted = admit(world, a_pod("b", claims=["cam"], queue="robots"))

    assert [use.adds for use in admitted.claims] == [NO_CHARGES]
    assert usage(world, "vision") == usage(world, "research") == amounts(onvif=1)
    assert world.assumptions.usage.by_queue() == {}


def test_foreign_non_preemptible_pod_could_lock_the_claim() -> None:
    world = owned(two_queues())

    found = refusal(world, a_pod("b", claims=["cam"], queue="robots", non_preemptible=True))

    sentence = (
        'ResourceClaim default/cam belongs to queue "vision", and Pod default/b of queue "robots"'
        " is non-preemptible: it could keep the claim from its owner."
    )
    assert found == Refused(Reason.FOREIGN_NON_PREEMPTIBLE, sentence)


# Limits.


def test_claim_over_the_limit_says_which_and_by_how_much() -> None:
    world = owned(two_queues(onvif=(0, 2)))
    put(world, a_claim("second", requests=[a_request(count=2)]))

    found = refusal(world, a_pod("b", claims=["second"], queue="vision"))

    sentence = (
        'ResourceClaim default/second does not fit: queue "vision" uses 1 onvif, 2 more would pass'
        " its limit of 2."
    )
    assert found == Refused(Reason.OVER_LIMIT, sentence)


def test_a_queue_without_a_weight_is_held_to_its_quota_by_filter_and_bind_alike() -> None:
    world = owned(two_queues(onvif=(2, 5, 0)))
    put(world, a_claim("second", requests=[a_request(count=2)]))
    pod = a_pod("b", claims=["second"], queue="vision")

    sentence = (
        'ResourceClaim default/second does not fit: queue "vision" uses 1 onvif, 2 more would pass'
        " its quota of 2, beyond which it never goes (overQuotaWeight: 0)."
    )
    for at_bind in (False, True):
        assert refusal(world, pod, at_bind=at_bind) == Refused(Reason.OVER_LIMIT, sentence)


def test_limit_of_an_ancestor_counts_what_its_other_children_use() -> None:
    world = owned(two_queues())
    put(world, a_queue("research", onvif=(0, 1)), a_claim("second"))

    found = refusal(world, a_pod("b", claims=["second"], queue="robots"))

    sentence = (
        'ResourceClaim default/second does not fit: queue "research", which is above queue'
        ' "robots", uses 1 onvif, 1 more would pass its limit of 1.'
    )
    assert found == Refused(Reason.OVER_LIMIT, sentence)


def test_nearest_queue_on_the_path_is_named() -> None:
    world = two_queues(onvif=(0, 0))
    put(world, a_queue("research", onvif=(0, 0)), a_claim())

    assert 'queue "vision" uses 0' in refusal(world, a_pod(claims=["cam"], queue="vision")).sentence


def test_decisions_in_flight_count_against_the_limit() -> None:
    world = two_queues(onvif=(0, 1))
    put(world, a_claim("one"), a_claim("two"))
    admit(world, a_pod("a", claims=["one"], queue="vision"))

    found = refusal(world, a_pod("b", claims=["two"], queue="vision"))

    assert "uses 1 onvif, 1 more" in found.sentence
    later = NOW + timedelta(seconds=60)
    assert isinstance(
        verdict(world, a_pod("b", claims=["two"], queue="vision"), now=later), Admitted
    )


def test_claims_and_requests_of_one_pod_are_added_up() -> None:
    world = two_queues(onvif=(0, 2))
    put(world, a_claim("one"), a_claim("two"))
    pod = a_pod(claims=["one", "two"], requests={"akri.sh/onvif": 1}, queue="vision")

    found = refusal(world, pod)

    sentence = (
        'Pod default/a does not fit: queue "vision" uses 0 onvif, 3 more would pass its limit of 2.'
    )
    assert found == Refused(Reason.OVER_LIMIT, sentence)


def test_joining_passes_even_over_a_lowered_limit() -> None:
    world = owned(two_queues(onvif=(0, 0)))
    put(world, a_queue("research", onvif=(0, 0)))

    for name, queue in (("b", "vision"), ("c", "robots")):
        assert isinstance(verdict(world, a_pod(name, claims=["cam"], queue=queue)), Admitted)


def test_limit_of_the_owner_counts_and_not_that_of_the_joiner() -> None:
    world = two_queues(onvif=(0, 0))
    put(world, a_claim(queue="vision"))

    found = refusal(world, a_pod("b", claims=["cam"], queue="robots"))

    assert found.reason is Reason.OVER_LIMIT
    assert 'queue "vision" uses 0' in found.sentence


def test_five_sharers_of_one_device_fit_a_limit_of_one() -> None:
    world = two_queues(onvif=(0, 1))
    put(world, a_claim())

    for number in range(5):
        admit(world, a_pod(f"p{number}", claims=["cam"], queue="vision"))

    assert world.assumptions.usage.of(VISION) == amounts(onvif=1)


def test_enormous_counts_are_counted_as_they_are() -> None:
    world = two_queues(onvif=(0, 2**63 - 1))
    request = a_request(count=2**63 - 1, slots=str(2**63 - 1))
    put(world, a_claim(requests=[request]))

    assert refusal(world, a_pod(claims=["cam"], queue="vision")).reason is Reason.OVER_LIMIT


# Quotas of non-preemptible use.


def test_non_preemptible_claim_over_the_quota() -> None:
    world = two_queues(onvif=(0, 5))
    put(world, a_claim())

    found = refusal(world, a_pod(claims=["cam"], queue="vision", non_preemptible=True))

    sentence = (
        'ResourceClaim default/cam does not fit: queue "vision" uses 0 onvif, 1 more would pass its'
        " quota of 0 for non-preemptible pods."
    )
    assert found == Refused(Reason.NON_PREEMPTIBLE_OVER_QUOTA, sentence)


def test_quota_of_an_ancestor_counts_where_it_is_listed() -> None:
    world = two_queues(onvif=(5, 5))
    put(world, a_queue("research", onvif=(1, 5)), a_claim("one"), a_claim("two"))
    admit(world, a_pod("a", claims=["one"], queue="vision", non_preemptible=True))

    found = refusal(world, a_pod("b", claims=["two"], queue="vision", non_preemptible=True))

    assert found.reason is Reason.NON_PREEMPTIBLE_OVER_QUOTA
    assert 'queue "research", which is above queue "vision", uses 1 onvif' in found.sentence


def test_queue_that_does_not_list_a_class_has_no_quota_of_it() -> None:
    world = two_queues()
    put(world, a_claim())

    found = refusal(world, a_pod(claims=["cam"], queue="vision", non_preemptible=True))

    assert found.reason is Reason.NON_PREEMPTIBLE_OVER_QUOTA


def test_first_non_preemptible_consumer_of_the_owner_adds_to_the_quota() -> None:
    world = owned(two_queues(onvif=(1, 1)))
    first = a_pod("b", claims=["cam"], queue="vision", non_preemptible=True)

    admitted = admit(world, first)
    second = admit(world, a_pod("c", claims=["cam"], queue="vision", non_preemptible=True))

    assert admitted.claims[0].adds_non_preemptible == amounts(onvif=1)
    assert second.claims[0].adds_non_preemptible == NO_CHARGES
    assert world.assumptions.non_preemptible.of(VISION) == amounts(onvif=1)
    put(world, a_queue("vision", parent="research", onvif=(0, 1)))
    world.assumptions.forget(pod_uid("b"))
    world.assumptions.forget(pod_uid("c"))
    assert refusal(world, first).reason is Reason.NON_PREEMPTIBLE_OVER_QUOTA


def test_second_non_preemptible_consumer_adds_nothing() -> None:
    world = owned(two_queues(onvif=(0, 1)), non_preemptible=True)

    joiner = a_pod("b", claims=["cam"], queue="vision", non_preemptible=True)

    assert world.ledger.of(VISION).non_preemptible == amounts(onvif=1)
    assert isinstance(verdict(world, joiner), Admitted)


def test_requests_of_a_non_preemptible_pod_are_held_against_the_quota() -> None:
    world = two_queues(onvif=(1, 5))
    pod = a_pod(requests={"akri.sh/onvif": 2}, queue="vision", non_preemptible=True)

    assert refusal(world, pod).reason is Reason.NON_PREEMPTIBLE_OVER_QUOTA


# The order of the rules.


def test_all_that_a_queue_may_use_is_guaranteed_where_its_quota_is_minus_one() -> None:
    world = a_world(
        a_queue(onvif=(-1, 2)), a_claim(), a_claim("more", requests=[a_request(count=2)])
    )
    admit(world, a_pod("a", claims=["cam"], queue="vision", non_preemptible=True))

    found = refusal(world, a_pod("b", claims=["more"], queue="vision", non_preemptible=True))

    assert found.reason is Reason.OVER_LIMIT


def test_reasons_come_in_the_order_of_the_rules() -> None:  # noqa: PLR0915  One for each rule.
    """One pod that breaks every rule, and a world that is put right rule by rule."""
    world = a_world(
        max_pods("1"),
        a_class("gpu"),
        an_allocated_claim("cam", "x", "y", queue="vision"),
        settings=AccountingSettings(max_consumers=2),
    )
    traits: dict[str, Any] = {"claims": ["second", "cam"], "non_preemptible": True}
    grouped = a_pod("b", annotations={"pod-group-name": "g"}, **traits)
    seen = [refusal(world, grouped).reason]
    world.note_gone_claim("default", "second")
    seen += [refusal(world, grouped).reason]
    put(world, a_claim("second", requests=[a_request(slots="-1")]))
    world.put_group(PodGroupView("default", "g", NO_QUEUE))
    world.delete_group("default", "g")
    seen += [refusal(world, grouped).reason, refusal(world, a_pod("b", **traits)).reason]

    def repair(*objects: Any, queue: str = "robots") -> None:
        put(world, *objects)
        seen.append(refusal(world, a_pod("b", queue=queue, **traits)).reason)

    repair(a_claim("second"), queue="")
    repair(a_queue("vision", claimSharing={"policy": "Deny"}))
    repair(a_queue("robots", namespaceSelector={"matchLabels": {"team": "r"}}, onvif=(0, 0)))
    repair(a_queue("robots", onvif=(0, 0)))
    repair(an_allocated_claim("cam", "x", queue="vision"))
    members = a_pod("m", queue="vision", group="train", claims=["cam"], node="node-a"), a_group()
    put(world, our_class(), *members)
    put(world, an_allocated_claim("cam", "x", groups=["train"], queue="vision"))
    seen.append(refusal(world, a_pod("b", queue="robots", group="train", **traits)).reason)
    repair(an_allocated_claim("cam", "x", queue="vision"))
    repair(a_queue("vision"))
    repair(an_allocated_claim("cam", "x", queue="robots"))
    repair(a_queue("robots", onvif=(0, 1)), a_pod("x", node="node-a"))
    repair(a_queue("robots", onvif=(0, 2)))
    evicted = equivalence_class(a_pod("b", queue="robots", **traits), world.facts)
    world.assumptions.backoffs.evicted(evicted, NOW)
    other = a_pod("y", node="node-a", queue="robots", claims=["z"])
    repair(a_queue("robots", onvif=(2, 9)), an_allocated_claim("z", "y", queue="robots"), other)
    world.hold(
        Hold(
            pod_uid("w"), "Pod w", QueueName("robots"), amounts(onvif=1), NO_CHARGES, is_device=True
        )
    )
    repair(a_queue("robots", onvif=(9, 9)))

    assert [*dict.fromkeys(seen)] == [r for r in Reason if r is not Reason.POD_GROUP_INCOMPLETE]


def test_within_a_rule_claims_are_asked_in_the_order_of_the_spec() -> None:
    world = two_queues(claimSharing={"policy": "Deny"})
    for name in ("one", "two"):
        put(world, an_allocated_claim(name, "x", queue="vision"))

    found = [refusal(world, a_pod(claims=c, queue="robots")) for c in (["two", "one"], ["one"])]

    assert [f.sentence.split()[1] for f in found] == ["default/two", "default/one"]


# Filter and Bind.


def test_allocation_that_costs_more_than_assumed_is_refused_at_bind() -> None:
    world = two_queues(onvif=(0, 1))
    pod = a_pod(claims=["cam"], queue="vision")
    put(world, pod, a_claim())
    admit(world, pod)

    put(world, an_allocated_claim("cam", "a", results=[a_result(slots="2")]))

    assert refusal(world, pod, at_bind=True).reason is Reason.OVER_LIMIT


def test_own_assumption_is_not_counted_twice_at_bind() -> None:
    world = two_queues(onvif=(1, 1))
    pod = a_pod(claims=["cam"], queue="vision", non_preemptible=True)
    put(world, pod, a_claim())
    admit(world, pod)
    put(world, an_allocated_claim("cam", "a"))

    admitted = admit(world, pod, at_bind=True)

    assert admitted.claims[0].adds == amounts(onvif=1)
    assert world.assumptions.usage.of(VISION) == amounts(onvif=1)


def test_foreign_vendors_resource_is_assumed_at_filter_and_not_charged_at_bind() -> None:
    spec = {"extendedResourceName": "example.com/gpu"}
    world = two_queues(gpu=(0, 0))
    put(world, a_class("gpu", spec=spec))
    pod = a_pod(requests={"example.com/gpu": 1}, queue="vision")

    assert refusal(world, pod).reason is Reason.OVER_LIMIT
    assert verdict(world, pod, at_bind=True) == Admitted()


def test_bind_request_names_the_owner_of_every_claim() -> None:
    world = owned(two_queues())
    put(world, a_claim("mine"))
    pod = a_pod("b", claims=["mine", "cam"], queue="robots")

    request = bind_request(pod, "node-b", admit(world, pod))

    mine, cam = world.facts.claims_of(pod)
    assert request == BindRequest(
        namespace="default",
        name="b",
        uid=pod_uid("b"),
        node="node-b",
        queue=ROBOTS,
        claims=(
            ClaimOwner(
                namespace="default",
                name="mine",
                uid=claim_uid("mine"),
                resource_version=mine.resource_version,
                queue=ROBOTS,
                owner_pod=pod_uid("b"),
                label_found=NO_QUEUE,
                owner_pod_found=NO_POD,
            ),
            ClaimOwner(
                namespace="default",
                name="cam",
                uid=claim_uid("cam"),
                resource_version=cam.resource_version,
                queue=VISION,
                owner_pod=None,
                label_found=VISION,
                owner_pod_found=cam.owner_pod,
            ),
        ),
    )


# The seed's racing section.


def race() -> tuple[World, Any, Any]:
    """Vision's pod a decides first, robots' pod b joins; both are past PreBind."""
    world = two_queues()
    first = a_pod("a", claims=["cam"], queue="vision")
    foreign = a_pod("b", claims=["cam"], queue="robots")
    put(world, a_claim(), first, foreign)
    admit(world, first)
    admit(world, foreign)
    put(world, an_allocated_claim("cam", "a", "b"))
    return world, first, foreign


def test_foreign_pod_that_binds_first_does_not_become_owner() -> None:
    world, _, foreign = race()

    request = bind_request(foreign, "node-a", admit(world, foreign, at_bind=True))

    assert [(c.queue, c.owner_pod) for c in request.claims] == [(VISION, pod_uid("a"))]


def test_foreign_pod_that_binds_first_after_a_restart_does_not_become_owner() -> None:
    _, first, foreign = race()
    world = two_queues()
    put(world, an_allocated_claim("cam", "a", "b"), first, foreign)

    request = bind_request(foreign, "node-a", admit(world, foreign, at_bind=True))
    second = bind_request(first, "node-a", admit(world, first, at_bind=True))

    assert request.claims == second.claims
    assert [(c.queue, c.owner_pod) for c in request.claims] == [(VISION, pod_uid("a"))]
    assert world.assumptions.usage.by_queue() == {
        "research": amounts(onvif=1),
        "vision": amounts(onvif=1),
    }


def test_limit_of_the_owner_that_a_restart_forgot_counts() -> None:
    world = two_queues(onvif=(0, 0))
    put(world, an_allocated_claim("cam", "a", "b"))
    put(world, a_pod("a", claims=["cam"], queue="vision"))

    found = refusal(world, a_pod("b", claims=["cam"], queue="robots"), at_bind=True)

    assert found.reason is Reason.OVER_LIMIT


def test_next_pod_takes_over_when_the_one_that_decided_drops_out() -> None:
    world, first, foreign = race()

    world.delete_pod(first.uid)

    assert world.assumptions.usage.of(ROBOTS) == amounts(onvif=1)
    request = bind_request(foreign, "node-a", admit(world, foreign, at_bind=True))
    assert [(c.queue, c.owner_pod) for c in request.claims] == [(ROBOTS, pod_uid("b"))]


def test_written_label_is_charged_once_and_no_longer_assumed() -> None:
    world, first, _ = race()

    put(world, an_allocated_claim("cam", "a", "b", queue="vision", owner_pod="a"))

    assert usage(world, "research") == amounts(onvif=1)
    assert world.assumptions.usage.by_queue() == {}
    put(world, a_pod("a", claims=["cam"], queue="vision", node="node-a"))
    assert first.uid not in world.assumptions.pods(claim_uid("cam"))


def test_stale_label_with_two_pods_past_prebind_gets_its_right_owner() -> None:
    world, first, foreign = race()
    put(world, an_allocated_claim("cam", "a", "b", queue="robots", owner_pod="long-gone"))

    owners = [bind_request(p, "n", admit(world, p, at_bind=True)).claims for p in (foreign, first)]

    assert [(c.queue, c.owner_pod) for o in owners for c in o] == [(VISION, pod_uid("a"))] * 2


# Orphans.


def orphan(policy: OrphanPolicy) -> World:
    world = a_world(
        a_queue("vision", onvif=(0, 0)),
        a_queue("robots", onvif=(0, 0)),
        settings=AccountingSettings(orphan_policy=policy),
    )
    put(
        world,
        a_pod("old", claims=["cam"], queue="vision", node="n", created="2026-01-01T00:00:00Z"),
    )
    put(world, an_allocated_claim("cam", "young", "old"))
    put(world, a_pod("young", claims=["cam"], queue="robots", node="n"))
    return world


def test_orphan_is_joined_as_its_oldest_pods_queue() -> None:
    world = orphan(OrphanPolicy.OLDEST_POD)

    admitted = admit(world, a_pod("b", claims=["cam"], queue="robots"))

    assert [(s.owner, s.owner_pod) for s in admitted.claims] == [(VISION, pod_uid("old"))]
    assert world.ledger.orphans() == (claim_uid("cam"),)


def test_next_binder_becomes_owner_of_an_unattributed_orphan() -> None:
    world = orphan(OrphanPolicy.UNATTRIBUTED)

    assert usage(world, "vision") == NO_CHARGES
    found = refusal(world, a_pod("b", claims=["cam"], queue="robots"))
    assert found.reason is Reason.OVER_LIMIT


def test_claim_of_a_template_counts_before_it_exists() -> None:
    world = two_queues(onvif=(0, 1))
    body: dict[str, Any] = {"metadata": {"namespace": "default", "name": "t"}, "spec": {"spec": {}}}
    body["spec"]["spec"] = {"devices": {"requests": [a_request()]}}
    template = claim_template_view(body, queue_label=QUEUE_LABEL)
    pods = [a_pod(name, queue="vision") for name in "ab"]

    found = judge(pods[0], [template.claim("a", "cam")], world)
    assert isinstance(found, Admitted)
    assume(pods[0], found, world, NOW)

    second = judge(pods[1], [template.claim("b", "cam")], world)
    assert second == Refused(
        Reason.OVER_LIMIT,
        'ResourceClaim default/b-cam does not fit: queue "vision" uses 1 onvif, 1 more would pass'
        " its limit of 1.",
    )


def test_a_claim_that_is_gone_covers_nothing() -> None:
    """Or a pod that Filter refuses would be taken for one that fits, and be tried without end."""
    runs = a_pod("runs", requests={"akri.sh/onvif": 1}, queue="vision", node="node-a")
    tried = replace(
        a_pod("tried", requests={"akri.sh/onvif": 1}, queue="vision"),
        extended_claim="gone",
        extended_resources=frozenset({"akri.sh/onvif"}),
    )
    world = a_world(a_queue("vision", onvif=(1, 1)), runs, tried)

    assert refusal(world, tried).reason is Reason.OVER_LIMIT


# Bind judges afresh: as if this pod's own reservation were not there.


def a_labelled_claim(name: str, *pods: str, count: int = 1, **fields: Any) -> Any:
    """A claim that a user labelled, allocated after the pod's Filter: it counts at once."""
    results = [a_result()] * count
    return an_allocated_claim(name, *pods, queue="vision", results=results, **fields)


def test_claim_labelled_at_creation_is_held_against_the_limit_by_its_first_user() -> None:
    world = two_queues(onvif=(0, 1))
    put(world, a_pod("runs", requests={"akri.sh/onvif": 1}, queue="vision", node="node-a"))
    put(world, a_labelled_claim("cam", "a"))
    pod = a_pod(claims=["cam"], queue="vision")

    found = refusal(world, pod, at_bind=True)

    sentence = (
        'ResourceClaim default/cam does not fit: queue "vision" uses 1 onvif, 1 more would pass'
        " its limit of 1."
    )
    assert found == Refused(Reason.OVER_LIMIT, sentence)
    assert refusal(world, pod) == found
    put(world, a_queue("vision", parent="research", onvif=(0, 2)))
    assert isinstance(verdict(world, pod, at_bind=True), Admitted)


def test_pods_that_are_not_bound_yet_pay_for_each_other_no_claim() -> None:
    """Neither was asked about the limit: the other's reservation proves nothing."""
    world = two_queues(onvif=(0, 0))
    pods = [a_pod(name, claims=["cam"], queue="vision") for name in "ab"]
    put(world, a_labelled_claim("cam", "a", "b"), *pods)

    assert [refusal(world, pod, at_bind=True).reason for pod in pods] == [Reason.OVER_LIMIT] * 2
    put(world, replace(pods[1], ended=True, node="node-a"))
    assert refusal(world, pods[0], at_bind=True).reason is Reason.OVER_LIMIT
    put(world, replace(pods[1], node="node-a"))
    assert isinstance(verdict(world, pods[0], at_bind=True), Admitted)


def test_what_is_no_pod_uses_a_claim_too() -> None:
    world = two_queues(onvif=(0, 0))
    put(world, replace(a_labelled_claim("cam", "a"), other_consumers=1))

    assert isinstance(verdict(world, a_pod(claims=["cam"], queue="vision"), at_bind=True), Admitted)


def test_claim_for_all_devices_that_grew_is_judged_by_what_it_got() -> None:
    world = two_queues(onvif=(0, 2))
    requests = [a_request(allocationMode="All")]
    put(world, a_slice("s", ("onvif", "onvif-1"), ("onvif", "onvif-2")))
    put(world, a_claim(queue="vision", requests=requests))
    pod = a_pod(claims=["cam"], queue="vision")
    admit(world, pod)

    put(world, a_labelled_claim("cam", "a", count=3, requests=requests))

    assert refusal(world, pod, at_bind=True).reason is Reason.OVER_LIMIT


def test_limit_that_was_lowered_since_the_filter_holds_for_an_owner_that_was_written() -> None:
    """The binder wrote it for a pod whose binding then failed."""
    world = two_queues(onvif=(0, 1))
    pod = a_pod(claims=["cam"], queue="vision")
    put(world, a_claim())
    admit(world, pod)
    put(world, an_allocated_claim("cam", "a", queue="vision", owner_pod="a"))
    assert isinstance(verdict(world, pod, at_bind=True), Admitted)

    put(world, a_queue("vision", parent="research", onvif=(0, 0)))

    assert refusal(world, pod, at_bind=True).reason is Reason.OVER_LIMIT


def test_own_reservation_of_a_non_preemptible_joiner_is_held_against_the_quota() -> None:
    world = owned(two_queues(onvif=(0, 2)))
    joiner = a_pod("b", claims=["cam"], queue="vision", non_preemptible=True)
    put(world, an_allocated_claim("cam", "a", "b", queue="vision", owner_pod="a"), joiner)
    assert world.ledger.of(VISION).non_preemptible == amounts(onvif=1)

    found = refusal(world, joiner, at_bind=True)

    sentence = (
        'ResourceClaim default/cam does not fit: queue "vision" uses 0 onvif, 1 more would pass'
        " its quota of 0 for non-preemptible pods."
    )
    assert found == Refused(Reason.NON_PREEMPTIBLE_OVER_QUOTA, sentence)
    put(world, a_queue("vision", parent="research", onvif=(1, 2)))
    assert isinstance(verdict(world, joiner, at_bind=True), Admitted)


def test_quota_that_was_lowered_refuses_all_who_were_to_be_non_preemptible_together() -> None:
    world = owned(two_queues(onvif=(1, 2)))
    joiners = [
        a_pod(name, claims=["cam"], queue="vision", non_preemptible=True) for name in ("b", "c")
    ]
    put(world, *joiners)
    for joiner in joiners:
        admit(world, joiner)
    put(world, an_allocated_claim("cam", "a", "b", "c", queue="vision", owner_pod="a"))

    put(world, a_queue("vision", parent="research", onvif=(0, 2)))

    for joiner in joiners:
        found = refusal(world, joiner, at_bind=True)
        assert found.reason is Reason.NON_PREEMPTIBLE_OVER_QUOTA
    put(world, a_queue("vision", parent="research", onvif=(1, 2)))
    assert isinstance(verdict(world, joiners[0], at_bind=True), Admitted)


# An owner that somebody else than the binder wrote.


def test_claim_labelled_with_a_queue_that_its_namespace_may_not_use_is_not_charged_to_it() -> None:
    world = two_queues(namespaceSelector=None)
    put(world, a_claim(queue="vision"))
    pod = a_pod(claims=["cam"], queue="robots")

    at_filter = refusal(world, pod)
    put(world, a_labelled_claim("cam", "a"))

    assert at_filter.reason is Reason.QUEUE_NOT_ALLOWED
    assert at_filter.sentence.startswith(
        'ResourceClaim default/cam is labelled with queue "vision", which namespace "default" may'
        " not use. It has no spec.namespaceSelector,"
    )
    assert refusal(world, pod, at_bind=True) == at_filter
    put(world, a_labelled_claim("cam", "a", owner_pod="a"))
    assert isinstance(verdict(world, pod, at_bind=True), Admitted), "the binder was asked before"


def test_nobody_joins_a_claim_labelled_with_a_queue_that_its_namespace_may_not_use() -> None:
    world = two_queues(namespaceSelector=None)
    put(world, a_pod("x", claims=["cam"], queue="vision", node="n"), a_labelled_claim("cam", "x"))

    assert refusal(world, a_pod(claims=["cam"], queue="robots")).reason is Reason.QUEUE_NOT_ALLOWED


def test_claim_labelled_with_a_queue_that_is_gone_takes_no_others() -> None:
    world = a_world(a_queue("robots"))
    put(world, a_pod("x", claims=["cam"], queue="vision", node="n"), a_labelled_claim("cam", "x"))

    assert refusal(world, a_pod(claims=["cam"], queue="robots")).reason is Reason.QUEUE_NOT_FOUND


def test_queue_that_may_not_be_named_on_claims_keeps_its_word_at_the_bind() -> None:
    world = two_queues(claimSharing={"labelAtCreate": "Deny"})
    put(world, a_labelled_claim("cam", "a"))
    pod = a_pod(claims=["cam"], queue="vision")

    found = refusal(world, pod, at_bind=True)

    assert found == Refused(
        Reason.QUEUE_NOT_ALLOWED,
        'ResourceClaim default/cam is labelled with queue "vision", which may not be named on a new'
        " claim (labelAtCreate: Deny). Make the claim without the label.",
    )
    put(world, a_pod("x", claims=["cam"], queue="vision", node="n"))
    put(world, a_labelled_claim("cam", "x", "a"))
    assert isinstance(verdict(world, pod, at_bind=True), Admitted), "it runs, and is charged"


# What was taken back is not lent again at once.


def test_pods_like_one_that_was_evicted_wait_before_they_borrow_again() -> None:
    world = two_queues(onvif=(1, 3))
    first, second = (a_pod(name, queue="vision", claims=[name]) for name in ("a", "b"))
    put(world, a_claim("a"), a_claim("b"), an_allocated_claim("c", "c", queue="vision"))
    put(world, a_pod("c", node="n", queue="vision", claims=["c"]))
    world.assumptions.backoffs.evicted(equivalence_class(first, world.facts), NOW)

    refused = refusal(world, second)

    assert refused.reason is Reason.BORROWING_BACKOFF
    assert "such pods borrow again from 2026-11-21T12:01:00Z on." in refused.sentence
    assert isinstance(verdict(world, second, now=NOW + timedelta(minutes=1)), Admitted)


def test_a_pod_is_alike_before_and_after_the_binder_wrote_the_owner_of_its_claim() -> None:
    world = two_queues(onvif=(0, 3))
    before, after = (a_pod(name, queue="vision", claims=[name]) for name in ("a", "b"))
    owned = an_allocated_claim("b", "b", queue="vision", owner_pod="uid-of-b")
    put(world, a_claim("a"), owned, before, after)

    assert equivalence_class(before, world.facts) == equivalence_class(after, world.facts)
    put(world, a_labelled_claim("a", "vision"))
    assert equivalence_class(before, world.facts) != equivalence_class(after, world.facts)


def test_within_their_quota_pods_like_one_that_was_evicted_wait_for_nothing() -> None:
    world = two_queues(onvif=(1, 3))
    pod = a_pod("a", queue="vision", claims=["a"])
    put(world, a_claim("a"))
    world.assumptions.backoffs.evicted(equivalence_class(pod, world.facts), NOW)

    assert isinstance(verdict(world, pod), Admitted)


def test_pods_that_ask_for_something_else_borrow() -> None:
    world = two_queues(onvif=(0, 3))
    pod, other = a_pod("a", queue="vision", claims=["a"]), a_pod("b", queue="robots", claims=["a"])
    put(world, a_claim("a"))
    world.assumptions.backoffs.evicted(equivalence_class(other, world.facts), NOW)

    assert isinstance(verdict(world, pod), Admitted)


# What is not known is not judged.


def test_claim_that_is_not_known_is_not_taken_for_absent() -> None:
    world = two_queues(onvif=(0, 0))
    pod = a_pod(claims=["cam"], queue="vision")

    sentence = "ResourceClaim default/cam, which Pod default/a names, is not known yet."
    assert refusal(world, pod) == Refused(Reason.NOT_KNOWN_YET, sentence)
    assert refusal(world, pod, at_bind=True) == Refused(Reason.NOT_KNOWN_YET, sentence)


def test_claim_that_is_being_deleted_takes_no_further_pod() -> None:
    world = two_queues()
    others, claim = a_pod("b", node="n", claims=["cam"], queue="vision"), {"deleted": str(NOW)}
    put(world, others, an_allocated_claim("cam", "b", queue="vision", **claim))
    pod = a_pod(claims=["cam"], queue="vision")

    refused = Refused(
        Reason.CLAIM_NOT_FOUND,
        "ResourceClaim default/cam, which Pod default/a names, is being deleted.",
    )
    assert refusal(world, pod) == refused
    assert refusal(world, pod, at_bind=True) == refused
    assert isinstance(verdict(world, others), Admitted), "it runs, and keeps the claim"
    assert world.ledger.usage.of(QueueName("vision")) == amounts(onvif=1)


def test_a_claim_of_kube_scheduler_that_is_being_deleted_is_followed_by_another() -> None:
    world = two_queues()
    put(world, a_claim("made", deleted=str(NOW)))
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "made", "requestMappings": []}}

    assert isinstance(verdict(world, a_pod(queue="vision", status=status)), Admitted)


def test_claim_that_was_deleted_is_known_to_be_gone_until_it_is_there_again() -> None:
    world = two_queues()
    put(world, a_claim())
    pod = a_pod(claims=["cam"], queue="vision")
    world.note_gone_claim("default", "cam")
    assert isinstance(verdict(world, pod), Admitted), "what is known is there"

    world.delete_claim(claim_uid("cam"))

    sentence = "ResourceClaim default/cam, which Pod default/a names, does not exist."
    assert refusal(world, pod) == Refused(Reason.CLAIM_NOT_FOUND, sentence)
    put(world, a_claim(uid="another"))
    assert isinstance(verdict(world, pod), Admitted)


def test_pod_waits_for_the_claim_that_is_to_be_made_of_a_template() -> None:
    world = two_queues()
    entry = {"name": "cam", "resourceClaimTemplateName": "cams"}
    pod = a_pod(resource_claims=[entry], queue="vision")
    needless = a_pod(resource_claims=[entry], status={"resourceClaimStatuses": [{"name": "cam"}]})

    sentence = "Pod default/a has no claim yet that is made of ResourceClaimTemplate default/cams."
    assert refusal(world, pod) == Refused(Reason.NOT_KNOWN_YET, sentence)
    assert verdict(world, needless) == Admitted()


def test_claims_that_are_gone_are_remembered_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_views, "MOST_GONE", 2)
    world = two_queues()
    for name in ("one", "two", "three"):
        world.note_gone_claim("default", name)

    found = [refusal(world, a_pod(claims=[name])).reason for name in ("one", "two", "three")]

    assert found == [Reason.NOT_KNOWN_YET, Reason.CLAIM_NOT_FOUND, Reason.CLAIM_NOT_FOUND]


def test_a_verdict_changes_nothing_of_what_is_assumed() -> None:
    world = two_queues(onvif=(0, 1))
    put(world, a_claim("first"), a_claim("second"))
    admit(world, a_pod("a", claims=["first"], queue="vision"))
    late = a_pod("b", claims=["second"], queue="vision")

    lapsed = NOW + ASSUMED_TTL
    assert isinstance(judge(late, world.facts.claims_of(late), world), Refused)
    assert len(world.assumptions) == 1
    assert isinstance(verdict(world, late, now=lapsed), Admitted)


@pytest.mark.parametrize("written", ["-1", "nonsense", "", "1e99999"])
def test_a_claim_for_no_number_of_slots_is_refused_with_where_it_stands(written: str) -> None:
    """It is neither free nor unknown for ever: what stands there is said."""
    claim = a_claim(requests=[a_request(), a_request(name="b", slots=written)])
    pod = a_pod(queue="vision", claims=["cam"])
    world = a_world(a_queue(onvif=(9, 9)), claim, pod)

    assert refusal(world, pod) == Refused(
        Reason.CLAIM_INVALID,
        "ResourceClaim default/cam asks for an invalid number of slots:"
        f" spec.devices.requests[1].exactly.capacity.requests[slots]: {written!r} is not a quantity"
        " of at least 0.",
    )


def test_what_another_driver_calls_slots_may_be_what_it_likes() -> None:
    spec = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}
    claim = a_claim(requests=[a_request("gpu", slots="-1")])
    pod = a_pod(queue="vision", claims=["cam"])
    world = a_world(a_queue(gpu=(1, 1)), a_class("gpu", spec=spec), claim, pod)

    assert admit(world, pod).claims[0].cost == amounts(gpu=1)

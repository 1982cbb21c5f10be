"""`why` explains each reason of a refusal: sentence, rule, and what would have to change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.equivalence_classes import equivalence_class
from scheduler_plugin.judging.rules.table import RULES
from scheduler_plugin.objects.amounts import NO_CHARGES
from scheduler_plugin.objects.names import AccountingSettings, QueueName, Reason
from scheduler_plugin.objects.pods import PodGroupView
from scheduler_plugin.viewing.why import Why, why
from tests.scheduler_plugin.builders import (
    a_claim,
    a_class,
    a_group,
    a_pod,
    a_queue,
    a_request,
    a_world,
    amounts,
    an_allocated_claim,
    pod_uid,
    put,
)
from tests.scheduler_plugin.viewing.test_rows import shared_world, with_cameras

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass(frozen=True)
class Told:
    """A pod `p` that is refused, and parts of what is to be said would help."""

    reason: Reason
    world: Callable[[], World]
    remedies: tuple[str, ...]


def no_queue() -> World:
    return a_world(a_queue(), a_claim(), a_pod("p", claims=("cam",)))


def invalid() -> World:
    claim = a_claim(requests=[a_request(slots="-1")])
    return a_world(a_queue(onvif=(4, 4)), claim, a_pod("p", queue="vision", claims=("cam",)))


def not_found() -> World:
    return a_world(a_claim(), a_pod("p", queue="nowhere", claims=("cam",)))


def not_allowed() -> World:
    closed = a_queue(namespaceSelector=None, onvif=(1, 1))
    return a_world(closed, a_claim(), a_pod("p", queue="vision", claims=("cam",)))


def label_not_allowed() -> World:
    minds = a_queue(claimSharing={"labelAtCreate": "Deny"}, onvif=(1, 1))
    return a_world(minds, a_claim(queue="vision"), a_pod("p", queue="vision", claims=("cam",)))


def full() -> World:
    pods = [f"x{number}" for number in range(2)]
    claim = an_allocated_claim("cam", *pods, queue="vision")
    world = a_world(
        a_queue(onvif=(4, 4)),
        claim,
        a_pod("p", queue="vision", claims=("cam",)),
        settings=AccountingSettings(max_consumers=2),
    )
    for pod in pods:
        world.put_pod(a_pod(pod, queue="vision", claims=("cam",), node="n", phase="Running"))
    return world


def too_many() -> World:
    world = shared_world(a_pod("p", queue="vision", claims=("cam",)))
    annotations = {"moorage.dev/max-pods-per-claim": "2"}
    world.put_class(a_class("onvif", configuration="onvif", annotations=annotations))
    return world


def group_of_two_queues() -> World:
    train: dict[str, Any] = {"claims": ("cam",), "group": "train"}
    return a_world(
        a_queue("vision", onvif=(1, 1)),
        a_queue("robots", onvif=(1, 1)),
        a_group(),
        an_allocated_claim("cam", groups=["train"], queue="vision"),
        a_pod("a", queue="vision", node="n", phase="Running", **train),
        a_pod("p", queue="robots", **train),
    )


def denied() -> World:
    return a_world(
        a_queue("vision", onvif=(1, 1), claimSharing={"policy": "Deny"}),
        a_queue("robots", onvif=(1, 1)),
        an_allocated_claim("cam", "a", queue="vision"),
        a_pod("a", queue="vision", claims=("cam",), node="n", phase="Running"),
        a_pod("p", queue="robots", claims=("cam",)),
    )


def foreign() -> World:
    return shared_world(a_pod("p", queue="robots", claims=("cam",), non_preemptible=True))


def over_limit() -> World:
    return shared_world(a_claim("more"), a_pod("p", queue="vision", claims=("more",)))


def over_quota() -> World:
    pod = a_pod("p", queue="robots", claims=("one", "two"), non_preemptible=True)
    return shared_world(a_claim("one"), a_claim("two"), pod)


def borrowing_backoff() -> World:
    pod = a_pod("p", queue="robots", claims=("one",))
    world = shared_world(a_claim("one"), pod)
    put(world, a_queue("robots", onvif=(0, 5)))
    world.assumptions.backoffs.evicted(equivalence_class(pod, world.facts), NOW)
    return world


def device_held() -> World:
    world = a_world(a_queue(onvif=(9, 9)), a_claim(), a_pod("p", queue="vision", claims=("cam",)))
    queue = QueueName("vision")
    world.hold(Hold(pod_uid("w"), "Pod w", queue, amounts(onvif=1), NO_CHARGES, is_device=True))
    return world


def not_known() -> World:
    return shared_world(a_pod("p", queue="vision", claims=("later",)))


def gone() -> World:
    world = shared_world(a_pod("p", queue="vision", claims=("former",)))
    world.note_gone_claim("default", "former")
    return world


def group_gone() -> World:
    world = a_world(a_queue(), a_claim(), a_pod("p", queue="vision", claims=("cam",)))
    world.delete_namespace("default")
    return world


def going() -> World:
    claim = a_claim("going", deleted=str(NOW))
    return shared_world(claim, a_pod("p", queue="vision", claims=("going",)))


def incomplete() -> World:
    pod = a_pod("p", queue="robots", claims=("one",), annotations={"pod-group-name": "crew"})
    world = shared_world(a_claim("one"))
    world.serve_groups(served=True)
    world.put_group(PodGroupView("default", "crew", a_queue("robots").name, 2))
    world.put_pod(pod)
    return world


CASES = [
    Told(
        Reason.NO_QUEUE,
        no_queue,
        ("kubectl label namespace default moorage.dev/queue=QUEUE", "create the pod again"),
    ),
    Told(Reason.QUEUE_NOT_FOUND, not_found, ('Create Queue "nowhere"',)),
    Told(
        Reason.QUEUE_NOT_ALLOWED,
        not_allowed,
        ("{matchLabels: {kubernetes.io/metadata.name: default}}", "a queue that this namespace"),
    ),
    Told(
        Reason.QUEUE_NOT_ALLOWED,
        label_not_allowed,
        ("create ResourceClaim default/cam again without its label",),
    ),
    Told(
        Reason.CLAIM_INVALID,
        invalid,
        ("Create ResourceClaim default/cam again with a whole number of slots of at least 1",),
    ),
    Told(Reason.CLAIM_FULL, full, ("One of its 2 consumers must end",)),
    Told(
        Reason.TOO_MANY_SHARERS,
        too_many,
        ("kubectl annotate --overwrite deviceclass onvif moorage.dev/max-pods-per-claim=3",),
    ),
    Told(
        Reason.POD_GROUP_QUEUE_MISMATCH,
        group_of_two_queues,
        ("must have one queue", "the queue label of the others"),
    ),
    Told(
        Reason.CLAIM_SHARING_DENIED,
        denied,
        ('Queue "vision"', "spec.claimSharing.policy: Allow", 'queue "robots" pays for'),
    ),
    Told(
        Reason.FOREIGN_NON_PREEMPTIBLE,
        foreign,
        ("moorage.dev/preemptibility: preemptible", "priority below 100"),
    ),
    Told(
        Reason.OVER_LIMIT,
        over_limit,
        (
            '1 device of onvif that queue "vision" uses has to be released',
            "ResourceClaim default/cam: 1",
            'raise the limit of queue "vision" for onvif from 1 to at least 2',
        ),
    ),
    Told(
        Reason.NON_PREEMPTIBLE_OVER_QUOTA,
        over_quota,
        ('the quota of queue "robots" for onvif from 1 to 2', "preemptibility: preemptible"),
    ),
    Told(Reason.BORROWING_BACKOFF, borrowing_backoff, ("Wait: it borrows again after that",)),
    Told(Reason.DEVICE_HELD, device_held, ("Wait: the other pod is bound soon",)),
    Told(Reason.NOT_KNOWN_YET, not_known, ("Create ResourceClaim default/later.",)),
    Told(Reason.CLAIM_NOT_FOUND, gone, ("Create ResourceClaim default/former.",)),
    Told(
        Reason.CLAIM_NOT_FOUND,
        going,
        ("Create ResourceClaim default/going again once it is deleted",),
    ),
    Told(Reason.GONE, group_gone, ("Create Namespace default again",)),
    Told(Reason.POD_GROUP_INCOMPLETE, incomplete, ("it must have as many pods as its minMember",)),
]


def found(case: Told) -> Why:
    told = why(case.world(), "default", "p", NOW)
    assert told is not None
    return told


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.world.__name__)
def test_a_refusal_is_explained_with_what_would_have_to_change(case: Told) -> None:
    told = found(case)

    assert told.reason == case.reason
    for part in case.remedies:
        assert part in " ".join(told.remedies)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.world.__name__)
def test_the_rule_that_fails_is_the_first_that_does_not_hold(case: Told) -> None:
    told = found(case)

    first = next((row for row in told.rules if row.holds is False), None)
    if case.reason is Reason.POD_GROUP_INCOMPLETE:
        assert first is None, "alone the pod would go"
    else:
        assert first is not None
        assert (first.reason, first.sentence) == (told.reason, told.sentence)


def test_every_reason_there_is_has_a_case() -> None:
    assert {case.reason for case in CASES} == set(Reason)


def test_rules_that_hold_are_told_with_their_figures() -> None:
    pod = a_pod("p", queue="robots", claims=("one", "cam"))
    told = why(with_cameras(shared_world(a_claim("one"), pod)), "default", "p", NOW)

    assert told is not None
    assert told.reason == "Admitted"
    rules = {row.reason: row.sentence for row in told.rules}
    assert list(rules) == [rule.reason for rule in RULES]
    assert all(row.holds for row in told.rules)
    assert 'queue "robots" uses 0 onvif, 1 more, limit none' in rules["OverLimit"]
    assert 'queue "research" uses 1 onvif, 1 more, limit 4' in rules["OverLimit"]
    assert "ResourceClaim default/cam has 2 of 256 consumers" in rules["ClaimFull"]
    assert 'ResourceClaim default/cam of queue "vision" is shared' in rules["ClaimSharingDenied"]
    assert told.remedies == ()
    assert told.reclaim == ""


def test_each_rule_that_fails_has_its_own_remedies() -> None:
    pod = a_pod("p", queue="robots", claims=("one", "two", "cam"), non_preemptible=True)
    told = why(shared_world(a_claim("one"), a_claim("two"), pod), "default", "p", NOW)

    assert told is not None
    failed = {row.reason: row.remedies for row in told.rules if row.holds is False}
    assert list(failed) == ["ForeignNonPreemptible", "NonPreemptibleOverQuota"]
    assert failed["ForeignNonPreemptible"] == told.remedies
    assert any("preemptible" in way for way in failed["NonPreemptibleOverQuota"])


@pytest.mark.parametrize("limit", [0, 1])
def test_what_no_release_would_make_room_for_is_not_to_be_released(limit: int) -> None:
    claim = a_claim("two", requests=[a_request(count=2)])
    world = a_world(a_queue(onvif=(0, limit)), claim, a_pod("p", queue="vision", claims=("two",)))
    told = why(world, "default", "p", NOW)

    assert told is not None
    assert told.remedies == (
        f'Raise the limit of queue "vision" for onvif from {limit} to at least 2.',
    )


def test_a_refusal_is_not_repeated_as_an_eviction() -> None:
    told = why(not_allowed(), "default", "p", NOW)

    assert told is not None
    assert (told.reason, told.reclaim) == ("QueueNotAllowed", "")


def test_rules_behind_a_queue_that_is_not_there_are_not_looked_at() -> None:
    told = why(not_found(), "default", "p", NOW)

    assert told is not None
    assert {row.holds for row in told.rules if row.reason in ("OverLimit", "ClaimFull")} == {None}


def test_a_pod_of_another_scheduler_is_told_so() -> None:
    pod = a_pod("p", queue="robots", claims=("one",), spec={"schedulerName": "default-scheduler"})
    told = why(shared_world(a_claim("one"), pod), "default", "p", NOW)

    assert told is not None
    assert told.reason == "OtherScheduler"
    assert "spec.schedulerName: moorage" in told.remedies[0]


def test_who_would_be_evicted_for_a_pod_is_told() -> None:
    world = a_world(
        a_queue("research", onvif=(1, 1)),
        a_queue("vision", parent="research", onvif=(1, 1)),
        a_queue("robots", parent="research", onvif=(0, 1)),
        an_allocated_claim("cam", "a", queue="robots"),
        a_pod("a", queue="robots", claims=("cam",), node="n", phase="Running"),
        a_claim("own"),
        a_pod("p", queue="vision", claims=("own",)),
    )
    told = why(world, "default", "p", NOW)

    assert told is not None
    assert told.reason == "OverLimit"
    assert "ResourceClaim default/cam" in told.reclaim
    assert "is given up by all its users (1 pods)" in told.reclaim.replace("1 pod)", "1 pods)")


def test_rules_on_what_a_pod_names_are_looked_at_though_one_of_them_refuses() -> None:
    world = shared_world(a_pod("p", queue="vision", claims=("former", "later")))
    world.note_gone_claim("default", "former")
    told = why(world, "default", "p", NOW)

    assert told is not None
    failed = [row.reason for row in told.rules if row.holds is False]
    assert failed == ["NotKnownYet", "ClaimNotFound"]
    assert told.reason == "NotKnownYet"
    assert {row.holds for row in told.rules[2:]} == {None}
    assert told.rules[2].sentence == "Not checked: NotKnownYet comes first."

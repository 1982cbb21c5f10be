"""Claims that are used and that nobody owns: whom they are attributed to, and which are none."""

from __future__ import annotations

from dataclasses import replace

from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.stale_claims import Attribution, attribution
from scheduler_plugin.objects.names import AccountingSettings, OrphanPolicy, QueueName
from scheduler_plugin.objects.pods import NamespaceView
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_class,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    admit,
    an_allocated_claim,
    claim_uid,
    pod_uid,
)

CLAIM = claim_uid("cam")
OLD = a_pod("old", queue="b", claims=["cam"], node="node-a", created="2026-11-21T10:00:00Z")
YOUNG = a_pod("young", queue="a", claims=["cam"], node="node-a", created="2026-11-21T11:00:00Z")


def an_orphaned_world(*pods: object, settings: AccountingSettings = SETTINGS) -> World:
    consumers = [pod.name for pod in pods]  # type: ignore[attr-defined]  # they are PodViews
    cam = an_allocated_claim("cam", *consumers)
    return a_world(a_queue("a"), a_queue("b"), *pods, cam, settings=settings)


def attributions(world: World) -> list[Attribution]:
    """Of all orphans that there are."""
    found = (attribution(uid, world) for uid in world.ledger.orphans())
    return [each for each in found if each is not None]


def test_an_orphan_is_attributed_to_the_queue_of_its_oldest_pod() -> None:
    found = attribution(CLAIM, an_orphaned_world(YOUNG, OLD))

    assert found is not None
    assert (found.owner.queue, found.owner.owner_pod) == (QueueName("b"), pod_uid("old"))
    assert (found.owner.resource_version, found.owner.label_found) == ("1", "")
    assert found.sentence == (
        "ResourceClaim default/cam was in use and belonged to no queue. It belongs to queue"
        ' "b" now, the queue of Pod default/old, the oldest of its pods that has one.'
    )


def test_a_pod_without_a_queue_is_passed_over() -> None:
    nobodys = a_pod("none", claims=["cam"], node="node-a", created="2026-11-21T09:00:00Z")

    found = attribution(CLAIM, an_orphaned_world(nobodys, YOUNG))
    assert found is not None
    assert found.owner.queue == QueueName("a")
    assert attribution(CLAIM, an_orphaned_world(nobodys)) is None


def test_a_queue_that_a_pod_may_not_use_is_charged_for_nothing_of_it() -> None:
    """Nothing judged the pod: anybody could have written that queue on it."""
    world = an_orphaned_world(OLD, YOUNG)
    world.put_queue(a_queue("b", namespaceSelector={"matchLabels": {"team": "b"}}))
    found = attribution(CLAIM, world)
    assert found is not None
    assert found.owner.queue == QueueName("a")

    world.delete_queue(QueueName("a"))
    assert attribution(CLAIM, world) is None
    # Both are seen with the next look, when the Queue or the namespace changed.
    world.put_namespace(NamespaceView("default", {"team": "b"}))
    found = attribution(CLAIM, world)
    assert found is not None
    assert found.owner.queue == QueueName("b")


def test_a_pod_that_ended_is_passed_over() -> None:
    ended = replace(OLD, ended=True)

    found = attribution(CLAIM, an_orphaned_world(ended, YOUNG))
    assert found is not None
    assert found.owner.queue == QueueName("a")
    assert attribution(CLAIM, an_orphaned_world(ended)) is None


def test_an_orphan_stays_nobodys_where_the_policy_says_so() -> None:
    unattributed = AccountingSettings(orphan_policy=OrphanPolicy.UNATTRIBUTED)
    world = an_orphaned_world(OLD, settings=unattributed)

    assert world.ledger.orphans() == (CLAIM,)
    assert attributions(world) == []


def test_a_claim_between_prebind_and_bind_is_no_orphan() -> None:
    waits = a_pod("a", queue="a", claims=["cam"])

    assert attribution(CLAIM, an_orphaned_world(waits)) is None


def test_a_claim_that_a_decision_in_flight_is_about_is_left_alone() -> None:
    joins = a_pod("a", queue="b", claims=["cam"])
    world = an_orphaned_world(OLD, joins)
    admit(world, joins)
    assert attribution(CLAIM, world) is None

    world.assumptions.expire(NOW + ASSUMED_TTL)

    assert attribution(CLAIM, world) is not None


def test_a_claim_with_an_unknown_consumer_is_left_alone() -> None:
    world = a_world(a_queue("b"), OLD, an_allocated_claim("cam", "unknown", "old"))

    assert attribution(CLAIM, world) is None


def test_an_owned_claim_is_no_orphan() -> None:
    world = a_world(a_queue("a"), OLD, an_allocated_claim("cam", "old", queue="a"))

    assert attribution(CLAIM, world) is None


def test_a_claim_that_queues_do_not_count_is_no_orphan() -> None:
    theirs = [a_result(driver="gpu.example.com")]
    uncounted = an_allocated_claim("cam", "old", requests=[a_request("gpu")], results=theirs)

    assert attribution(CLAIM, a_world(a_class("gpu"), a_queue("b"), OLD, uncounted)) is None


def test_all_claims_of_another_scheduler_are_found() -> None:
    pods = [a_pod(f"p{n}", queue="a", claims=[f"c{n}"], node="node-a") for n in range(3)]
    claims = [an_allocated_claim(f"c{n}", f"p{n}") for n in range(3)]
    world = a_world(a_queue("a"), *pods, *claims)

    assert [found.owner.name for found in attributions(world)] == ["c0", "c1", "c2"]

"""A pod's queue while what would say it is not known: nobody is judged, and nobody charged."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.accounting.charges.owners import owner_of
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.owner_exits import owner_exit
from scheduler_plugin.cleanup.stale_claims import attribution
from scheduler_plugin.judging.verdicts import Admitted, Refused
from scheduler_plugin.objects.amounts import NO_CHARGES, ResourceKey
from scheduler_plugin.objects.names import NO_QUEUE, AccountingSettings, QueueName, Reason
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_world,
    an_allocated_claim,
    claim_uid,
    put,
    refusal,
    usage,
    verdict,
)

ONVIF = ResourceKey("onvif")
GROUP = PodGroupView("default", "g", QueueName("vision"))
ROBOTS = NamespaceView("default", {"moorage.dev/queue": "robots"})
NOT_DEFAULT = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
    ]
}
UNLABELLED = {"matchExpressions": [{"key": "closed", "operator": "DoesNotExist"}]}


def grouped(name: str = "a", **overrides: Any) -> PodView:
    return a_pod(name, annotations={"pod-group-name": "g"}, **{"claims": ["cam"], **overrides})


def a_robots_world(*objects: object) -> World:
    """The namespace's queue is robots, and the group that says otherwise is not known."""
    world = a_world(a_queue("vision"), a_queue("robots"), a_claim(), *objects)
    world.put_namespace(ROBOTS)
    return world


# PodGroups.


def test_pod_waits_for_its_group_and_does_not_take_the_queue_of_its_namespace() -> None:
    world, pod = a_robots_world(), grouped()

    found = refusal(world, pod)
    world.put_group(GROUP)
    admitted = verdict(world, pod)

    sentence = (
        "ResourceClaim default/cam needs a queue, and waits for PodGroup default/g, which is not"
        " known yet."
    )
    assert found == Refused(Reason.NOT_KNOWN_YET, sentence)
    assert isinstance(admitted, Admitted)
    assert admitted.queue == "vision"


def test_group_that_is_gone_is_a_reason_of_its_own() -> None:
    world, pod = a_robots_world(), grouped()
    world.put_group(GROUP)
    world.delete_group("default", "g")

    found = refusal(world, pod)
    world.put_group(GROUP)

    sentence = (
        "ResourceClaim default/cam needs a queue, and PodGroup default/g, which decides it, was"
        " deleted."
    )
    assert found == Refused(Reason.GONE, sentence)
    assert isinstance(verdict(world, pod), Admitted)


def test_pod_that_says_its_queue_itself_needs_no_group() -> None:
    assert isinstance(verdict(a_robots_world(), grouped(queue="vision")), Admitted)


def test_annotation_means_nothing_where_the_cluster_has_no_groups() -> None:
    world, pod = a_robots_world(), grouped()
    world.serve_groups(served=False)
    without = verdict(world, pod)

    world.serve_groups(served=True)

    assert isinstance(without, Admitted)
    assert without.queue == "robots"
    assert refusal(world, pod).reason is Reason.NOT_KNOWN_YET


def test_bound_pod_of_an_unknown_group_is_charged_to_nobody_until_it_is_known() -> None:
    running = grouped(node="node-a", claims=[], requests={"akri.sh/onvif": 2})
    world = a_robots_world(running)
    world.put_configuration(ONVIF)
    before = usage(world, "robots"), usage(world, "vision")

    world.put_group(GROUP)

    assert before == (NO_CHARGES, NO_CHARGES)
    assert usage(world, "robots") == NO_CHARGES
    assert usage(world, "vision")[ONVIF] == 2


def test_group_says_the_queue_whatever_is_known_of_the_namespace() -> None:
    consumer = grouped("a", non_preemptible=True)
    world = a_robots_world(consumer, an_allocated_claim("cam", "a", queue="vision"))
    world.put_group(GROUP)

    world.delete_namespace("default")

    assert world.ledger.of(QueueName("vision")).non_preemptible[ONVIF] == 1


# Namespaces.


@pytest.mark.parametrize("selector", [NOT_DEFAULT, UNLABELLED, {}])
def test_queue_admits_no_namespace_that_is_not_known(selector: dict[str, object]) -> None:
    """Without labels it would be admitted by whatever asks for a label not to be there."""
    world = a_world(a_queue(namespaceSelector=selector), a_claim(), namespaces=())
    pod = a_pod(claims=["cam"], queue="vision")

    found = refusal(world, pod)

    sentence = (
        "ResourceClaim default/cam needs a queue, and waits for Namespace default, which is not"
        " known yet."
    )
    assert found == Refused(Reason.NOT_KNOWN_YET, sentence)
    assert not world.facts.may_use(pod, QueueName("vision"))


def test_default_queue_is_not_that_of_a_pod_whose_namespace_is_not_known() -> None:
    settings = AccountingSettings(default_queue=QueueName("vision"))
    world = a_world(a_queue(), settings=settings, namespaces=())

    assert world.facts.queue_of(a_pod()) == NO_QUEUE
    world.put_namespace(NamespaceView("default", {}))
    assert world.facts.queue_of(a_pod()) == "vision"


def test_namespace_that_is_gone_is_a_reason_of_its_own() -> None:
    world = a_world(a_queue(), a_claim())
    world.delete_namespace("default")

    found = refusal(world, a_pod(claims=["cam"], queue="vision"))

    assert found.reason is Reason.GONE
    assert "Namespace default, which decides it, was deleted." in found.sentence


# Owners that nobody wrote.


def test_earliest_reservation_makes_no_queue_owner_that_may_not_be_used_there() -> None:
    """After a restart: the pod would be refused when it is bound."""
    world = a_world(a_queue("victim", namespaceSelector={"matchLabels": {"team": "v"}}))
    put(world, a_queue("vision"), a_pod("a", queue="victim"), a_pod("b", queue="vision"))
    claim = an_allocated_claim("cam", "a", "b")

    found = owner_of(claim, world.facts, None)

    assert found is not None
    assert found.queue == "vision"


def test_nobody_joins_a_claim_whose_earliest_reservation_has_an_unknown_queue() -> None:
    world = a_robots_world(grouped("a"), an_allocated_claim("cam", "a", "b"))
    pod = a_pod("b", claims=["cam"], queue="robots")

    found = refusal(world, pod, at_bind=True)
    world.put_group(GROUP)
    admitted = verdict(world, pod, at_bind=True)

    sentence = (
        "ResourceClaim default/cam belongs to the queue of Pod default/a, and waits for PodGroup"
        " default/g, which is not known yet."
    )
    assert found == Refused(Reason.NOT_KNOWN_YET, sentence)
    assert isinstance(admitted, Admitted)
    assert [use.owner for use in admitted.claims] == ["vision"]


def test_orphan_is_attributed_to_no_younger_pod_while_the_oldest_one_s_queue_is_unknown() -> None:
    world = a_robots_world(
        grouped("a", node="n", created="2026-01-01T00:00:00Z"),
        a_pod("b", node="n", claims=["cam"], queue="robots"),
        an_allocated_claim("cam", "a", "b"),
    )
    before = attribution(claim_uid("cam"), world)

    world.put_group(GROUP)
    found = attribution(claim_uid("cam"), world)

    assert before is None
    assert found is not None
    assert found.owner.queue == "vision"


def test_nobody_is_foreign_whose_queue_is_not_known() -> None:
    """It may be the owner's: nothing is noted, and nobody is evicted."""
    world = a_robots_world(grouped("a", node="n"), an_allocated_claim("cam", "a", queue="vision"))
    entry = world.ledger.claim(claim_uid("cam"))

    assert entry is not None
    assert not entry.shared_out
    assert owner_exit(claim_uid("cam"), world, NOW) is None

"""What has to be read anew before a pod is bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler_plugin.accounting.freshness import (
    awaits_extended_claim,
    claims_to_read,
    stand,
    unowned_claims,
)
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, bind_request, judge
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.catalog import MOST_REMEMBERED
from scheduler_plugin.objects.names import QueueName
from tests.scheduler_plugin.builders import (
    a_claim,
    a_class,
    a_pod,
    a_queue,
    a_request,
    a_world,
    an_allocated_claim,
    claim_uid,
    put,
    their_class,
)


def test_a_claim_is_fresh_when_it_shows_the_reservation_and_the_allocation() -> None:
    pod = a_pod("a", claims=["cam", "old", "unreserved", "unknown"])
    world = a_world(
        pod,
        an_allocated_claim("cam", "a"),
        a_claim("old"),
        an_allocated_claim("unreserved", "b"),
    )

    assert claims_to_read(pod, world.facts) == ("old", "unreserved", "unknown")


def test_a_claim_that_nobody_counts_is_always_fresh() -> None:
    of_another = their_class("gpu", 'device.driver == "gpu.example.com"')
    world = a_world(of_another, a_claim("card", requests=[a_request("gpu")]))

    assert claims_to_read(a_pod("a", claims=["card"]), world.facts) == ()


def test_what_was_judged_stands_while_each_claim_says_it() -> None:
    """A user may write another queue, or delete a claim, while another's owner is written."""
    claims = [an_allocated_claim(name, "a", queue="vision") for name in ("one", "two")]
    pod = a_pod("a", claims=["one", "two"], queue="vision")
    world = a_world(a_queue("vision", onvif=(2, 2)), a_queue("robots"), pod, *claims)
    verdict = judge(pod, claims, world, at_bind=True)
    assert isinstance(verdict, Admitted)
    judged = bind_request(pod, "node-a", verdict).claims

    assert stand(judged, world.facts)
    world.put_claim(replace(claims[1], label=QueueName("robots")))
    assert not stand(judged, world.facts)
    world.put_claim(claims[1])
    world.delete_claim(claim_uid("one"))
    assert not stand(judged, world.facts)


@pytest.mark.parametrize(
    ("resource", "awaited"),
    [
        ("akri.sh/onvif", True),
        ("deviceclass.resource.kubernetes.io/onvif", True),
        ("akri.sh/unknown", False),
        ("example.com/gpu", False),
    ],
)
def test_a_claim_may_be_made_for_what_an_accounted_class_offers(
    resource: str, awaited: bool
) -> None:
    catalog = a_world().facts.catalog

    assert awaits_extended_claim(a_pod(requests={resource: 1}), catalog) is awaited


def test_a_claim_may_have_been_made_while_the_class_was_there() -> None:
    """It was deleted before the pod was bound (seed 4711 on 1.36)."""
    world = a_world()
    pod = a_pod(requests={"akri.sh/onvif": 1})

    world.delete_class(ClassName("onvif"))

    assert awaits_extended_claim(pod, world.facts.catalog)


def test_of_classes_that_are_gone_a_thousand_are_remembered() -> None:
    world = a_world()
    for number in range(MOST_REMEMBERED + 1):
        name = ClassName(f"class-{number}")
        put(world, a_class(name, spec={"extendedResourceName": f"example.com/{number}"}))
        world.delete_class(name)

    pods = [a_pod(requests={f"example.com/{number}": 1}) for number in (0, 1, MOST_REMEMBERED)]

    awaited = [awaits_extended_claim(pod, world.facts.catalog) for pod in pods]
    assert awaited == [False, True, True]


def test_no_claim_is_awaited_for_what_one_covers() -> None:
    pod = a_pod(requests={"akri.sh/onvif": 1})
    covered = replace(pod, extended_resources=frozenset({"akri.sh/onvif"}))

    assert not awaits_extended_claim(covered, a_world().facts.catalog)


def test_owners_are_to_be_written_where_no_label_stands() -> None:
    pod = a_pod("a", claims=["z", "labelled", "stale", "b", "gpu"])
    world: World = a_world(
        pod,
        a_class("gpu"),
        an_allocated_claim("z", "a"),
        an_allocated_claim("labelled", "a", queue="vision"),
        an_allocated_claim("stale", "a", queue="vision", owner_pod="gone"),
        an_allocated_claim("b", "a"),
    )
    put(world, a_claim("gpu", requests=[a_request("gpu")]))

    assert unowned_claims(pod, world.facts) == tuple(
        claim_uid(name) for name in ("b", "stale", "z")
    )

"""A claim says once which queues use it for free, and which were turned away."""

from __future__ import annotations

from typing import Any

import pytest

from kube.api import Event
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, QueueChanged
from scheduler_plugin.cluster.apiserver_warnings import SharingTeller
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
)


class Fence:
    """A Lease that is ours unless the test says why not."""

    why = ""

    def why_not(self, _seconds: float) -> str:
        return self.why


@pytest.fixture
def world() -> World:
    return a_world(
        a_queue("vision", onvif=(1, 1)),
        a_queue("robots"),
        an_allocated_claim("cam", "a", "guest", queue="vision"),
        a_pod("a", queue="vision", claims=("cam",), node="n"),
    )


class Told:
    """What is told of pods as they come."""

    def __init__(self, world: World) -> None:
        self.world, self.fence = world, Fence()
        self.events: list[Event] = []
        self.teller = SharingTeller(world, self.fence, self.events.append)

    def see(self, *pods: PodView) -> list[str]:
        """The reasons of what is told of them."""
        before = len(self.events)
        for pod in pods:
            put(self.world, pod)
            self.teller.changed(PodChanged(pod.uid))
        return [event.reason for event in self.events[before:]]


@pytest.fixture
def told(world: World) -> Told:
    return Told(world)


def guest(name: str = "guest", **fields: Any) -> PodView:
    return a_pod(name, **{"queue": "robots", "claims": ("cam",), "node": "n", **fields})


def test_a_claim_says_once_that_another_queue_uses_it(told: Told) -> None:
    assert told.see(guest(), guest("other"), guest(phase="Running")) == ["ClaimShared"]

    (event,) = told.events
    assert (event.regarding.kind, event.regarding.name) == ("ResourceClaim", "cam")
    assert event.note == (
        'ResourceClaim default/cam, which queue "vision" pays for, is used by queue "robots", too:'
        " by Pod default/guest."
    )


def test_a_claim_says_once_who_was_turned_away(told: Told) -> None:
    put(told.world, a_queue("vision", onvif=(1, 1), claimSharing={"policy": "Deny"}))

    assert told.see(guest(node=""), guest("other", node="")) == ["ClaimSharingDenied"]
    assert told.events[0].note == (
        'ResourceClaim default/cam belongs to queue "vision", which does not share its claims with'
        ' queue "robots": Pod default/guest waits.'
    )


@pytest.mark.parametrize(
    "pod",
    [
        guest(queue="vision"),
        guest(queue="vision", node=""),
        guest(node=""),
        guest(queue=""),
        guest(phase="Succeeded"),
        guest(claims=("free",)),
        guest(claims=()),
    ],
    ids=["owner", "owner's", "welcome", "nobody's", "ended", "nobody owns it", "no claim"],
)
def test_of_others_nothing_is_told(told: Told, pod: PodView) -> None:
    put(told.world, a_claim("free"))

    assert told.see(pod) == []


def test_a_replica_that_does_not_lead_tells_nothing_and_the_next_change_does(told: Told) -> None:
    told.fence.why = "another leads"
    assert told.see(guest()) == []

    told.fence.why = ""
    assert told.see(guest()) == ["ClaimShared"]


def test_what_is_no_pod_is_no_matter(told: Told) -> None:
    told.teller.changed(QueueChanged(QueueName("vision")))
    told.teller.changed(PodChanged(pod_uid("nobody")))

    assert told.events == []

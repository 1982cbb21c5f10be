"""A claim says once which queues use it for free, and which were turned away."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube.api import Event
from kube.events.event_series import EventSeries
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, QueueChanged
from scheduler_plugin.cluster.apiserver_warnings import AT_ONCE, REST_SECONDS, SharingTeller
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
        self.now = 0.0
        self.teller = SharingTeller(world, self.fence, self.events.append, lambda: self.now)

    def see(self, *pods: PodView) -> list[str]:
        """The reasons of what is told of them."""
        for pod in pods:
            put(self.world, pod)
            self.teller.changed(PodChanged(pod.uid))
        return self.look()

    def look(self) -> list[str]:
        """The reasons of what is told now."""
        before = len(self.events)
        self.teller.look()
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


def test_queues_that_come_together_are_told_of_together(told: Told) -> None:
    put(told.world, a_queue("arms"))

    assert told.see(guest(), guest("second", queue="arms")) == ["ClaimShared"]
    note = told.events[0].note
    assert 'queue "robots", too: by Pod default/guest.' in note
    assert 'queue "arms", too: by Pod default/second.' in note


def test_a_queue_that_comes_later_is_no_repetition(told: Told) -> None:
    """Within a minute its sentence would not be written."""
    put(told.world, a_queue("arms"))
    series = EventSeries("moorage.dev/scheduler-plugin", "p")
    began = datetime(2026, 1, 1, tzinfo=UTC)
    told.see(guest())
    series.record(told.events[0], now=began, unique="a")

    assert told.see(guest("second", queue="arms")) == []
    told.now = REST_SECONDS
    assert told.look() == ["ClaimShared"]

    later = began + timedelta(seconds=told.now)
    assert series.record(told.events[1], now=later, unique="b") is not None


def test_who_left_before_it_was_told_is_not_told_of_and_the_next_one_is(told: Told) -> None:
    put(told.world, guest())
    told.teller.changed(PodChanged(guest().uid))

    assert told.see(guest(phase="Failed")) == []
    assert told.see(guest("other")) == ["ClaimShared"]
    assert "Pod default/other" in told.events[0].note


def test_of_many_claims_it_is_told_little_by_little(told: Told) -> None:
    names = [f"c{n}" for n in range(AT_ONCE + 1)]
    for name in names:
        put(told.world, an_allocated_claim(name, f"at-{name}", queue="vision"))

    assert len(told.see(*(guest(f"at-{name}", claims=(name,)) for name in names))) == AT_ONCE
    assert len(told.look()) == 1


def test_what_is_no_pod_is_no_matter(told: Told) -> None:
    told.teller.changed(QueueChanged(QueueName("vision")))
    told.teller.changed(PodChanged(pod_uid("nobody")))

    assert told.events == []

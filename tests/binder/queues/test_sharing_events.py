"""A claim says once which queues use it for free, and which were turned away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from binder.queues.apiserver_warnings import SharingRecorder, WarningSettings
from kube.events.api import Event
from kube.events.event_series import EventSeries
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, QueueChanged
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.fence import FakeFence
from tests.fakes.pods import running
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
)

SETTINGS = WarningSettings()
SOON = SETTINGS.gather_seconds + SETTINGS.pause_seconds / 2


@pytest.fixture
def world() -> World:
    return a_world(
        a_queue("vision", onvif=(1, 1)),
        a_queue("robots"),
        an_allocated_claim("cam", "a", "guest", queue="vision"),
        a_pod("a", queue="vision", claims=("cam",), node="n"),
    )


class Reported:
    """What is recorded of pods as they come."""

    def __init__(self, world: World) -> None:
        self.world, self.fence = world, FakeFence()
        self.events: list[Event] = []
        self.moments: list[float] = []
        self.recorder = SharingRecorder(world, self.fence, self._record, SETTINGS)

    def _record(self, event: Event) -> None:
        self.events.append(event)
        self.moments.append(asyncio.get_running_loop().time())

    async def see(self, *pods: PodView, seconds: float = SOON) -> list[str]:
        """The reasons of what is recorded of them so soon."""
        for pod in pods:
            put(self.world, pod)
            self.recorder.changed(PodChanged(pod.uid))
        return await self.after(seconds)

    async def after(self, seconds: float = SOON) -> list[str]:
        """The reasons of what is recorded within so many seconds."""
        before = len(self.events)
        async with running(self.recorder.run()):
            await asyncio.sleep(seconds)
        return [event.reason for event in self.events[before:]]


@pytest.fixture
def reported(world: World) -> Reported:
    return Reported(world)


def guest(name: str = "guest", **fields: Any) -> PodView:
    return a_pod(name, **{"queue": "robots", "claims": ("cam",), "node": "n", **fields})


@in_virtual_time
async def test_a_claim_says_once_that_another_queue_uses_it(reported: Reported) -> None:
    assert await reported.see(guest(), guest("other"), guest(phase="Running")) == ["ClaimShared"]

    (event,) = reported.events
    assert (event.regarding.kind, event.regarding.name) == ("ResourceClaim", "cam")
    assert event.note == (
        'ResourceClaim default/cam, which queue "vision" pays for, is used by queue "robots", too:'
        " by Pod default/guest."
    )


@in_virtual_time
async def test_a_claim_says_once_who_was_turned_away(reported: Reported) -> None:
    put(reported.world, a_queue("vision", onvif=(1, 1), claimSharing={"policy": "Deny"}))

    assert await reported.see(guest(node=""), guest("other", node="")) == ["ClaimSharingDenied"]
    assert reported.events[0].note == (
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
@in_virtual_time
async def test_of_others_nothing_is_told(reported: Reported, pod: PodView) -> None:
    put(reported.world, a_claim("free"))

    assert await reported.see(pod) == []


@in_virtual_time
async def test_what_happens_while_the_renewal_of_the_lease_is_late_is_recorded_after_it(
    reported: Reported,
) -> None:
    reported.fence.left = SETTINGS.write_seconds / 2
    assert await reported.see(guest()) == []
    reported.fence.left = float("inf")

    assert await reported.after(2) == ["ClaimShared"]


@in_virtual_time
async def test_a_replica_that_does_not_lead_tells_nothing_and_the_next_change_does(
    reported: Reported,
) -> None:
    reported.fence.closed = "another leads"
    assert await reported.see(guest()) == []

    reported.fence.closed = ""
    assert await reported.see(guest()) == ["ClaimShared"]


@in_virtual_time
async def test_queues_that_come_together_are_told_of_together(reported: Reported) -> None:
    put(reported.world, a_queue("arms"))

    assert await reported.see(guest(), guest("second", queue="arms")) == ["ClaimShared"]
    note = reported.events[0].note
    assert 'queue "robots", too: by Pod default/guest.' in note
    assert 'queue "arms", too: by Pod default/second.' in note


@in_virtual_time
async def test_a_queue_that_comes_later_is_no_repetition(reported: Reported) -> None:
    """Within a minute its sentence would not be written."""
    put(reported.world, a_queue("arms"))
    series = EventSeries("moorage.dev/scheduler-plugin", "p")
    began = datetime(2026, 1, 1, tzinfo=UTC)
    await reported.see(guest())
    series.record(reported.events[0], now=began, unique="a")

    assert await reported.see(guest("second", queue="arms")) == []
    assert await reported.after(SETTINGS.interval_seconds) == ["ClaimShared"]

    earlier, now = reported.moments
    later = began + timedelta(seconds=now - earlier)
    assert series.record(reported.events[1], now=later, unique="b") is not None


@in_virtual_time
async def test_who_left_before_it_was_told_is_not_told_of_and_the_next_one_is(
    reported: Reported,
) -> None:
    put(reported.world, guest())
    reported.recorder.changed(PodChanged(guest().uid))

    assert await reported.see(guest(phase="Failed")) == []
    assert await reported.see(guest("other")) == ["ClaimShared"]
    assert "Pod default/other" in reported.events[0].note


@in_virtual_time
async def test_of_many_claims_it_is_told_little_by_little(reported: Reported) -> None:
    names = [f"c{number}" for number in range(5)]
    for name in names:
        put(reported.world, an_allocated_claim(name, f"at-{name}", queue="vision"))

    foreign_pods = [guest(f"at-{name}", claims=(name,)) for name in names]
    assert len(await reported.see(*foreign_pods, seconds=60.0)) == len(names)
    gaps = [later - earlier for earlier, later in pairwise(reported.moments)]
    assert min(gaps) >= SETTINGS.pause_seconds


@in_virtual_time
async def test_what_is_no_pod_is_no_matter(reported: Reported) -> None:
    reported.recorder.changed(QueueChanged(QueueName("vision")))
    reported.recorder.changed(PodChanged(pod_uid("nobody")))

    assert reported.events == []

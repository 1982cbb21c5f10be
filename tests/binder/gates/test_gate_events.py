"""A pod that waits at its gate has one Event for each reason, which says what it waits for."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from binder.gates.apiserver_conditions import ConditionSettings
from binder.gates.apiserver_gate_events import GateEvents, GateEventSettings
from binder.gates.apiserver_gate_terms import GateSettings
from binder.gates.apiserver_gate_writes import GateWrites
from binder.gates.apiserver_gates import GateWriter
from kube.events.api import Event, EventRecorder
from scheduler_plugin.accounting.world_changes import QueueChanged
from scheduler_plugin.objects.names import QUOTA_GATE, QueueName, Reason
from scheduler_plugin.waiting.admissions import GateCondition, WaitReason
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from tests.binder.virtual_time import in_virtual_time
from tests.fakes.apiserver import FakeApiServer
from tests.fakes.fence import FakeFence
from tests.fakes.pods import FakePods, running
from tests.scheduler_plugin.builders import NOW, a_pod_object, a_queue, a_world, moment

PODS = 300
SETTINGS = GateEventSettings()
SETTLED = SETTINGS.settled_seconds
SOON = SETTINGS.pace_seconds / 2
IN_NO_TIME = GateSettings(
    tick_seconds=0.0,
    look_seconds=0.0,
    conditions=ConditionSettings(pace_seconds=0.0),
    events=GateEventSettings(settled_seconds=0.0, pace_seconds=0.0),
)


# Which conditions become Events, and when.


def waits(name: str, reason: str, message: str = "Because.") -> GateCondition:
    return GateCondition(
        namespace="default", name=name, uid=uid(name), since="", reason=reason, message=message
    )


def uid(name: str) -> Any:
    return FakePods(a_world()).put(a_pod_object(name)).uid


@dataclass
class Told:
    """Pods at their gates, and the Events that they get."""

    pods: FakePods = field(default_factory=lambda: FakePods(a_world()))
    fence: FakeFence = field(default_factory=FakeFence)
    recorded: list[Event] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.events = GateEvents(self.pods.world, self.fence, self._record)

    def _record(self, event: Event) -> None:
        self.recorded.append(event)
        self.moments.append(asyncio.get_running_loop().time())

    def written(self, name: str, reason: str, message: str = "Because.") -> None:
        """The condition is stored, and the world heard of it."""
        stored = [{"type": "moorage.dev/Admitted", "status": "False", "reason": reason}]
        spec = {"schedulingGates": [{"name": QUOTA_GATE}]}
        self.pods.put(a_pod_object(name, spec=spec, status={"conditions": stored}))
        self.events.written(waits(name, reason, message))

    async def after(self, seconds: float) -> list[str]:
        """Names of the pods that get an Event within so many seconds and a moment, and why."""
        self.recorded.clear()
        async with running(self.events.run()):
            await asyncio.sleep(seconds + SOON)
        return [f"{event.regarding.name} {event.reason}" for event in self.recorded]


@pytest.fixture
def told() -> Told:
    return Told()


@in_virtual_time
async def test_a_pod_that_waits_is_told_by_a_warning_what_it_waits_for(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT, 'Queue "a" uses 2 onvif.')

    assert await told.after(SETTLED) == ["p0 OverLimit"]

    (event,) = told.recorded
    assert (str(event.type), event.action) == ("Warning", "Admit")
    assert event.note == 'The pod waits at its scheduling gate. Queue "a" uses 2 onvif.'
    assert event.regarding.json["kind"] == "Pod"
    assert event.regarding.uid == uid("p0")
    assert await told.after(3600) == []


@in_virtual_time
async def test_a_reason_that_does_not_last_is_not_told(told: Told) -> None:
    """A claim of a template is made moments after the pod."""
    told.written("p0", WaitReason.CLAIM_NOT_FOUND)
    assert await told.after(SETTLED / 2) == []

    told.written("p0", Reason.OVER_LIMIT)

    assert await told.after(SETTLED / 2) == ["p0 OverLimit"]
    assert await told.after(3600) == []


@in_virtual_time
async def test_another_reason_is_told_anew(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT)
    assert await told.after(SETTLED) == ["p0 OverLimit"]

    told.written("p0", WaitReason.ROOM_IS_LEFT)

    assert await told.after(SETTLED) == ["p0 RoomIsLeft"]


@in_virtual_time
async def test_a_pod_that_goes_before_it_is_told_gets_no_event(told: Told) -> None:
    told.written("freed", Reason.OVER_LIMIT)
    told.written("deleted", Reason.OVER_LIMIT)
    told.pods.ungate("freed")
    told.pods.delete("deleted")

    assert await told.after(SETTLED) == []
    assert len(told.events) == 0


@in_virtual_time
async def test_that_a_refused_pod_fits_is_no_wait(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT)
    await told.after(SETTLED)

    told.events.written(replace(waits("p0", "Fits"), fits=True))

    assert await told.after(SETTLED) == []


@in_virtual_time
async def test_many_pods_are_told_at_a_pace_the_first_that_waited_first(told: Told) -> None:
    names = [f"p{number:02}" for number in range(11)]
    for name in names:
        told.written(name, Reason.OVER_LIMIT)

    lines = await told.after(60.0)

    assert [line.split()[0] for line in lines] == names
    gaps = [later - earlier for earlier, later in pairwise(told.moments)]
    assert min(gaps) >= SETTINGS.pace_seconds


@in_virtual_time
async def test_who_has_no_lease_tells_nothing_until_it_is_back(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT)
    told.fence.closed = "Another holds it."
    assert await told.after(SETTLED) == []

    told.fence.closed = ""

    assert await told.after(1.0) == ["p0 OverLimit"]


# What the API server has to do for it.


async def settled() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_events_cost_one_write_for_each_waiting_pod_whatever_its_figures_do() -> None:
    """300 pods wait; then 50 times a limit changes that still lets none go."""
    pods, server, now = FakePods(a_world()), FakeApiServer(), [NOW]
    recorder = EventRecorder(server.client, "moorage.dev/scheduler-plugin", "plugin-0")
    writer = GateWriter(
        GateWrites(pods.client, pods, FakeFence()),
        RefusedPods(),
        lambda: now[0],
        lambda: moment(now[0]),
        record=recorder.record,
        settings=IN_NO_TIME,
    )
    pods.listener = writer.changed
    spec = {"schedulingGates": [{"name": QUOTA_GATE}]}
    pods.world.put_queue(a_queue("a", onvif=(0, 0)))
    for number in range(PODS):
        asked = {"queue": "a", "requests": {"akri.sh/onvif": 99}}
        pods.put(a_pod_object(f"p{number:03}", spec=spec, **asked))

    async with running(writer.run()), running(recorder.run()), asyncio.timeout(60):
        while len(server.asked) < PODS:  # noqa: ASYNC110  All happens in these rounds.
            await asyncio.sleep(0)
        for limit in range(50):
            pods.world.put_queue(a_queue("a", onvif=(0, limit)))
            writer.changed(QueueChanged(QueueName("a")))
            now[0] += timedelta(seconds=61)
            await settled()

    assert Counter(server.asked) == {"POST events": PODS}
    assert len({event["regarding"]["name"] for event in server.objects.values()}) == PODS
    assert Counter(asked.split()[0] for asked in pods.asked) == {"status": PODS}

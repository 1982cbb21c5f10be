"""A pod that waits at its gate has one Event for each reason, which says what it waits for."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from kube.api import ApiClient, Event, EventRecorder
from kube.calls.apiserver_transport import Transport
from scheduler_plugin.accounting.world_changes import QueueChanged
from scheduler_plugin.cluster import apiserver_gate_events, apiserver_gates, apiserver_waiting_pods
from scheduler_plugin.cluster.apiserver_gate_events import (
    MOST_IN_A_LOOK,
    SETTLED_SECONDS,
    GateEvents,
)
from scheduler_plugin.cluster.apiserver_gate_writes import GateWrites
from scheduler_plugin.cluster.apiserver_gates import GateWriter
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import QUOTA_GATE, QueueName, Reason
from scheduler_plugin.waiting.decisions import GateCondition, Wait
from scheduler_plugin.waiting.lines.refused_pods import RefusedPods
from tests.binder.fake_apiserver import Answer
from tests.scheduler_plugin.builders import NOW, a_pod_object, a_queue, a_world, moment
from tests.scheduler_plugin.fake_pods import FakePods, Fence, running

PODS = 300


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
    fence: Fence = field(default_factory=Fence)
    recorded: list[Event] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.events = GateEvents(
            self.pods.world, self.fence, self.recorded.append, lambda: self.now
        )

    def written(self, name: str, reason: str, message: str = "Because.") -> None:
        """The condition is stored, and the world heard of it."""
        stored = [{"type": "moorage.dev/Admitted", "status": "False", "reason": reason}]
        spec = {"schedulingGates": [{"name": QUOTA_GATE}]}
        self.pods.put(a_pod_object(name, spec=spec, status={"conditions": stored}))
        self.events.written(waits(name, reason, message))

    def after(self, seconds: float) -> list[str]:
        """Names of the pods that get an Event in the look after so many seconds, and why."""
        self.recorded.clear()
        self.now += seconds
        self.events.look()
        return [f"{event.regarding.name} {event.reason}" for event in self.recorded]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_pod_that_waits_is_told_by_a_warning_what_it_waits_for(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT, 'Queue "a" uses 2 onvif.')

    assert told.after(SETTLED_SECONDS) == ["p0 OverLimit"]

    (event,) = told.recorded
    assert (str(event.type), event.action) == ("Warning", "Admit")
    assert event.note == 'The pod waits at its scheduling gate. Queue "a" uses 2 onvif.'
    assert event.regarding.json["kind"] == "Pod"
    assert event.regarding.uid == uid("p0")
    assert told.after(3600) == []


def test_a_reason_that_does_not_last_is_not_told(told: Told) -> None:
    """A claim of a template is made moments after the pod."""
    told.written("p0", Wait.CLAIM_NOT_FOUND)
    assert told.after(SETTLED_SECONDS / 2) == []

    told.written("p0", Reason.OVER_LIMIT)

    assert told.after(SETTLED_SECONDS / 2) == ["p0 OverLimit"]
    assert told.after(3600) == []


def test_another_reason_is_told_anew(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT)
    assert told.after(SETTLED_SECONDS) == ["p0 OverLimit"]

    told.written("p0", Wait.ROOM_IS_LEFT)

    assert told.after(SETTLED_SECONDS) == ["p0 RoomIsLeft"]


def test_a_pod_that_goes_before_it_is_told_gets_no_event(told: Told) -> None:
    told.written("freed", Reason.OVER_LIMIT)
    told.written("deleted", Reason.OVER_LIMIT)
    told.pods.ungate("freed")
    told.pods.delete("deleted")

    assert told.after(SETTLED_SECONDS) == []
    assert len(told.events) == 0


def test_that_a_refused_pod_fits_is_no_wait(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT)
    told.after(SETTLED_SECONDS)

    told.events.written(replace(waits("p0", "Fits"), fits=True))

    assert told.after(SETTLED_SECONDS) == []


def test_many_pods_are_told_some_in_each_second_the_first_that_waited_first(told: Told) -> None:
    names = [f"p{number:02}" for number in range(2 * MOST_IN_A_LOOK + 1)]
    for name in names:
        told.written(name, Reason.OVER_LIMIT)

    looks = [told.after(SETTLED_SECONDS), told.after(1), told.after(1)]

    assert [len(look) for look in looks] == [MOST_IN_A_LOOK, MOST_IN_A_LOOK, 1]
    assert [line.split()[0] for look in looks for line in look] == names


def test_who_has_no_lease_tells_nothing_until_it_is_back(told: Told) -> None:
    told.written("p0", Reason.OVER_LIMIT)
    told.fence.closed = "Another holds it."
    assert told.after(SETTLED_SECONDS) == []

    told.fence.closed = ""

    assert told.after(1) == ["p0 OverLimit"]


# What the API server has to do for it.


class FakeEvents:
    """An API server that counts what is written of Events."""

    def __init__(self) -> None:
        self.writes: Counter[str] = Counter()
        self.pods: Counter[str] = Counter()
        self.client = ApiClient(cast(Transport, self))

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any, limits: Any
    ) -> Answer:
        await asyncio.sleep(0)
        self.writes[method] += 1
        self.pods[body["regarding"]["name"]] += 1
        return Answer(201, json.dumps(body).encode())


async def settled() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


async def test_events_cost_one_write_for_each_waiting_pod_whatever_its_figures_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 pods wait; then 50 times a limit changes that still lets none go."""
    for module, name in (
        (apiserver_gates, "TICK_SECONDS"),
        (apiserver_gates, "FENCED_SECONDS"),
        (apiserver_waiting_pods, "PACE_SECONDS"),
        (apiserver_gate_events, "LOOK_SECONDS"),
        (apiserver_gate_events, "SETTLED_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0)
    pods, server, now = FakePods(a_world()), FakeEvents(), [NOW]
    recorder = EventRecorder(server.client, "moorage.dev/scheduler-plugin", "plugin-0")
    writer = GateWriter(
        GateWrites(pods.client, cast(ClusterWorld, pods), Fence()),
        RefusedPods(),
        lambda: now[0],
        lambda: moment(now[0]),
        record=recorder.record,
    )
    pods.listener = writer.changed
    spec = {"schedulingGates": [{"name": QUOTA_GATE}]}
    pods.world.put_queue(a_queue("a", onvif=(0, 0)))
    for number in range(PODS):
        asked = {"queue": "a", "requests": {"akri.sh/onvif": 99}}
        pods.put(a_pod_object(f"p{number:03}", spec=spec, **asked))

    async with running(writer.run()), running(recorder.run()), asyncio.timeout(60):
        while server.writes.total() < PODS:  # noqa: ASYNC110  All happens in these rounds.
            await asyncio.sleep(0)
        for limit in range(50):
            pods.world.put_queue(a_queue("a", onvif=(0, limit)))
            writer.changed(QueueChanged(QueueName("a")))
            now[0] += timedelta(seconds=61)
            await settled()

    assert server.writes == {"POST": PODS}
    assert set(server.pods.values()) == {1}
    assert Counter(asked.split()[0] for asked in pods.asked) == {"status": PODS}

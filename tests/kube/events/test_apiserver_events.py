"""Events are written in the background, and hold nothing up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from kube.calls.api import ApiClient
from kube.events import apiserver_events
from kube.events.api import Event, EventRecorder, EventType, ObjectReference
from tests.fakes.scripted_apiserver import FakeScript, hangs, refuses, says


def an_event(name: str = "pod-1") -> Event:
    return Event(
        regarding=ObjectReference(api_version="v1", kind="Pod", name=name, namespace="ns"),
        type=EventType.NORMAL,
        reason="Tested",
        action="Test",
        note="hello",
    )


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(apiserver_events, "wall_clock", made)
    return made


def a_recorder(client: ApiClient) -> EventRecorder:
    return EventRecorder(client, "moorage.dev/test", "me")


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_events_are_written_once_and_their_repetitions_counted(
    client: ApiClient, fake: FakeScript, clock: Clock
) -> None:
    recorder = a_recorder(client)
    fake.will(says({}), says({}), says({}))

    async with running(recorder):
        for name in ("pod-1", "pod-2", "pod-1", "pod-1"):
            recorder.record(an_event(name))
        await fake.has_seen(2)
        clock.now += timedelta(seconds=10)
        await fake.has_seen(3)

    assert [seen.method for seen in fake.seen] == ["POST", "POST", "PATCH"]
    assert fake.seen[2].body["series"]["count"] == 3


async def test_full_queue_drops_and_counts(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_events, "MOST_WAITING", 2)
    recorder = a_recorder(client)

    for number in range(5):
        recorder.record(an_event(f"pod-{number}"))

    assert recorder.dropped == 3


async def test_event_survives_a_server_that_is_away_for_a_moment(
    client: ApiClient, fake: FakeScript
) -> None:
    recorder = a_recorder(client)
    fake.will(refuses(503), refuses(500), refuses(409, "AlreadyExists"))

    async with running(recorder):
        recorder.record(an_event())
        await fake.has_seen(3)

    assert recorder.dropped == 0
    assert len({seen.body["metadata"]["name"] for seen in fake.seen}) == 1


async def test_repetitions_wait_until_their_event_is_created(
    client: ApiClient, fake: FakeScript, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_events, "SERIES_SECONDS", 0.01)
    recorder = a_recorder(client)
    fake.will(refuses(503), says({}), says({}))
    recorder.record(an_event())
    recorder.record(an_event())
    clock.now += timedelta(seconds=10)

    async with running(recorder):
        await fake.has_seen(3)

    assert [seen.method for seen in fake.seen] == ["POST", "POST", "PATCH"]
    assert recorder.dropped == 0


async def test_repetitions_of_many_series_keep_no_new_event_out(
    client: ApiClient, fake: FakeScript, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_events, "SERIES_SECONDS", 0.01)
    monkeypatch.setattr(apiserver_events, "SERIES_AT_ONCE", 2)
    monkeypatch.setattr(apiserver_events, "MOST_WAITING", 6)
    recorder = a_recorder(client)
    fake.will(*[says({})] * 5, hangs)

    async with running(recorder):
        for number in range(5):
            recorder.record(an_event(f"pod-{number}"))
        await fake.has_seen(5)
        for number in range(5):
            recorder.record(an_event(f"pod-{number}"))
        clock.now += timedelta(seconds=10)
        await fake.has_seen(6)
        for number in range(5, 9):
            recorder.record(an_event(f"pod-{number}"))

    assert recorder.dropped == 0


async def test_an_event_that_cannot_be_sent_delays_no_other(
    client: ApiClient, fake: FakeScript
) -> None:
    recorder = a_recorder(client)
    fake.will(says({}))
    odd = replace(an_event("odd"), note="odd", related=cast(Any, Unwritable()))

    async with running(recorder):
        recorder.record(odd)
        recorder.record(an_event())
        await fake.has_seen(1)

    assert fake.seen[0].body["regarding"]["name"] == "pod-1"
    assert recorder.dropped == 1


class Unwritable:
    """An object that no JSON can say."""

    json = object()


async def test_event_that_is_refused_is_dropped_and_the_next_is_not(
    client: ApiClient, fake: FakeScript
) -> None:
    recorder = a_recorder(client)
    fake.will(refuses(403), refuses(404, "NotFound"), says({}))

    async with running(recorder):
        for name in ("pod-1", "pod-2", "pod-3"):
            recorder.record(an_event(name))
        await fake.has_seen(3)

    assert recorder.dropped == 2


async def test_series_of_an_event_that_is_gone_begins_anew(
    client: ApiClient, fake: FakeScript, clock: Clock
) -> None:
    recorder = a_recorder(client)
    fake.will(says({}), refuses(404, "NotFound"), says({}))

    async with running(recorder):
        recorder.record(an_event())
        recorder.record(an_event())
        await fake.has_seen(1)
        clock.now += timedelta(seconds=10)
        await fake.has_seen(2)
        await asyncio.sleep(0.1)
        recorder.record(an_event())
        await fake.has_seen(3)

    assert [seen.method for seen in fake.seen] == ["POST", "PATCH", "POST"]
    assert recorder.dropped == 0

"""Events, and what is written of their repetitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kube.events import event_series
from kube.events.event_series import (
    CreateEvent,
    Event,
    EventSeries,
    EventType,
    ObjectReference,
    PatchSeries,
)
from kube.kinds import EVENTS

START = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def an_event(note: str = "hello", name: str = "pod-1") -> Event:
    return Event(
        regarding=ObjectReference(api_version="v1", kind="Pod", name=name, namespace="ns"),
        type=EventType.NORMAL,
        reason="Tested",
        action="Test",
        note=note,
    )


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_first_event_is_written_in_full() -> None:
    create = EventSeries("moorage.dev/test", "me").record(an_event(), now=START, unique="u1")

    assert create == CreateEvent(
        EVENTS.at("pod-1.u1", "ns"),
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "pod-1.u1", "namespace": "ns"},
            "eventTime": "2026-01-02T03:04:05.000678Z",
            "reportingController": "moorage.dev/test",
            "reportingInstance": "me",
            "type": "Normal",
            "reason": "Tested",
            "action": "Test",
            "note": "hello",
            "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "namespace": "ns"},
        },
    )


def test_repetitions_become_one_patch_with_their_count() -> None:
    series = EventSeries("moorage.dev/test", "me")
    series.record(an_event(), now=START, unique="u1")

    assert series.record(an_event(), now=after(1), unique="u2") is None
    assert series.record(an_event(), now=after(2), unique="u3") is None
    assert list(series.due(now=after(9))) == []
    assert list(series.due(now=after(10))) == [
        PatchSeries(
            EVENTS.at("pod-1.u1", "ns"),
            {"series": {"count": 3, "lastObservedTime": "2026-01-02T03:04:07.000678Z"}},
        )
    ]
    assert list(series.due(now=after(30))) == []


def test_changed_sentence_is_a_new_event_once_a_minute() -> None:
    series = EventSeries("moorage.dev/test", "me")
    series.record(an_event("1 missing"), now=START, unique="u1")

    assert series.record(an_event("2 missing"), now=after(59), unique="u2") is None
    assert series.record(an_event("2 missing"), now=after(60), unique="u3") is not None


def test_same_sentence_after_a_long_silence_is_a_new_event() -> None:
    series = EventSeries("moorage.dev/test", "me")
    series.record(an_event(), now=START, unique="u1")

    assert series.record(an_event(), now=after(359), unique="u2") is None
    assert series.record(an_event(), now=after(359 + 360), unique="u3") is not None


def test_event_that_is_gone_is_written_anew() -> None:
    series = EventSeries("moorage.dev/test", "me")
    series.record(an_event(), now=START, unique="u1")

    series.forget(EVENTS.at("pod-1.u1", "ns"))

    assert series.record(an_event(), now=after(1), unique="u2") is not None


def test_memory_of_series_is_bounded_and_forgets_the_silent_ones() -> None:
    series = EventSeries("moorage.dev/test", "me")
    most = event_series.MOST_SERIES
    for number in range(most):
        series.record(an_event(name=f"pod-{number}"), now=START, unique="u")
    series.record(an_event(name="pod-0"), now=after(1), unique="u")

    series.record(an_event(name="one-more"), now=after(2), unique="u")

    assert series.record(an_event(name="pod-0"), now=after(3), unique="u") is None
    assert series.record(an_event(name="pod-1"), now=after(3), unique="u") is not None


def test_event_of_a_cluster_scoped_object_lives_in_default() -> None:
    reference = ObjectReference(api_version="v1", kind="Node", name="n")
    event = Event(regarding=reference, type=EventType.WARNING, reason="R", action="A", note="n")

    create = EventSeries("moorage.dev/test", "me").record(event, now=START, unique="u")

    assert create
    assert create.body["metadata"]["namespace"] == "default"


def test_long_names_and_notes_are_cut_to_what_the_api_takes() -> None:
    event = an_event(note="é" * 1000, name="n" * 253)

    create = EventSeries("moorage.dev/test", "me").record(event, now=START, unique="u1")

    assert create
    assert len(create.body["metadata"]["name"]) == 253
    assert create.body["metadata"]["name"].endswith(".u1")
    assert len(create.body["note"].encode()) <= 1024
    assert create.body["note"].endswith("...")

"""Events of all replicas: each once, the newest first, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler_plugin.dashboard.recent_events import About, Recent, RecentEvent, recent_event


def an_event(number: int, note: str = "") -> RecentEvent:
    about = About("Pod", "ns", f"p{number}")
    at = f"2026-11-21T12:00:{number:02}Z"
    return RecentEvent(at, "Warning", "Reclaimed", "Evicted", about, note or f"note {number}")


def notes(recent: Recent) -> list[str]:
    return [json.loads(line.body)["note"] for line in recent.lines()]


def test_the_newest_event_is_the_first_and_old_ones_are_forgotten() -> None:
    recent = Recent(2)
    for number in range(9):
        recent.add(an_event(number))

    assert notes(recent) == ["note 8", "note 7"]
    assert recent.count == 9


def test_events_come_in_the_order_of_their_times_whoever_told_them() -> None:
    recent = Recent()
    recent.add(an_event(5))
    for number in (7, 3):
        recent.add(an_event(number), uid=f"uid-{number}")

    assert notes(recent) == ["note 7", "note 5", "note 3"]


def test_of_those_that_came_last_an_old_one_is_forgotten_first() -> None:
    """A list comes in the order of names."""
    recent = Recent(2)
    for number in (9, 8, 1, 2, 3):
        recent.add(an_event(number), uid=f"uid-{number}")

    assert notes(recent) == ["note 9", "note 8"]


def test_an_event_that_goes_on_is_one_row_and_listed_again_no_news() -> None:
    recent = Recent()
    recent.add(an_event(1, "again"), uid="u")
    recent.add(an_event(4, "again"), uid="u")
    before = recent.count
    recent.add(an_event(4, "again"), uid="u")

    assert notes(recent) == ["again"]
    assert recent.count == before


def test_own_events_that_are_alike_are_each_a_row() -> None:
    recent = Recent()
    for _ in range(2):
        recent.add(an_event(1))

    assert notes(recent) == ["note 1", "note 1"]


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({}, "2026-11-21T12:00:00Z"),
        ({"series": {"lastObservedTime": "2026-11-21T12:05:00.000001Z"}}, "2026-11-21T12:05:00Z"),
        ({"eventTime": None}, ""),
    ],
)
def test_a_stored_event_happened_when_it_did_last(more: dict[str, Any], at: str) -> None:
    found = recent_event(
        {"eventTime": "2026-11-21T12:00:00.123456Z", "reason": "Reclaimed", **more}
    )

    assert (found.at, found.reason, found.about) == (at, "Reclaimed", About("", "", ""))

"""Durations, and times in RFC 3339."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.shapes.times import (
    micro_time,
    milli_time,
    parse_duration,
    read_time,
    time_of,
    timestamp,
)

NOW = datetime(2026, 11, 21, 20, 48, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("5m", 300), ("1h30m", 5400), ("250ms", 0.25), ("1.5s", 1.5), ("2h", 7200)],
)
def test_notation_of_go_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "m", "-5m", "5 m", "5d", "1e3s", "9" * 30 + "h", "9999h" * 9]
)
def test_anything_else_is_none(text: str) -> None:
    assert parse_duration(text) is None


@given(st.text(max_size=30))
def test_no_text_raises(text: str) -> None:
    parsed = parse_duration(text)

    assert parsed is None or parsed >= timedelta()


@pytest.mark.parametrize(
    "text", ["2026-11-21T20:48:00Z", "2026-11-21T20:48:00.000000Z", "2026-11-21T21:48:00+01:00"]
)
def test_rfc_3339_is_read(text: str) -> None:
    assert read_time(text) == time_of(text) == NOW


@pytest.mark.parametrize(
    "text", [None, 5, "", "2026", "yesterday", "2026-11-21", "2026-11-21T20:48:00"]
)
def test_what_is_no_time_with_a_zone_is_none(text: object) -> None:
    assert read_time(text) is None


@pytest.mark.parametrize("text", ["", "2026-11-21T20:48:00"])
def test_a_time_that_an_object_bears_has_a_zone(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|zone"):
        time_of(text)


def test_times_are_written_in_utc() -> None:
    moment = NOW.astimezone(timezone(timedelta(hours=3))) + timedelta(microseconds=1_234)

    assert timestamp(moment) == "2026-11-21T20:48:00Z"
    assert milli_time(moment) == "2026-11-21T20:48:00.001Z"
    assert micro_time(moment) == "2026-11-21T20:48:00.001234Z"

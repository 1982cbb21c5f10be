"""Ages, as kubectl prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_plugin.asking.ages import age, ago, duration

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (timedelta(seconds=-3), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(microseconds=999_999), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=5, seconds=30), "5m30s"),
        (timedelta(minutes=10, seconds=30), "10m"),
        (timedelta(hours=2, minutes=59), "179m"),
        (timedelta(hours=3, minutes=12), "3h12m"),
        (timedelta(hours=8, minutes=12), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=2, hours=5), "2d5h"),
        (timedelta(days=8, hours=5), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=731), "2y1d"),
        (timedelta(days=4000), "10y"),
    ],
)
def test_an_age_is_as_kubectl_rounds_it(passed: timedelta, said: str) -> None:
    assert duration(passed) == said


@pytest.mark.parametrize(
    ("since", "said"),
    [("2026-11-21T20:48:00.123456Z", "3h11m"), ("2026-11-21T21:48:00+01:00", "3h12m")],
)
def test_a_time_of_the_api_is_told_as_an_age(since: str, said: str) -> None:
    assert (age(since, NOW), ago(since, NOW)) == (said, f"{said} ago")


def test_what_is_no_time_stays_as_it_is() -> None:
    assert (age("", NOW), ago("a while", NOW)) == ("<unknown>", "a while")
    since = "2026-11-21T20:48:00"
    assert age(since, NOW) == since, "a time without a zone is none of the API"

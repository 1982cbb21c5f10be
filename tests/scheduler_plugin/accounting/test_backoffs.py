"""Kinds of pods that were evicted borrow again later and later, and within a bounded time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.accounting.backoffs import FIRST, LONGEST, Backoffs
from tests.scheduler_plugin.builders import NOW

SECOND = timedelta(seconds=1)


def test_pods_of_a_kind_that_was_evicted_wait_for_a_minute_and_then_for_two() -> None:
    backoffs, now = Backoffs(), NOW
    for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
        backoffs.evicted("kind", now)
        assert backoffs.until("kind") == now + timedelta(minutes=minutes)
        now += timedelta(minutes=minutes) - SECOND
        backoffs.expire(now)
        assert "kind" in backoffs
        now += SECOND
        backoffs.expire(now)
        assert "kind" not in backoffs


def test_those_that_are_evicted_together_count_once() -> None:
    backoffs = Backoffs()
    for number in range(100):
        backoffs.evicted("kind", NOW + number * timedelta(milliseconds=100))

    assert backoffs.until("kind") == NOW + FIRST


def test_a_kind_that_is_left_alone_for_as_long_again_begins_anew() -> None:
    backoffs = Backoffs()
    backoffs.evicted("kind", NOW)

    backoffs.evicted("kind", NOW + 2 * FIRST)

    assert backoffs.until("kind") == NOW + 3 * FIRST


def test_other_kinds_do_not_wait() -> None:
    backoffs = Backoffs()
    backoffs.evicted("kind", NOW)

    assert "other" not in backoffs
    assert len(backoffs) == 1


@pytest.mark.parametrize("back", [timedelta(seconds=1), timedelta(days=1)])
def test_a_clock_that_is_set_back_lets_nobody_wait_for_longer(back: timedelta) -> None:
    backoffs = Backoffs()
    backoffs.evicted("kind", NOW)

    backoffs.expire(NOW - back)

    assert "kind" not in backoffs


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 10_000)), max_size=30))
def test_nobody_waits_for_longer_than_an_hour(steps: list[tuple[str, int]]) -> None:
    backoffs, now = Backoffs(), NOW
    for kind, seconds in steps:
        now += timedelta(seconds=seconds)
        backoffs.evicted(kind, now)
        assert kind in backoffs
        assert now < backoffs.until(kind) <= now + LONGEST

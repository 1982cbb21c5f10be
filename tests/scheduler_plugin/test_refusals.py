"""When refused pods are judged again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_plugin import refusals
from scheduler_plugin.names import PodUid
from scheduler_plugin.refusals import FIRST_REST, GROWTH, LONGEST_REST, Refusals
from tests.scheduler_plugin.builders import NOW

ONE, TWO = PodUid("one"), PodUid("two")
LONG = timedelta(hours=1)


def test_a_pod_is_looked_at_soon_and_then_less_and_less_often() -> None:
    refused = Refusals()
    refused.add(ONE, NOW)
    now, rest, rests = NOW, FIRST_REST, []
    while rest < LONGEST_REST:
        assert refused.due(now + rest - timedelta.resolution) == ()
        now += rest
        assert refused.due(now) == (ONE,)
        rests.append(rest)
        rest *= GROWTH

    assert len(rests) == 6
    for _ in range(3):
        assert refused.due(now + LONGEST_REST - timedelta.resolution) == ()
        now += LONGEST_REST
        assert refused.due(now) == (ONE,)


def test_one_that_is_late_is_looked_at_once() -> None:
    refused = Refusals()
    refused.add(ONE, NOW)
    refused.add(TWO, NOW)

    assert refused.due(NOW + LONG) == (ONE, TWO)
    assert refused.due(NOW + LONG) == ()


def test_one_that_is_refused_again_is_looked_at_soon_again() -> None:
    refused = Refusals()
    refused.add(ONE, NOW)
    for _ in range(5):
        assert refused.due(NOW + LONG) in ((ONE,), ())
    refused.add(ONE, NOW + LONG)

    assert refused.due(NOW + LONG + FIRST_REST) == (ONE,)


def test_a_clock_that_is_set_back_puts_no_look_off() -> None:
    refused = Refusals()
    refused.add(ONE, NOW)
    assert refused.due(NOW) == ()
    earlier = NOW - LONG

    assert refused.due(earlier) == ()
    assert refused.due(earlier + FIRST_REST) == (ONE,)


def test_what_is_forgotten_is_looked_at_no_more() -> None:
    refused = Refusals()
    refused.add(ONE, NOW)
    refused.forget(ONE)
    refused.forget(TWO)

    assert refused.due(NOW + LONG) == ()
    assert len(refused) == 0


def test_of_too_many_those_refused_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "MOST", 10)
    refused = Refusals()
    for number in range(1_000):
        refused.add(PodUid(f"{number}"), NOW)

    assert refused.due(NOW + LONG) == tuple(PodUid(f"{number}") for number in range(990, 1_000))


def test_a_pod_that_is_refused_all_the_time_takes_no_memory() -> None:
    refused = Refusals()
    now = NOW
    for _ in range(1_000):
        refused.add(ONE, now)
        now += FIRST_REST / 2
        refused.due(now)

    assert len(refused) == 1
    assert len(refused._looks) <= 3

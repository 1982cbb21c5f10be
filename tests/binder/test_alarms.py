"""Alarms: one moment for each thing, and the latest word counts."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from binder.alarms import Alarms
from tests.scheduler_plugin.builders import NOW

things = st.integers(0, 5)
seconds = st.integers(0, 20)


def test_they_ring_in_their_order_and_once() -> None:
    alarms = Alarms[str]()
    alarms.set("late", NOW + timedelta(seconds=2))
    alarms.set("early", NOW + timedelta(seconds=1))

    assert alarms.next_moment() == NOW + timedelta(seconds=1)
    assert alarms.take(NOW) == []
    assert alarms.take(NOW + timedelta(seconds=2)) == ["early", "late"]
    assert alarms.take(NOW + timedelta(days=1)) == []
    assert alarms.next_moment() is None


@given(st.lists(st.tuples(things, st.none() | seconds), max_size=60), seconds)
def test_the_latest_word_about_each_thing_counts(
    words: list[tuple[int, int | None]], until: int
) -> None:
    alarms = Alarms[int]()
    expected: dict[int, int] = {}
    for thing, second in words:
        if second is None:
            alarms.drop(thing)
            expected.pop(thing, None)
        else:
            alarms.set(thing, NOW + timedelta(seconds=second))
            expected[thing] = second

    assert len(alarms) == len(expected)
    assert len(alarms._heap) <= 2 * len(words) + 16
    rung = alarms.take(NOW + timedelta(seconds=until))
    assert sorted(rung) == sorted(thing for thing, at in expected.items() if at <= until)
    assert [expected[thing] for thing in rung] == sorted(expected[thing] for thing in rung)

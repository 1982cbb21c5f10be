"""When each key is due: one moment for each, and the latest one counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube.due import Due
from tests.left_overs import kept_in

things = st.integers(0, 5)
moments = st.integers(0, 20).map(float)


def test_things_are_due_in_the_order_of_their_moments_and_once() -> None:
    due = Due[str]()
    due.set("late", 12.0)
    due.set("early", 11.0)

    assert due.next_moment() == 11.0
    assert due.take(10.0) == []
    assert due.take(12.0) == ["early", "late"]
    assert due.take(99.0) == []
    assert due.next_moment() is None


def test_of_those_that_are_due_together_the_first_that_was_set_comes_first() -> None:
    due = Due[str]()
    for thing in ("b", "a", "b"):
        due.set(thing, 10.0)

    assert due.pop(10.0) == "b"
    assert due.pop(10.0) == "a"
    assert due.pop(10.0) is None


@given(st.lists(st.tuples(things, st.none() | moments), max_size=60), moments)
def test_the_latest_word_about_each_thing_counts(
    words: list[tuple[int, float | None]], until: float
) -> None:
    due = Due[int]()
    expected: dict[int, float] = {}
    for thing, moment in words:
        if moment is None:
            assert due.drop(thing) == (expected.pop(thing, None) is not None)
        else:
            due.set(thing, moment)
            expected[thing] = moment

    assert (len(due), set(due)) == (len(expected), set(expected))
    assert all(due.at(thing) == moment for thing, moment in expected.items())
    assert max(kept_in(due).values(), default=0) <= 2 * len(words) + 16
    taken = due.take(until)
    assert sorted(taken) == sorted(thing for thing, at in expected.items() if at <= until)
    assert [expected[thing] for thing in taken] == sorted(expected[thing] for thing in taken)

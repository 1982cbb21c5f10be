"""When is it due: one moment for each thing, the latest word counts, and what failed rests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.due import Due, Rests
from tests.left_overs import kept_in

things = st.integers(0, 5)
moments = st.integers(0, 20).map(float)


def doubled(failures: int) -> float:
    return 2.0**failures


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


def test_each_failure_in_a_row_makes_the_rest_longer() -> None:
    rests = Rests[str](60.0)

    assert [rests.again("a", 10.0, doubled) for _ in range(3)] == [12.0, 14.0, 18.0]
    assert rests.until("a", 17.0) == 18.0
    assert rests.until("a", 18.0) is None
    assert rests.times("a") == 3
    assert rests.until("b", 10.0) is None


def test_success_makes_up_for_all_failures_and_ends_no_rest() -> None:
    rests = Rests[str](60.0)
    rests.again("a", 10.0, doubled)
    rests.rest("a", 10.0, 3.0)

    rests.succeeded("a")

    assert rests.until("a", 12.0) == 13.0
    assert rests.again("a", 10.0, doubled) == 12.0


def test_what_is_forgotten_may_be_tried_at_once() -> None:
    rests = Rests[str](60.0)
    rests.again("a", 10.0, doubled)

    rests.forget("a")

    assert (rests.until("a", 10.0), rests.times("a"), len(rests)) == (None, 0, 0)


def test_what_is_long_ago_is_forgotten() -> None:
    rests = Rests[str](60.0)
    for number in range(50):
        rests.again(f"gone-{number}", 10.0, doubled)

    rests.again("a", 72.0, doubled)

    assert len(rests) == 1


def test_row_ends_where_it_is_quiet_for_as_long_as_the_rest_was() -> None:
    rests = Rests[str]()
    rests.again("a", 10.0, doubled)

    assert rests.again("a", 13.9, doubled) == 17.9
    assert rests.again("a", 21.9, doubled) == 23.9

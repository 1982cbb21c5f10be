"""Nodes where room was held in vain are left out for ten minutes, for pods that are alike."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.reclaiming.missed_nodes import LEFT_OUT, MOST_KINDS, MissedNodes
from tests.scheduler_plugin.builders import NOW

LATER = NOW + timedelta(minutes=4)


def test_a_node_is_left_out_for_ten_minutes_and_for_no_other_kind() -> None:
    missed = MissedNodes()

    assert missed.miss("kind", ["a"], NOW) == {"a": NOW + LEFT_OUT}

    assert list(missed.of("kind", NOW)) == ["a"]
    assert not missed.of("other", NOW)
    assert not missed.of("kind", NOW + LEFT_OUT)


def test_each_node_is_left_out_until_its_own_time() -> None:
    missed = MissedNodes()
    missed.miss("kind", ["a"], NOW)

    assert missed.miss("kind", ["b"], LATER) == {"a": NOW + LEFT_OUT, "b": LATER + LEFT_OUT}
    assert list(missed.of("kind", NOW + LEFT_OUT)) == ["b"]


def test_what_somebody_said_before_ends_no_earlier_by_being_said_again() -> None:
    missed = MissedNodes()
    missed.miss("kind", ["a"], LATER)

    missed.note("kind", "a", NOW + LEFT_OUT)

    assert list(missed.of("kind", NOW + LEFT_OUT)) == ["a"]


def test_a_clock_that_was_set_back_leaves_none_out_for_longer() -> None:
    missed = MissedNodes()
    missed.miss("kind", ["a"], NOW)

    assert not missed.of("kind", NOW - timedelta(minutes=1))


def test_what_is_over_is_forgotten() -> None:
    missed = MissedNodes()
    missed.miss("kind", ["a"], NOW)
    missed.miss("other", ["a"], LATER)

    missed.forget_old(NOW + LEFT_OUT)

    assert len(missed) == 1


def test_a_node_is_proven_by_one_that_was_bound_there_until_one_misses_it() -> None:
    missed = MissedNodes()
    missed.miss("kind", ["a"], NOW)

    missed.bound("kind", "a")

    assert not missed.of("kind", NOW)
    assert missed.is_proven("kind", "a")
    assert not missed.is_proven("other", "a")
    missed.miss("kind", ["a"], LATER)
    assert not missed.is_proven("kind", "a")


def test_of_no_more_than_some_kinds_it_is_remembered_where_they_were_bound() -> None:
    missed = MissedNodes()

    for number in range(MOST_KINDS + 1):
        missed.bound(number, "a")

    assert [missed.is_proven(number, "a") for number in (0, 1, MOST_KINDS)] == [False, True, True]

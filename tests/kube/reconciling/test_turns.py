"""Turns of groups: no key is lost or comes twice, and none waits for a whole other group."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube.reconciling.turns import Turns, one_group

KEYS = [f"{group}{number}" for group in "abc" for number in range(4)]


def all_of(turns: Turns[str]) -> list[str]:
    found = []
    while (key := turns.take()) is not None:
        found.append(key)
    return found


def test_groups_have_turns() -> None:
    turns: Turns[str] = Turns(lambda key: key[0])
    for key in ("a0", "a1", "a2", "b0", "a0", "b1"):
        turns.add(key)

    assert len(turns) == 5
    assert all_of(turns) == ["a0", "b0", "a1", "b1", "a2"]
    assert len(turns) == 0


def test_a_group_that_comes_late_has_the_next_turn_but_one() -> None:
    turns: Turns[str] = Turns(lambda key: key[0])
    for number in range(1_000):
        turns.add(f"a{number}")
    turns.take()
    turns.add("b0")

    assert [turns.take(), turns.take()] == ["a1", "b0"]


def test_keys_of_one_group_come_in_the_order_of_their_addition() -> None:
    turns: Turns[str] = Turns(one_group)
    for key in ("b0", "a0", "b1", "a0"):
        turns.add(key)

    assert all_of(turns) == ["b0", "a0", "b1"]


@given(st.lists(st.one_of(st.none(), st.sampled_from(KEYS))))
def test_every_key_comes_once_for_each_time_it_was_added_anew(steps: list[str | None]) -> None:
    turns, there = Turns[str](lambda key: key[0]), set[str]()
    for key in steps:
        if key is None:
            taken = turns.take()
            assert (taken is None) is (not there)
            there -= {taken}
        else:
            turns.add(key)
            there.add(key)
        assert len(turns) == len(there)

    assert sorted(all_of(turns)) == sorted(there)

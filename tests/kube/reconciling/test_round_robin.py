"""Groups alternate: no key is lost or comes twice, and none waits for a whole other group."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube.reconciling.round_robin import RoundRobin, one_group

KEYS = [f"{group}{number}" for group in "abc" for number in range(4)]


def all_of(keys: RoundRobin[str]) -> list[str]:
    found = []
    while (key := keys.take()) is not None:
        found.append(key)
    return found


def test_groups_alternate() -> None:
    keys: RoundRobin[str] = RoundRobin(lambda key: key[0])
    for key in ("a0", "a1", "a2", "b0", "a0", "b1"):
        keys.add(key)

    assert len(keys) == 5
    assert all_of(keys) == ["a0", "b0", "a1", "b1", "a2"]
    assert len(keys) == 0


def test_a_group_that_comes_late_is_the_next_but_one() -> None:
    keys: RoundRobin[str] = RoundRobin(lambda key: key[0])
    for number in range(1_000):
        keys.add(f"a{number}")
    keys.take()
    keys.add("b0")

    assert [keys.take(), keys.take()] == ["a1", "b0"]


def test_keys_of_one_group_come_in_the_order_of_their_addition() -> None:
    keys: RoundRobin[str] = RoundRobin(one_group)
    for key in ("b0", "a0", "b1", "a0"):
        keys.add(key)

    assert all_of(keys) == ["b0", "a0", "b1"]


@given(st.lists(st.one_of(st.none(), st.sampled_from(KEYS))))
def test_every_key_comes_once_for_each_time_it_was_added_anew(steps: list[str | None]) -> None:
    keys, there = RoundRobin[str](lambda key: key[0]), set[str]()
    for key in steps:
        if key is None:
            taken = keys.take()
            assert (taken is None) is (not there)
            there -= {taken}
        else:
            keys.add(key)
            there.add(key)
        assert len(keys) == len(there)

    assert sorted(all_of(keys)) == sorted(there)

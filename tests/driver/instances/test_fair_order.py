"""Many of one, few of another: in which order they go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from driver.instances.fair_order import batched, fair_order

ITEMS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers()), max_size=200)


def whose(item: tuple[str, int]) -> str:
    return item[0]


def test_one_of_a_small_one_goes_before_ten_thousand_of_another() -> None:
    items = [("many", number) for number in range(10_000)] + [("few", 0), ("few", 1)]

    order = fair_order(items, whose)

    assert order[:4] == (("few", 0), ("many", 0), ("few", 1), ("many", 1))


@given(ITEMS)
def test_all_go_once_and_those_of_one_in_their_order(items: list[tuple[str, int]]) -> None:
    order = fair_order(items, whose)

    assert sorted(order) == sorted(items)
    for owner in "abcde":
        assert [i for i in order if i[0] == owner] == [i for i in items if i[0] == owner]


@given(ITEMS, st.integers(0, 200))
def test_at_no_moment_has_anybody_got_two_turns_more_than_one_who_waits(
    items: list[tuple[str, int]], moment: int
) -> None:
    order = fair_order(items, whose)
    got = Counter(map(whose, order[:moment]))
    waiting = set(map(whose, order[moment:]))

    assert all(got[other] <= got[owner] + 1 for owner in waiting for other in got)


@given(ITEMS)
def test_in_each_round_the_smallest_goes_first(items: list[tuple[str, int]]) -> None:
    sizes = Counter(map(whose, items))
    turns = Counter[str]()
    keys = []
    for item in fair_order(items, whose):
        turns[item[0]] += 1
        keys.append((turns[item[0]], sizes[item[0]]))

    assert keys == sorted(keys)


@given(ITEMS, st.integers(1, 50))
def test_batches_put_together_are_the_whole(items: list[tuple[str, int]], size: int) -> None:
    batches = list(batched(items, size))

    assert [item for batch in batches for item in batch] == items
    assert all(len(batch) <= size for batch in batches)

"""Sets of so many candidates that may be enough: all of them, in order, and no others."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.reclaiming.victims.subsets import Effort, subsets

AMOUNTS = st.integers(0, 4)


@given(
    size=st.integers(1, 4),
    needs=st.tuples(AMOUNTS, AMOUNTS),
    gains=st.lists(st.tuples(AMOUNTS, AMOUNTS), max_size=8),
)
def test_all_that_may_be_enough_are_there_in_order_and_no_others(
    size: int, needs: tuple[int, int], gains: list[tuple[int, int]]
) -> None:
    enough = [
        each
        for each in combinations(range(len(gains)), size)
        if all(sum(gains[n][kind] for n in each) >= needs[kind] for kind in (0, 1))
    ]

    assert [each for each in subsets(size, needs, gains, Effort()) if each] == enough


def test_it_ends_once_no_effort_is_left() -> None:
    effort = Effort(1_000)

    found = list(subsets(8, (8,), [(1,)] * 32, effort))

    assert 0 < sum(map(bool, found)) <= 1_000 / 40 + 1
    assert effort.left <= 0

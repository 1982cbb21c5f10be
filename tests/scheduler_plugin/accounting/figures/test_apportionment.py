"""Amounts of whole devices divided by weight."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.accounting.figures.apportionment import Claimant, divided
from scheduler_plugin.objects.names import QueueName

NAMES = [QueueName(name) for name in "abcdefg"]


def test_large_numbers_and_small_ones_are_dealt_at_once() -> None:
    claimants = [
        Claimant((0, 0), weight, 2**62, QueueName(f"q{weight}")) for weight in (1, 2, 1_000_000)
    ]

    given = divided(2**61, claimants)

    assert sum(given.values()) == 2**61
    assert given[QueueName("q2")] == pytest.approx(2 * given[QueueName("q1")], abs=2)


def one_by_one(amount: int, claimants: list[Claimant]) -> dict[QueueName, int]:
    """The rule itself: the next one to whose turn it is, as long as there are any."""
    given = {c.name: 0 for c in claimants}
    for _ in range(amount):
        hungry = [c for c in claimants if given[c.name] < c.wants]
        if not hungry:
            break
        first = min(hungry, key=lambda c: (Fraction(2 * given[c.name] + 1, c.weight), c.name))
        given[first.name] += 1
    return given


@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 30)), min_size=1, max_size=7),
)
def test_what_is_dealt_at_once_is_what_one_by_one_comes_to(
    amount: int, found: list[tuple[int, int]]
) -> None:
    claimants = [
        Claimant((0, 0), weight, wants, name)
        for (weight, wants), name in zip(found, NAMES, strict=False)
    ]

    assert divided(amount, claimants) == one_by_one(amount, claimants)

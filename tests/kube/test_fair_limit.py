"""Even parts: who takes all of it keeps nobody else from his part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.fair_limit import FairLimit

MOST = 12
CLIENTS = "abc"


def held(parts: FairLimit[str], client: str, wanted: int) -> int:
    """How many a client gets who asks for so many, one by one."""
    return sum(parts.take(client) for _ in range(wanted))


def test_one_client_may_have_all() -> None:
    assert held(FairLimit(MOST), "a", 100) == MOST


def test_who_comes_late_gets_his_part_and_no_more() -> None:
    parts: FairLimit[str] = FairLimit(MOST)
    held(parts, "flood", 100)

    assert held(parts, "a", 100) == MOST // 2
    assert held(parts, "b", 100) == MOST // 3
    assert not parts.take("flood")


def test_what_is_given_back_is_there_for_all() -> None:
    parts: FairLimit[str] = FairLimit(MOST)
    held(parts, "a", MOST)
    parts.give_back("a", MOST)

    assert held(parts, "b", 100) == MOST


@pytest.mark.parametrize(("amount", "may"), [(MOST, True), (MOST + 1, False)])
def test_a_large_amount_counts_as_a_whole(amount: int, may: bool) -> None:
    assert FairLimit[str](MOST).take("a", amount) is may


@given(st.lists(st.tuples(st.sampled_from(CLIENTS), st.booleans())))
def test_nobody_is_refused_his_part_and_all_have_little_more_than_there_is(
    steps: list[tuple[str, bool]],
) -> None:
    parts: FairLimit[str] = FairLimit(MOST)
    has = dict.fromkeys(CLIENTS, 0)
    for client, gives in steps:
        if gives and has[client]:
            parts.give_back(client)
            has[client] -= 1
        elif not gives:
            took = parts.take(client)
            assert took or has[client] >= MOST // len(CLIENTS)
            has[client] += took
        assert sum(has.values()) <= MOST + MOST // 2 + MOST // 3

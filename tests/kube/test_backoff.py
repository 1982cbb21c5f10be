"""Delays between attempts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kube.backoff import Backoff

BACKOFF = Backoff(first_seconds=0.5, cap_seconds=30)


def test_delays_double_up_to_the_cap() -> None:
    delays = [BACKOFF.delay(failures, lambda: 1.0) for failures in range(9)]

    assert delays == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]


@given(failures=st.integers(0, 10**6), draw=st.floats(0, 1, exclude_max=True))
def test_delay_lies_between_zero_and_the_cap(failures: int, draw: float) -> None:
    assert 0 <= BACKOFF.delay(failures, lambda: draw) <= 30

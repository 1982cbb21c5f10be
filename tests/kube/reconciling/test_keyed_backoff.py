"""A key waits for longer after each failure in a row, and none is remembered without a limit."""

from __future__ import annotations

from kube.backoff import Backoff
from kube.reconciling.keyed_backoff import KeyedBackoff


def a_backoff() -> KeyedBackoff[str]:
    return KeyedBackoff(Backoff(first_seconds=4.0, cap_seconds=16.0), lambda: 1.0)


def test_a_key_waits_for_longer_after_each_failure_up_to_the_cap() -> None:
    backoff = a_backoff()

    waits = [backoff.failed("a", 0.0) for _ in range(4)]

    assert waits == [4.0, 8.0, 16.0, 16.0]
    assert (backoff.left("a", 6.0), backoff.left("a", 16.0), backoff.left("b", 6.0)) == (10, 0, 0)


def test_a_key_that_succeeded_or_is_forgotten_starts_a_new_row() -> None:
    backoff = a_backoff()
    for key in "ab":
        backoff.failed(key, 0.0)
        backoff.failed(key, 0.0)

    backoff.wait("a", 0.0, 10.0)
    backoff.forget("b")

    assert (backoff.left("a", 0.0), backoff.left("b", 0.0)) == (10.0, 0.0)
    assert (backoff.failed("a", 10.0), backoff.failed("b", 10.0)) == (4.0, 4.0)


def test_a_key_that_did_not_fail_for_long_is_forgotten() -> None:
    backoff = a_backoff()
    backoff.failed("a", 0.0)
    backoff.failed("b", 30.0)

    backoff.failed("b", 36.0)
    assert len(backoff) == 2
    assert backoff.failed("b", 37.0) == 16.0
    assert len(backoff) == 1, "a waited until 4 s, and twice 16 s are over"
    assert backoff.failed("a", 37.0) == 4.0

"""Limits how often one object is written while what it is told changes again and again.

    times of writes ──write_wait──► seconds until the next one

The first changes are written at once. A loose plug, or a message with a figure that changes each
second, must not cost a write each time: every client that watches the object gets it.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST_WRITES = 5
"""Writes of one object in a window."""


def write_wait(times: Sequence[float], now: float, window: float) -> float:
    """The seconds until an object may be written; 0 for at once.

    Args:
        times: When it was written, see `with_write`.
        now: The time, in seconds of the same clock.
        window: The length of the window in seconds.
    """
    if len(times) < MOST_WRITES:
        return 0.0
    return max(0.0, times[-MOST_WRITES] + window - now)


def with_write(times: Sequence[float], now: float) -> tuple[float, ...]:
    """The times that count after another write."""
    return (*times[1 - MOST_WRITES :], now)

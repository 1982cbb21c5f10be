"""Pace: how often a pool is written. What comes seldom goes out at once, and a torrent at a rate.

A bucket of `BURST` writes that fills by `A_SECOND`: kube-scheduler tries waiting pods again at each
change of a slice, so one pool must not change without end.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST = 20.0
"""Writes, one after another: a hub with all that hangs on it."""

A_SECOND = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How much of the bucket is left.

    Attributes:
        left: At the moment `at`, in seconds of any clock.
    """

    left: float = BURST
    at: float = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until the pool may be written; 0 for now."""
        return max(0.0, (1.0 - self._left(now)) / A_SECOND)

    def written(self, now: float) -> Pace:
        """The pace after a write."""
        return Pace(max(0.0, self._left(now) - 1.0), now)

    def _left(self, now: float) -> float:
        return min(BURST, self.left + (now - self.at) * A_SECOND)

"""Pace: the rate limit of a pool's writes. Rare changes are written at once.

It is a token bucket of `BURST` writes that is refilled with `A_SECOND` writes per second. The
reason: kube-scheduler retries pending pods at each change of a slice.
"""

from __future__ import annotations

from dataclasses import dataclass

BURST = 20.0
"""Size of the bucket, in writes: enough for a USB hub with all its devices."""

A_SECOND = 5.0
"""Writes per second that are added to the bucket."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The state of the bucket.

    Attributes:
        tokens: Writes that were left at the time `at`.
        at: Seconds of a clock that never steps back.
    """

    tokens: float = BURST
    at: float = float("-inf")

    def wait(self, now: float) -> float:
        """Seconds until the pool may be written; 0 if it may be written now."""
        return max(0.0, (1.0 - self._tokens(now)) / A_SECOND)

    def written(self, now: float) -> Pace:
        """The state after a write."""
        return Pace(max(0.0, self._tokens(now) - 1.0), now)

    def _tokens(self, now: float) -> float:
        return min(BURST, self.tokens + (now - self.at) * A_SECOND)

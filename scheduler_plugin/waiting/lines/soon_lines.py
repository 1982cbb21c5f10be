"""Lines whose turn comes by what no change tells: they are judged anew every few seconds.

That there are devices for those that go together is one such thing, that a back-off is over
another.
"""

from __future__ import annotations

from scheduler_plugin.waiting.lines.lines import Signature

SOON_SECONDS = 5.0


class SoonLines:
    """Which lines those are, and when they are judged next, by the monotonic clock."""

    def __init__(self) -> None:
        """There is none yet."""
        self._lines: dict[Signature, None] = {}
        self._at = float("-inf")

    def add(self, signature: Signature) -> None:
        """A line is to be judged anew soon."""
        self._lines[signature] = None

    def hurry(self) -> None:
        """Something changed that may matter to them."""
        self._at = float("-inf")

    @property
    def next_moment(self) -> float | None:
        """When they are judged next; None without any."""
        return self._at if self._lines else None

    def are_due(self, moment: float) -> bool:
        """Whether there are any, and their time has come."""
        return bool(self._lines) and moment >= self._at

    def take(self, moment: float) -> tuple[Signature, ...]:
        """Those that are due; they are no longer among these."""
        if moment < self._at:
            return ()
        self._at = moment + SOON_SECONDS
        found = tuple(self._lines)
        self._lines.clear()
        return found

"""Classes that are judged anew every few seconds, since no event says when they may fit.

Examples: free devices for a whole gang, and the end of a back-off.
"""

from __future__ import annotations

from scheduler_plugin.waiting.lines.lines import Signature

SOON_SECONDS = 5.0


class SoonLines:
    """These classes, and when they are judged next, by the monotonic clock."""

    def __init__(self) -> None:
        self._lines: dict[Signature, None] = {}
        self._at = float("-inf")

    def add(self, signature: Signature) -> None:
        """Judge a class anew soon."""
        self._lines[signature] = None

    def hurry(self) -> None:
        """Judge these classes at the next decision: a change may concern them."""
        self._at = float("-inf")

    @property
    def next_moment(self) -> float | None:
        """When they are judged next; None where there is none."""
        return self._at if self._lines else None

    def are_due(self, moment: float) -> bool:
        """Whether there are classes to judge at `moment`."""
        return bool(self._lines) and moment >= self._at

    def take(self, moment: float) -> tuple[Signature, ...]:
        """Remove and return the classes that are due."""
        if moment < self._at:
            return ()
        self._at = moment + SOON_SECONDS
        found = tuple(self._lines)
        self._lines.clear()
        return found

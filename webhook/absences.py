"""Names that were just looked for in vain: nobody is asked about them again for a moment."""

from __future__ import annotations

from collections.abc import Hashable

MOST_NAMES = 10_000


class Absences:
    """A set whose members leave it by themselves.

    Times are seconds of any clock that never goes back.
    """

    def __init__(self, seconds: float, most: int = MOST_NAMES) -> None:
        """At most so many names for so long; the oldest goes where there is no room."""
        self._seconds = seconds
        self._most = most
        # All stay for the same time, so the order of entry is that of leaving.
        self._until: dict[Hashable, float] = {}

    def add(self, name: Hashable, now: float) -> None:
        """Remember that a name stands for nothing as of now."""
        self._expire(now)
        self._until.pop(name, None)
        if len(self._until) >= self._most:
            del self._until[next(iter(self._until))]
        self._until[name] = now + self._seconds

    def has(self, name: Hashable, now: float) -> bool:
        """Whether a name stood for nothing a moment ago."""
        return now < self._until.get(name, now)

    def _expire(self, now: float) -> None:
        while self._until and self._until[first := next(iter(self._until))] <= now:
            del self._until[first]

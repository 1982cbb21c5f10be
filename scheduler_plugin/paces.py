"""When each of many things is due: at once, but not before its time of rest is over.

Moments are those of the caller's own clock, in seconds; any origin will do.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K")


class Paces(Generic[K]):
    """The things that somebody asked for. Asked for several times, a thing is due once."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._asked: set[K] = set()
        self._rests: dict[K, float] = {}
        self._count = 0

    def ask(self, thing: K, now: float) -> None:
        """Make it due: now, or when its rest is over."""
        if thing not in self._asked:
            self._asked.add(thing)
            self._count += 1  # The first asked for is the first of those that are due together.
            heappush(self._heap, (max(now, self._rests.get(thing, now)), self._count, thing))

    def rest(self, thing: K, until: float) -> None:
        """Let it rest; of one that was asked for already, the next time counts."""
        self._rests[thing] = until

    def seconds_to_next(self, now: float) -> float | None:
        """After which time something is due; None where nothing was asked for."""
        return max(0.0, self._heap[0][0] - now) if self._heap else None

    def take(self, now: float) -> K | None:
        """What has been due for the longest time; None where nothing is due."""
        if not self._heap or self._heap[0][0] > now:
            self._rests = {thing: until for thing, until in self._rests.items() if until > now}
            return None
        _, _, thing = heappop(self._heap)
        self._asked.discard(thing)
        return thing

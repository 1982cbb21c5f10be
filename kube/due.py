"""When each of many keys is due.

Moments are seconds of the monotonic clock, such as an event loop's, so that a change of the wall
clock delays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K")


class Due(Generic[K]):
    """One moment for each key; the latest one that was set counts."""

    def __init__(self) -> None:
        self._moments: dict[K, float] = {}
        # The count orders keys that are due at the same moment by when they were set.
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._moments)

    def __contains__(self, thing: K) -> bool:
        return thing in self._moments

    def __iter__(self) -> Iterator[K]:
        return iter(self._moments)

    def at(self, thing: K) -> float | None:
        """When a key is due; None for never."""
        return self._moments.get(thing)

    def set(self, thing: K, moment: float) -> None:
        """Make a key due at this moment, and at no other."""
        if self._moments.get(thing) == moment:
            return
        self._moments[thing] = moment
        self._count += 1
        heappush(self._heap, (moment, self._count, thing))
        if len(self._heap) > 2 * len(self._moments) + 16:
            self._heap = [entry for entry in self._heap if self._is_set(entry)]
            heapify(self._heap)

    def drop(self, thing: K) -> bool:
        """Remove a key; returns whether it was set."""
        return self._moments.pop(thing, None) is not None

    def next_moment(self) -> float | None:
        """When the next key is due; None if there is none."""
        while self._heap and not self._is_set(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> K | None:
        """Remove and return the key that has been due the longest; None if none is due."""
        moment = self.next_moment()
        if moment is None or moment > now:
            return None
        _, _, thing = heappop(self._heap)
        del self._moments[thing]
        return thing

    def take(self, now: float) -> list[K]:
        """Remove and return all keys that are due, the longest due first."""
        taken = []
        while (thing := self.pop(now)) is not None:
            taken.append(thing)
        return taken

    def _is_set(self, entry: tuple[float, int, K]) -> bool:
        moment, _, thing = entry
        return self._moments.get(thing) == moment

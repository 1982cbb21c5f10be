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
    """One moment for each thing; the latest word about it counts."""

    def __init__(self) -> None:
        self._moments: dict[K, float] = {}
        # The count makes the first that was set the first of those that are due together.
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._moments)

    def __contains__(self, thing: K) -> bool:
        return thing in self._moments

    def __iter__(self) -> Iterator[K]:
        return iter(self._moments)

    def at(self, thing: K) -> float | None:
        """When it is due; None for never."""
        return self._moments.get(thing)

    def set(self, thing: K, moment: float) -> None:
        """Make it due at this moment, and at no other."""
        if self._moments.get(thing) == moment:
            return
        self._moments[thing] = moment
        self._count += 1
        heappush(self._heap, (moment, self._count, thing))
        if len(self._heap) > 2 * len(self._moments) + 16:
            self._heap = [entry for entry in self._heap if self._is_set(entry)]
            heapify(self._heap)

    def drop(self, thing: K) -> bool:
        """Never make it due; whether it would have been."""
        return self._moments.pop(thing, None) is not None

    def next_moment(self) -> float | None:
        """When the next one is due; None for never."""
        while self._heap and not self._is_set(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self, now: float) -> K | None:
        """What has been due for the longest time, and is not any more; None for nothing."""
        moment = self.next_moment()
        if moment is None or moment > now:
            return None
        _, _, thing = heappop(self._heap)
        del self._moments[thing]
        return thing

    def take(self, now: float) -> list[K]:
        """All that are due, the longest due first; they are not any more."""
        taken = []
        while (thing := self.pop(now)) is not None:
            taken.append(thing)
        return taken

    def _is_set(self, entry: tuple[float, int, K]) -> bool:
        moment, _, thing = entry
        return self._moments.get(thing) == moment

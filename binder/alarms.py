"""When to look at each of many things again: the latest word about a thing counts."""

from __future__ import annotations

from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K")


class Alarms(Generic[K]):
    """One moment for each thing; what was set before or dropped never rings."""

    def __init__(self) -> None:
        self._moments: dict[K, datetime] = {}
        self._heap: list[tuple[datetime, int, K]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._moments)

    def set(self, thing: K, moment: datetime) -> None:
        """Ring for a thing at this moment, and at no other."""
        if self._moments.get(thing) == moment:
            return
        self._moments[thing] = moment
        self._count += 1
        heappush(self._heap, (moment, self._count, thing))
        if len(self._heap) > 2 * len(self._moments) + 16:
            self._heap = [entry for entry in self._heap if self._is_set(entry)]
            heapify(self._heap)

    def drop(self, thing: K) -> None:
        """Do not ring for a thing."""
        self._moments.pop(thing, None)

    def next_moment(self) -> datetime | None:
        """When the next one rings; None for never."""
        while self._heap and not self._is_set(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: datetime) -> list[K]:
        """All whose moment has come, the earliest first; they do not ring again."""
        rung: list[K] = []
        while (moment := self.next_moment()) is not None and moment <= now:
            _, _, thing = heappop(self._heap)
            del self._moments[thing]
            rung.append(thing)
        return rung

    def _is_set(self, entry: tuple[datetime, int, K]) -> bool:
        moment, _, thing = entry
        return self._moments.get(thing) == moment

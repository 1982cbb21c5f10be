"""When is it due: one moment for each of many things, and how long what was tried rests.

Moments are seconds of the monotonic clock (an event loop's, say), so that nothing rings late or
rests for longer where somebody sets the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


class Rests(Generic[K]):
    """How often each thing was tried in a row, and until when it rests.

    What is not tried again for a while after its rest is forgotten: it starts a new row.
    """

    def __init__(self, forgotten_after: float | None = None) -> None:
        """`forgotten_after` is in seconds from the end of a rest; None: as long as it rested."""
        self._forgotten_after = forgotten_after
        self._times: dict[K, int] = {}
        self._until: dict[K, float] = {}
        self._forgotten: Due[K] = Due()

    def __len__(self) -> int:
        return len(self._forgotten)

    def again(self, thing: K, now: float, seconds: Callable[[int], float]) -> float:
        """Note that it failed, or was done, once more; returns until when it rests.

        Args:
            thing: What was tried.
            now: The moment.
            seconds: How long it rests, by how often that was in a row.
        """
        self._forget_old(now)
        times = self._times[thing] = self._times.get(thing, 0) + 1
        self.rest(thing, now, seconds(times))
        return self._until[thing]

    def rest(self, thing: K, now: float, seconds: float) -> None:
        """Let it rest, however often it was tried."""
        until = self._until[thing] = now + seconds
        after = seconds if self._forgotten_after is None else self._forgotten_after
        self._forgotten.set(thing, until + after)

    def succeeded(self, thing: K) -> None:
        """Its row has ended; its rest goes on."""
        self._times.pop(thing, None)

    def times(self, thing: K) -> int:
        """How often in a row."""
        return self._times.get(thing, 0)

    def until(self, thing: K, now: float) -> float | None:
        """Until when it rests; None where it does not."""
        until = self._until.get(thing)
        return until if until is not None and until > now else None

    def forget(self, thing: K) -> None:
        """It may be tried at once, as if it never had been; or it is gone."""
        self._times.pop(thing, None)
        self._until.pop(thing, None)
        self._forgotten.drop(thing)

    def _forget_old(self, now: float) -> None:
        for thing in self._forgotten.take(now):
            self.forget(thing)

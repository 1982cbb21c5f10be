"""The queue of client-go's `util/workqueue`: which key is worked on next.

    add ──► ready ──get──► in work ──done──► gone, or ready again where it was added meanwhile
    add_after ──► waiting ──its moment──► ready

A key is in work once at a time, however often it is added, and once more after the last time that
it was added. So whoever works on it has to look at the world as it is, and misses nothing.

Moments are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from kube.backoff import Backoff

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys that are ready, that wait for their moment, and that somebody works on."""

    def __init__(self, backoff: Backoff, uniform: Callable[[], float]) -> None:
        """Create an empty one.

        Args:
            backoff: How long a key waits after failures in a row.
            uniform: Yields numbers in [0, 1), for jitter.
        """
        self._backoff = backoff
        self._uniform = uniform
        self._ready: dict[K, None] = {}
        self._in_work: set[K] = set()
        self._added_meanwhile: set[K] = set()
        self._waiting: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        """How many keys are ready, or will be when whoever works on them is done."""
        return len(self._ready) + len(self._added_meanwhile)

    def add(self, key: K) -> None:
        """It is to be worked on: at once, or once more after whoever works on it now."""
        if key in self._in_work:
            self._added_meanwhile.add(key)
        elif not self._is_backing_off(key):
            self._ready.setdefault(key)

    def add_after(self, key: K, moment: float) -> None:
        """It is to be worked on from this moment on; the earliest that was said counts."""
        if not self._is_backing_off(key):
            self._wait(key, moment)

    def _is_backing_off(self, key: K) -> bool:
        return self._backoff.patient and key in self._failures and key in self._waiting

    def _wait(self, key: K, moment: float) -> None:
        if moment >= self._waiting.get(key, float("inf")):
            return
        self._waiting[key] = moment
        self._count += 1
        heappush(self._heap, (moment, self._count, key))
        if len(self._heap) > 2 * len(self._waiting) + 16:
            self._heap = [entry for entry in self._heap if self._is_meant(entry)]
            heapify(self._heap)

    def add_rate_limited(self, key: K, now: float, at_least: float = 0.0) -> float:
        """It failed once more: later and later; returns after how many seconds."""
        failures = self._failures[key] = self.requeues(key) + 1
        seconds = max(at_least, self._backoff.delay(failures, self._uniform))
        self._wait(key, now + seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Its failures are over; where it is, it stays."""
        self._failures.pop(key, None)

    def requeues(self, key: K) -> int:
        """How often it failed in a row."""
        return self._failures.get(key, 0)

    def get(self, now: float) -> K | None:
        """The key that is ready for the longest time; it is in work from here on."""
        self._take_due(now)
        key = next(iter(self._ready), None)
        if key is not None:
            del self._ready[key]
            self._in_work.add(key)
        return key

    def done(self, key: K) -> None:
        """Nobody works on it any more."""
        self._in_work.remove(key)
        if key in self._added_meanwhile:
            self._added_meanwhile.remove(key)
            self.add(key)

    def next_moment(self) -> float | None:
        """When the first of those that wait is ready; None where none waits."""
        while self._heap and not self._is_meant(self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _take_due(self, now: float) -> None:
        while (moment := self.next_moment()) is not None and moment <= now:
            _, _, key = heappop(self._heap)
            del self._waiting[key]
            self.add(key)

    def _is_meant(self, entry: tuple[float, int, K]) -> bool:
        """Whether it is the last word about its key."""
        moment, _, key = entry
        return self._waiting.get(key) == moment

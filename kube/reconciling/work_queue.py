"""The work queue, as client-go's `util/workqueue`.

    add ──► ready ──get──► processing ──done──► removed, or ready again if it was added meanwhile
    add_after ──► waiting ──its time──► ready

A key is processed once at a time, however often it is added, and once more after the last `add`. So
a worker that reads the current state misses no change.

Times are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kube.backoff import Backoff
from kube.due import Due
from kube.reconciling.round_robin import RoundRobin, one_group

K = TypeVar("K", bound=Hashable)

RETRIES_PER_SECOND = 10.0
RETRY_BURST = 100.0


class WorkQueue(Generic[K]):
    """Keys that are ready, that wait for their time, and that are being processed."""

    def __init__(
        self,
        backoff: Backoff,
        uniform: Callable[[], float],
        group: Callable[[K], Hashable] = one_group,
    ) -> None:
        """Create an empty queue.

        Args:
            backoff: The delay of a key after failures in a row.
            uniform: Yields numbers in [0, 1), for jitter.
            group: The group of a key. Groups alternate, so that one with thousands of keys does
                not keep others waiting.
        """
        self._backoff = backoff
        self._uniform = uniform
        self._ready: RoundRobin[K] = RoundRobin(group)
        self._processing: set[K] = set()
        self._added_meanwhile: set[K] = set()
        self._waiting: Due[K] = Due()
        self._failures: dict[K, int] = {}
        self._last_retry = float("-inf")

    def __len__(self) -> int:
        """The number of keys that are ready, or will be when their processing is done."""
        return len(self._ready) + len(self._added_meanwhile)

    def add(self, key: K) -> None:
        """Make the key ready, or let it be ready again after its current processing."""
        if key in self._processing:
            self._added_meanwhile.add(key)
        elif not self._is_backing_off(key):
            self._ready.add(key)

    def add_after(self, key: K, moment: float) -> None:
        """Make the key ready at this time; the earliest time counts."""
        if not self._is_backing_off(key):
            self._wait(key, moment)

    def _is_backing_off(self, key: K) -> bool:
        return self._backoff.patient and key in self._failures and key in self._waiting

    def _wait(self, key: K, moment: float) -> None:
        before = self._waiting.at(key)
        if before is None or moment < before:
            self._waiting.set(key, moment)

    def add_rate_limited(self, key: K, now: float, at_least: float = 0.0) -> float:
        """Count a failure and make the key ready after its back-off; returns the delay in seconds.

        `at_least` is the shortest delay, such as a `Retry-After`.
        """
        failures = self._failures[key] = self.requeues(key) + 1
        retry = max(self._backoff.delay(failures, self._uniform), self._retry_slot(now))
        seconds = max(at_least, retry)
        if self._backoff.patient:
            # Added during the call that failed: the retry reads that, too.
            self._waiting.drop(key)
        self._wait(key, now + seconds)
        return seconds

    def _retry_slot(self, now: float) -> float:
        """Seconds until the next retry of any key, as client-go's bucket: 10 a second, 100 at once.

        So thousands of keys that fail together are not retried together.
        """
        self._last_retry = max(self._last_retry, now - RETRY_BURST / RETRIES_PER_SECOND)
        self._last_retry += 1.0 / RETRIES_PER_SECOND
        return max(0.0, self._last_retry - now)

    def forget(self, key: K) -> None:
        """Reset the failures of the key; it stays in the queue."""
        self._failures.pop(key, None)

    def requeues(self, key: K) -> int:
        """The number of failures in a row."""
        return self._failures.get(key, 0)

    def get(self, now: float) -> K | None:
        """The next key; it is processing from now on.

        Of one group that is the key that has been ready for the longest time.
        """
        self._add_due(now)
        key = self._ready.take()
        if key is not None:
            self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """End the processing of the key."""
        self._processing.remove(key)
        if key in self._added_meanwhile:
            self._added_meanwhile.remove(key)
            self.add(key)

    def next_moment(self) -> float | None:
        """When the first waiting key becomes ready; None if none waits."""
        return self._waiting.next_moment()

    def _add_due(self, now: float) -> None:
        for key in self._waiting.take(now):
            self.add(key)

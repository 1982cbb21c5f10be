"""Which keys have to wait, since something failed: client-go's `util/flowcontrol.Backoff`.

A work queue lets a change bring a key sooner than its failures would. This is for what must not
be tried sooner, whatever changes; and for keys that are in no queue.

Moments are seconds of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kube.backoff import Backoff

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _Entry:
    failures: int
    until: float


class KeyedBackoff(Generic[K]):
    """Until when each key waits: longer after each failure in a row.

    A key that did not fail within twice the longest wait after its last one starts a new row.
    """

    def __init__(self, backoff: Backoff, uniform: Callable[[], float]) -> None:
        """Create an empty one.

        Args:
            backoff: How long a key waits after failures in a row.
            uniform: Yields numbers in [0, 1), for jitter.
        """
        self._backoff = backoff
        self._uniform = uniform
        # In the order of their last failures.
        self._entries: dict[K, _Entry] = {}

    def __len__(self) -> int:
        """How many keys it remembers."""
        return len(self._entries)

    def failed(self, key: K, now: float) -> float:
        """It failed once more; returns for how many seconds it waits."""
        self._forget_old(now)
        entry = self._entries.get(key)
        failures = entry.failures + 1 if entry is not None else 1
        seconds = self._backoff.delay(failures, self._uniform)
        self._put(key, _Entry(failures, now + seconds))
        return seconds

    def wait(self, key: K, now: float, seconds: float) -> None:
        """It succeeded, and is not to be tried again for so long."""
        self._forget_old(now)
        self._put(key, _Entry(0, now + seconds))

    def left(self, key: K, now: float) -> float:
        """For how many seconds it waits still; 0 where it does not."""
        entry = self._entries.get(key)
        return max(0.0, entry.until - now) if entry is not None else 0.0

    def forget(self, key: K) -> None:
        """It may be tried at once, as if it never had been."""
        self._entries.pop(key, None)

    def _put(self, key: K, entry: _Entry) -> None:
        self.forget(key)
        self._entries[key] = entry

    def _forget_old(self, now: float) -> None:
        """A key with a shorter wait than one before it is forgotten with that one."""
        last = now - 2 * self._backoff.cap_seconds
        while self._entries and next(iter(self._entries.values())).until < last:
            self.forget(next(iter(self._entries)))

"""Back-off by key, as client-go's `util/flowcontrol.Backoff`.

In a work queue a change ends the back-off of a key. This back-off holds whatever changes, and for
keys that are in no queue.

Times are seconds of one monotonic clock.
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
    """Until when each key backs off: longer after each failure in a row.

    The count of failures starts anew for a key that did not fail within twice the longest delay
    after its last one.
    """

    def __init__(self, backoff: Backoff, uniform: Callable[[], float]) -> None:
        """Create without keys.

        Args:
            backoff: The delay after failures in a row.
            uniform: Yields numbers in [0, 1), for jitter.
        """
        self._backoff = backoff
        self._uniform = uniform
        # In the order of the last failures.
        self._entries: dict[K, _Entry] = {}

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._entries)

    def failed(self, key: K, now: float) -> float:
        """Count a failure of the key; returns its delay in seconds."""
        self._forget_old(now)
        entry = self._entries.get(key)
        failures = entry.failures + 1 if entry is not None else 1
        seconds = self._backoff.delay(failures, self._uniform)
        self._put(key, _Entry(failures, now + seconds))
        return seconds

    def wait(self, key: K, now: float, seconds: float) -> None:
        """Reset the failures of the key, and let it wait for so long."""
        self._forget_old(now)
        self._put(key, _Entry(0, now + seconds))

    def left(self, key: K, now: float) -> float:
        """The remaining delay of the key in seconds; 0 for none."""
        entry = self._entries.get(key)
        return max(0.0, entry.until - now) if entry is not None else 0.0

    def forget(self, key: K) -> None:
        """Forget the key: it may be retried at once."""
        self._entries.pop(key, None)

    def _put(self, key: K, entry: _Entry) -> None:
        self.forget(key)
        self._entries[key] = entry

    def _forget_old(self, now: float) -> None:
        """Forget expired keys in order; a key expires at the latest with the one before it."""
        last = now - 2 * self._backoff.cap_seconds
        while self._entries and next(iter(self._entries.values())).until < last:
            self.forget(next(iter(self._entries)))

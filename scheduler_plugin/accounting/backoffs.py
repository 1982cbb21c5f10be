"""Pods that were evicted come back only after a back-off, later each time.

kinds of pods    that were evicted for others' quota borrow again: otherwise whoever makes them
anew borrows at once what was taken back, and a large claim that is taken whole
for a small shortfall comes and goes with each churn. Within their quota such
pods wait for nobody
PodGroups        that were given up since too few of their pods ran: otherwise they begin again
without end, each time with half of their pods
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST = timedelta(minutes=1)
LONGEST = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class _Backoff:
    """How long a kind of pods waits, from when to when."""

    since: datetime
    length: timedelta

    def is_over(self, now: datetime) -> bool:
        """A clock that was set back lets nobody wait for longer."""
        return not self.since <= now < self.since + self.length

    def is_forgotten(self, now: datetime) -> bool:
        """Whether it was not evicted for as long again as it had waited."""
        return not self.since <= now < self.since + 2 * self.length


class Backoffs:
    """By the equivalence class of pods, or by the PodGroup."""

    def __init__(self) -> None:
        self._backoffs: dict[Hashable, _Backoff] = {}
        self._now: datetime | None = None

    def __len__(self) -> int:
        return len(self._backoffs)

    def __contains__(self, kind: Hashable) -> bool:
        """Whether such pods wait now."""
        found = self._backoffs.get(kind)
        return found is not None and self._now is not None and not found.is_over(self._now)

    def until(self, kind: Hashable) -> datetime:
        """When that is over; the kind is one that waits."""
        found = self._backoffs[kind]
        return found.since + found.length

    def evicted(self, kind: Hashable, now: datetime) -> None:
        """A pod of this kind was evicted. Those that are evicted together count once."""
        self.expire(now)
        before = self._backoffs.get(kind)
        if before is not None and not before.is_over(now):
            return
        length = FIRST if before is None else min(2 * before.length, LONGEST)
        self._backoffs[kind] = _Backoff(now, length)

    def expire(self, now: datetime) -> None:
        """Time goes on."""
        self._now = now
        for kind in [k for k, found in self._backoffs.items() if found.is_forgotten(now)]:
            del self._backoffs[kind]

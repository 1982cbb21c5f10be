"""Back-offs of evicted pods, longer each time.

equivalence classes    Pods that were evicted for the quota of others may borrow again only after
                       a back-off. Otherwise their controller creates them again and they borrow
                       at once what was reclaimed, and a large claim that is evicted whole for a
                       small shortfall alternates without end. Within their quota such pods do not
                       wait.
PodGroups              Groups that were evicted with too few running pods are admitted again only
                       after a back-off. Otherwise they start again and again with half of their
                       pods.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST = timedelta(minutes=1)
LONGEST = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class _Backoff:
    """The begin and the length of one back-off."""

    since: datetime
    length: timedelta

    def is_over(self, now: datetime) -> bool:
        """Whether it is over; also if the clock was set back before its begin."""
        return not self.since <= now < self.since + self.length

    def is_forgotten(self, now: datetime) -> bool:
        """Whether twice its length has passed, so that the next back-off is the first again."""
        return not self.since <= now < self.since + 2 * self.length


class Backoffs:
    """Back-offs by equivalence class or by PodGroup."""

    def __init__(self) -> None:
        self._backoffs: dict[Hashable, _Backoff] = {}
        self._now: datetime | None = None

    def __len__(self) -> int:
        return len(self._backoffs)

    def __contains__(self, kind: Hashable) -> bool:
        """Whether the back-off of this kind is in force."""
        found = self._backoffs.get(kind)
        return found is not None and self._now is not None and not found.is_over(self._now)

    def until(self, kind: Hashable) -> datetime:
        """When the back-off of a kind ends; it must have one."""
        found = self._backoffs[kind]
        return found.since + found.length

    def evicted(self, kind: Hashable, now: datetime) -> None:
        """Note the eviction of a pod of this kind. Pods that are evicted together count once."""
        self.expire(now)
        before = self._backoffs.get(kind)
        if before is not None and not before.is_over(now):
            return
        length = FIRST if before is None else min(2 * before.length, LONGEST)
        self._backoffs[kind] = _Backoff(now, length)

    def expire(self, now: datetime) -> None:
        """Set the current time and forget old back-offs."""
        self._now = now
        for kind in [k for k, found in self._backoffs.items() if found.is_forgotten(now)]:
            del self._backoffs[kind]

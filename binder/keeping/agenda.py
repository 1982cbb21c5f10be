"""The agenda of the keeper of claims: whom to look at, now or later, and whom to do something for.

    asked, alarm due ──take_asked──► looked at ──put──► pending ──begin──► under way ──end──► over
                                         └──set_alarm──► later

A claim that comes again while something is done for it stays pending, behind all others, until that
has ended: nothing is done for one claim twice at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_plugin.api import ClaimUid, Due


class Agenda:
    """What there is to do about claims. Moments are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._asked: dict[ClaimUid, None] = {}
        self._alarms: Due[ClaimUid] = Due()
        self._pending: dict[ClaimUid, None] = {}
        self._under_way: set[ClaimUid] = set()

    def __len__(self) -> int:
        """How many claims it knows of."""
        return len({*self._asked, *self._alarms, *self._pending, *self._under_way})

    @property
    def is_busy(self) -> bool:
        """Whether there is somebody to look at, or to do something for, now."""
        return bool(self._asked or self._pending)

    def ask(self, claims: Iterable[ClaimUid]) -> bool:
        """Look at these soon; whether there is any to be looked at."""
        self._asked.update(dict.fromkeys(claims))
        return bool(self._asked)

    def take_asked(self, moment: float) -> tuple[ClaimUid, ...]:
        """Whom to look at now, each once: those that were asked for and those that are due."""
        found = {**self._asked, **dict.fromkeys(self._alarms.take(moment))}
        self._asked.clear()
        return tuple(found)

    def set_alarm(self, claim: ClaimUid, moment: float) -> None:
        """Look at it at this moment, and at no other."""
        self._alarms.set(claim, moment)

    def drop_alarm(self, claim: ClaimUid) -> None:
        self._alarms.drop(claim)

    def next_alarm(self) -> float | None:
        """When somebody is to be looked at though nothing changes; None for never."""
        return self._alarms.next_moment()

    def put(self, claim: ClaimUid) -> None:
        """Something is to be done for it."""
        self._pending[claim] = None

    def next(self) -> ClaimUid | None:
        """For whom something is to be done first; None for nobody, or nobody else."""
        return next((claim for claim in self._pending if claim not in self._under_way), None)

    def begin(self, claim: ClaimUid) -> None:
        """It is being done."""
        del self._pending[claim]
        self._under_way.add(claim)

    def end(self, claim: ClaimUid) -> bool:
        """It is over, whatever came of it; whether there is more to do."""
        self._under_way.discard(claim)
        return bool(self._pending)

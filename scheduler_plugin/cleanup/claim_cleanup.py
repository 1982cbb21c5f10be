"""The cleanup of claims: the next step for one claim.

    1 a stale owner is removed                               `stale_claims`
    2 an orphan is attributed                                `stale_claims`
    3 finished consumers, unused allocations are cleared     `stale_claims`
    4 owner exit                                             `owner_exits`
    5 the note of what devices cost is written               `charge_notes`

One step is returned at a time, since each changes the input of the next. If a step is not due yet,
the time to look again is returned. Otherwise only changes of the claim, its pods, decisions in
flight or Queues make a new step necessary.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeAlias

from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.charge_notes import ChargeNote, changed_note
from scheduler_plugin.cleanup.owner_exits import (
    EvictForeign,
    OwnerExitTime,
    RequeueAt,
    may_continue,
    owner_exit,
)
from scheduler_plugin.cleanup.stale_claims import (
    GRACE,
    Attribution,
    ClaimCleared,
    EndedOwner,
    StaleClaims,
    attribution,
    ended_owner,
)
from scheduler_plugin.objects.names import ClaimUid

Step: TypeAlias = (
    EndedOwner | Attribution | ClaimCleared | ChargeNote | OwnerExitTime | EvictForeign
)


class ClaimCleanup:
    """Decides about one claim at a time; its only state is since when claims have stale parts.

    Attributes:
        world: The current state.
    """

    def __init__(self, world: World, grace: timedelta = GRACE) -> None:
        """`grace` is how long stale consumers and allocations stay."""
        self.world = world
        self._stale_claims = StaleClaims(world, grace)

    def next_step(self, uid: ClaimUid, now: datetime) -> Step | RequeueAt | None:
        """The next step for a claim, or when to look again; None until something changes."""
        # This look always comes first: the grace period begins with it.
        stale = self._stale_claims.look(uid, now)
        step = ended_owner(uid, self.world) or attribution(uid, self.world)
        if step is not None:
            return step
        if isinstance(stale, ClaimCleared):
            return stale
        left = owner_exit(uid, self.world, now)
        if left is None or isinstance(left, RequeueAt):
            # The note comes last: where it cannot be written, nothing else waits for it.
            return changed_note(uid, self.world) or _earlier(left, stale)
        return left

    def is_stale(self, cleared: ClaimCleared, now: datetime) -> bool:
        """Whether all that is to be cleared is still stale."""
        found = self._stale_claims.look(cleared.uid, now)
        return isinstance(found, ClaimCleared) and found.covers(cleared)

    def is_due(self, eviction: EvictForeign, now: datetime) -> bool:
        """Whether the eviction is still due, with exactly these pods."""
        found = owner_exit(eviction.uid, self.world, now)
        return isinstance(found, EvictForeign) and set(found.pods) == set(eviction.pods)

    def may_continue(self, eviction: EvictForeign) -> bool:
        """Whether an eviction in progress may continue with its next pod."""
        return may_continue(eviction, self.world)


def _earlier(requeue: RequeueAt | None, at: datetime | None) -> RequeueAt | None:
    if at is None:
        return requeue
    return RequeueAt(min(at, requeue.at) if requeue is not None else at)

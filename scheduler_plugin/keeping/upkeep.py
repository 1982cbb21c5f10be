"""The cleanup of claims: the next step for one claim.

    1 a stale owner is removed                               `leftovers`
    2 an orphan is attributed                                `leftovers`
    3 finished consumers, unused allocations are cleared     `leftovers`
    4 owner exit                                             `leaving`

One step is returned at a time, since each changes the input of the next. If a step is not due yet,
the time to look again is returned. Otherwise only changes of the claim, its pods, decisions in
flight or Queues make a new step necessary.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeAlias

from scheduler_plugin.accounting.world import World
from scheduler_plugin.keeping.leaving import (
    EvictForeign,
    OwnerLeftAt,
    RequeueAt,
    goes_on,
    owner_exit,
)
from scheduler_plugin.keeping.leftovers import (
    GRACE,
    Attribution,
    ClaimCleared,
    EndedOwner,
    Leftovers,
    attribution,
    ended_owner,
)
from scheduler_plugin.objects.names import ClaimUid

Step: TypeAlias = EndedOwner | Attribution | ClaimCleared | OwnerLeftAt | EvictForeign


class ClaimCleanup:
    """Decides about one claim at a time; its only state is since when claims have stale parts.

    Attributes:
        world: The current state.
    """

    def __init__(self, world: World, grace: timedelta = GRACE) -> None:
        """`grace` is how long stale consumers and allocations stay."""
        self.world = world
        self._leftovers = Leftovers(world, grace)

    def next_step(self, uid: ClaimUid, now: datetime) -> Step | RequeueAt | None:
        """The next step for a claim, or when to look again; None until something changes."""
        # This look always comes first: the grace period begins with it.
        left_over = self._leftovers.look(uid, now)
        step = ended_owner(uid, self.world) or attribution(uid, self.world)
        if step is not None:
            return step
        if isinstance(left_over, ClaimCleared):
            return left_over
        return _earlier(owner_exit(uid, self.world, now), left_over)

    def is_due(self, eviction: EvictForeign, now: datetime) -> bool:
        """Whether the eviction is still due, with exactly these pods."""
        found = owner_exit(eviction.uid, self.world, now)
        return isinstance(found, EvictForeign) and set(found.pods) == set(eviction.pods)

    def goes_on(self, eviction: EvictForeign) -> bool:
        """Whether an eviction in progress may continue with its next pod."""
        return goes_on(eviction, self.world)


def _earlier(
    step: OwnerLeftAt | EvictForeign | RequeueAt | None, at: datetime | None
) -> OwnerLeftAt | EvictForeign | RequeueAt | None:
    if at is None or (step is not None and not isinstance(step, RequeueAt)):
        return step
    return RequeueAt(min(at, step.at) if step is not None else at)

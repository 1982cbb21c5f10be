"""The cleanup of claims: what a claim needs next.

    1 an owner that ended is removed                    `leftovers`
    2 an orphan is attributed                           `leftovers`
    3 finished pods, unused allocations are cleared     `leftovers`
    4 foreign pods outlive the owner's                  `leaving`

There is one step at a time: each changes what the next is decided by. A step that is too early has
a time at which the claim is looked at again. Every other step begins with a change of the claim, of
its pods, of decisions in flight or of Queues.
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
    """Decides about one claim at a time; it remembers only since when left-overs are there.

    Attributes:
        world: What is decided by.
    """

    def __init__(self, world: World, grace: timedelta = GRACE) -> None:
        """Create. `grace` is how long left-overs stay."""
        self.world = world
        self._leftovers = Leftovers(world, grace)

    def next_step(self, uid: ClaimUid, now: datetime) -> Step | RequeueAt | None:
        """What to do about a claim, or when to look again; None until something changes."""
        # Always looked at, and first: the grace period begins with the first look.
        left_over = self._leftovers.look(uid, now)
        step = ended_owner(uid, self.world) or attribution(uid, self.world)
        if step is not None:
            return step
        if isinstance(left_over, ClaimCleared):
            return left_over
        return _earlier(owner_exit(uid, self.world, now), left_over)

    def is_due(self, eviction: EvictForeign, now: datetime) -> bool:
        """Whether exactly these pods are still to be evicted."""
        found = owner_exit(eviction.uid, self.world, now)
        return isinstance(found, EvictForeign) and set(found.pods) == set(eviction.pods)

    def goes_on(self, eviction: EvictForeign) -> bool:
        """Whether the others are to be evicted, too, once the first one was."""
        return goes_on(eviction, self.world)


def _earlier(
    step: OwnerLeftAt | EvictForeign | RequeueAt | None, at: datetime | None
) -> OwnerLeftAt | EvictForeign | RequeueAt | None:
    if at is None or (step is not None and not isinstance(step, RequeueAt)):
        return step
    return RequeueAt(min(at, step.at) if step is not None else at)

"""Candidates for eviction for pods of one queue that lack one resource, in order.

Queues are ordered by how far each queue between them and the common ancestor is above its share,
then by the Queue's priority. The preemptor's own queue is last, since evicted pods of it would
wait in it again. In a queue the pods with the lowest priority are first, then the youngest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain
from typing import TypeAlias

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.steps import STRIDE, Steps
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.victims.protections import protection
from scheduler_plugin.reclaiming.victims.victims import (
    Preemptor,
    Protection,
    Victim,
    charged_for,
    held_by_claim,
    held_by_pod,
    in_order,
    with_whole_gangs,
)

Rank: TypeAlias = tuple[tuple[int, int], ...]
"""For each queue from the common ancestor down: the negative amount above its share, and its
negative priority. The smaller rank is first."""

FEW = 4
"""The number of candidates between two pauses; the check of one is expensive."""

OWN: Rank = ((0, 0),)
"""The rank of the preemptor's own queue and the queues above it: all others have amounts above a
share."""


class CandidateOrder:
    """The queues that own a resource, and the candidates of each."""

    def __init__(
        self,
        preemptor: Preemptor,
        reach: int,
        key: ResourceKey,
        queue_shares: QueueShares,
        now: datetime,
    ) -> None:
        """`reach` is that of the preemptor, see `QueueShares.reach`."""
        self._preemptor = preemptor
        self._reach = reach
        self._key = key
        self._queue_shares = queue_shares
        self._world = queue_shares.world
        self._now = now
        self._path = self._world.facts.tree.path(preemptor.queue)
        self._held: dict[QueueName, list[Victim]] = {}
        self._next: dict[QueueName, int] = {}
        self.protected: dict[str, Protection] = {}
        """Why candidates are protected, by what they use."""
        self.held_back: dict[PodUid, None] = {}
        """The protected pods that may not be evicted now."""
        self._heap: list[tuple[Rank, QueueName]] = []

    def rank_queues(self) -> Steps[None]:
        """Rank the queues in steps; there may be many."""
        for number, owner in enumerate(self._owners(), start=1):
            if (rank := self._rank(owner)) is not None:
                self._heap.append((rank, owner))
            if not number % STRIDE:
                yield
        heapify(self._heap)

    def next(
        self, gone: Collection[PodUid], helps: Callable[[Victim], bool]
    ) -> Steps[Victim | None]:
        """The first candidate that is not gone and that helps, with its whole gangs.

        None where there is none. It pauses between queues.
        """
        while self._heap:
            rank, owner = self._heap[0]
            now = self._rank(owner)
            if now is not None and now != rank:
                heapreplace(self._heap, (now, owner))
                continue
            victim = (yield from self._next_of(owner, gone, helps)) if now is not None else None
            if victim is not None:
                return victim
            heappop(self._heap)
            yield
        return None

    def back(self, owners: Iterable[QueueName]) -> None:
        """Targets of these queues were put back: they are candidates again."""
        asked = {owner for _, owner in self._heap}
        for owner in owners:
            self._next.pop(owner, None)
            if owner not in asked and (rank := self._rank(owner)) is not None:
                heappush(self._heap, (rank, owner))

    # Queues.

    def _owners(self) -> Iterator[QueueName]:
        """The queues that are charged for the resource and within reach."""
        levels = [n for n in range(self._reach + 1) if self._is_taken_for(n)]
        for owner, path in self._queue_shares.owners(self._key):
            if self._level(path) in levels:
                yield owner

    def _level(self, above: tuple[QueueName, ...]) -> int:
        """The number of queues on the preemptor's path below the common ancestor."""
        for number, place in enumerate(self._path):
            if place in above:
                return number
        return len(self._path)

    def _is_taken_for(self, level: int) -> bool:
        return not level or self._queue_shares.is_guaranteed(self._path[:level], self._key)

    def _rank(self, owner: QueueName) -> Rank | None:
        """The rank of a queue; None where a queue on its path is not above its share."""
        found = []
        for place, priority in self._queue_shares.listed_path(owner, self._key):
            if place in self._path:
                break
            above = self._queue_shares.above_share(place, self._key)
            if above <= 0:
                return None
            found.append((-above, priority))
        return tuple(reversed(found)) or OWN

    # Candidates of a queue.

    def _next_of(
        self, owner: QueueName, gone: Collection[PodUid], helps: Callable[[Victim], bool]
    ) -> Steps[Victim | None]:
        held = yield from self._look_at(owner)
        for number in range(self._next.get(owner, 0), len(held)):
            self._next[owner] = number + 1
            if not self._next[owner] % FEW:
                yield
            if held[number].pods <= frozenset(gone):
                continue
            victim = self._with_all(held[number], gone)
            if isinstance(victim, Protection):
                self.protected[held[number].what] = victim
                self.held_back |= self._now_held_back(held[number])
            elif helps(victim):
                return victim
        return None

    def _look_at(self, owner: QueueName) -> Steps[list[Victim]]:
        if owner not in self._held:
            ledger, world, found = self._world.ledger, self._world, list[Victim]()
            claims = ((uid, held_by_claim(uid, world)) for uid in [*ledger.owned_by(owner)])
            pods = ((uid, held_by_pod(uid, world)) for uid in [*ledger.bound_of(owner)])
            for number, (uid, held) in enumerate(chain(claims, pods), start=1):
                if isinstance(held, Victim):
                    found.append(held)
                elif held is not Protection.UNUSED:
                    self.protected[str(uid)] = held
                if not number % FEW:
                    yield
            self._held[owner] = list(in_order(found))
        return self._held[owner]

    def _now_held_back(self, victim: Victim) -> dict[PodUid, None]:
        excluded = self._preemptor.excluded.held_back
        return dict.fromkeys(uid for uid in victim.pods if uid in excluded)

    def _with_all(self, victim: Victim, gone: Collection[PodUid]) -> Victim | Protection:
        found = with_whole_gangs(victim, gone, self._preemptor.excluded.evicted, self._world)
        if isinstance(found, Protection):
            return found
        if self._is_within_share(victim):
            return Protection.WITHIN_SHARE
        return protection(found, self._preemptor, self._world, self._now) or found

    def _is_within_share(self, victim: Victim) -> bool:
        path, cost = self._world.facts.tree.path(victim.owner), charged_for(victim, self._world)
        below = [place for place in path if place not in self._path]
        shares = self._queue_shares
        return shares.is_within(
            below, cost, self._key, lambda place, key: shares.above_share(place, key) > 0
        )

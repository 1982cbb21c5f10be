"""Simulated evictions of one cycle: targets taken and put back, and what is lacking then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.candidate_order import CandidateOrder
from scheduler_plugin.reclaiming.expected_charges import Shortfall
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.placements import Placements
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.target_searches import ChosenVictim, TargetSearch
from scheduler_plugin.reclaiming.victims.effects import released_by
from scheduler_plugin.reclaiming.victims.victims import (
    ExcludedPods,
    Preemptor,
    Victim,
    with_whole_gangs,
)


class SimulatedEvictions:
    """The targets of one cycle, of all heads.

    Attributes:
        gone: Their pods, and pods that were evicted before and are not seen to terminate yet.
    """

    def __init__(
        self,
        world: WorldView,
        now: datetime,
        excluded: ExcludedPods,
        placements: Placements,
        queue_shares: QueueShares,
    ) -> None:
        self.gone: dict[PodUid, None] = dict.fromkeys(excluded.evicted)
        self._world = world
        self._now = now
        self._excluded = excluded
        self._placements = placements
        self._queue_shares = queue_shares
        self._orders: dict[object, CandidateOrder] = {}

    # Reach.

    def search(self, head: Head) -> TargetSearch:
        """A new search for a head, without targets."""
        reach, path = self._queue_shares.reach(head), self._world.facts.tree.path
        so_far = path(head.queue)[:reach]
        keys = (key for key, _ in head.adds if self._queue_shares.is_guaranteed(so_far, key))
        return TargetSearch(head, path, reach, frozenset(keys))

    def extends_reach(self, search: TargetSearch) -> bool:
        """Whether the targets so far extend the reach to more queues; if so, extend it."""
        found = self.search(search.head)
        if found.reach <= search.reach:
            return False
        search.reach, search.guaranteed = found.reach, found.guaranteed
        return True

    def is_enough(self, search: TargetSearch) -> bool:
        """Whether a head lacks nothing, its shares have room for it, and no gang is split."""
        has_all = not self.short_of(search) and all(map(self._is_whole, search.victims))
        return has_all and self._queue_shares.reach(search.head) >= search.reach

    def _is_whole(self, victim: Victim) -> bool:
        found = with_whole_gangs(victim, self.gone, self._excluded.evicted, self._world)
        return isinstance(found, Victim) and found.pods <= self.gone.keys()

    # What is lacking.

    def short_of(self, search: TargetSearch) -> tuple[ResourceKey, ...]:
        """The resources that a head lacks: room below limits, or devices."""
        short = (shortfall.key for shortfall in self.shortfalls(search))
        return tuple(dict.fromkeys((*short, *self._placements.lacks(search.head, self.gone))))

    def shortfalls(self, search: TargetSearch) -> Iterator[Shortfall]:
        """The limits at which a head does not fit, the nearest first."""
        for key, place, most in self._limits(search.head):
            if (missing := self._used(search, place, key) - most) > 0:
                yield Shortfall(place, key, missing)

    def may_be_put_back(self, search: TargetSearch, victim: Victim) -> bool:
        """Whether the head fits each limit even if this target is put back."""
        freed = next(each.freed for each in search.taken if each.victim is victim)
        path = self._world.facts.tree.path
        for key, place, most in self._limits(search.head):
            back = sum(amounts[key] for owner, amounts in freed if place in path(owner))
            if self._used(search, place, key) + back > most:
                return False
        return True

    def _limits(self, head: Head) -> Iterator[tuple[ResourceKey, QueueName, int]]:
        for key, _ in head.adds:
            for place, share in self._world.facts.tree.checks(head.queue, key):
                if share.most.most is not None:
                    yield key, place, share.most.most

    def _used(self, search: TargetSearch, place: QueueName, key: ResourceKey) -> int:
        """The usage of a queue with the head and without its targets.

        Of a resource that is not guaranteed, what the targets release does not count: enough has
        to be free. Otherwise two heads with one guaranteed resource each would evict each other
        alternately.
        """
        head = search.head
        stays = self._queue_shares.has(place, key) + self._queue_shares.assumed(place, key)
        left = 0 if search.is_guaranteed(key) else search.left_by_others(place, key)
        return stays + left - head.counted(place, key) + head.adds[key]

    # Targets.

    def next(self, search: TargetSearch, short_of: tuple[ResourceKey, ...]) -> Steps[Victim | None]:
        """The first candidate that releases anything that is lacking; None where none does."""
        lacks_devices = bool(self._placements.lacks(search.head, self.gone))
        for key in short_of:
            order = yield from self._candidate_order(search, key)
            found = yield from order.next(self.gone, partial(self._helps, search, lacks_devices))
            if found is not None:
                return found
        return None

    def orders(
        self, search: TargetSearch, short_of: tuple[ResourceKey, ...]
    ) -> list[CandidateOrder]:
        """The candidates for each lacking resource."""
        return [self._orders[self._order_name(search, key)] for key in short_of]

    def _helps(self, search: TargetSearch, lacks_devices: bool, victim: Victim) -> bool:
        is_lacking = lacks_devices and self._placements.helps(search.head, victim)
        return is_lacking or self.gives_room(search, victim)

    def gives_room(self, search: TargetSearch, victim: Victim) -> bool:
        """Whether a candidate releases anything that is lacking at a limit."""
        freed = [*released_by(victim.pods, self.gone, self._world, self._excluded.stuck)]
        path = self._world.facts.tree.path
        return any(
            amounts[shortfall.key] and shortfall.place in path(owner)
            for shortfall in self.shortfalls(search)
            for owner, amounts in freed
        )

    def _candidate_order(self, search: TargetSearch, key: ResourceKey) -> Steps[CandidateOrder]:
        name = self._order_name(search, key)
        if name not in self._orders:
            preemptor = Preemptor(search.head.pods, search.head.queue, self._excluded)
            found = CandidateOrder(preemptor, search.reach, key, self._queue_shares, self._now)
            yield from found.rank_queues()
            self._orders[name] = found
        return self._orders[name]

    def _order_name(self, search: TargetSearch, key: ResourceKey) -> object:
        head = search.head
        kind = head.uids if head.kind is None else head.kind
        return kind, head.lacks_room, search.reach, key

    def take(self, search: TargetSearch, victim: Victim) -> None:
        """Take a target for a head."""
        freed = tuple(released_by(victim.pods, self.gone, self._world, self._excluded.stuck))
        pods = tuple(uid for uid in victim.pods if uid not in self.gone)
        search.taken.append(ChosenVictim(victim, pods, freed))
        self.gone |= dict.fromkeys(pods)
        for owner, amounts in freed:
            self._queue_shares.take(owner, amounts)

    def put_back(self, search: TargetSearch) -> list[Victim]:
        """Put back all targets of a head; returns them in their order."""
        victims = list(search.victims)
        for each in reversed(search.taken):
            for uid in each.pods:
                del self.gone[uid]
            for owner, amounts in each.freed:
                self._queue_shares.take(owner, amounts, -1)
        owners = dict.fromkeys(owner for each in search.taken for owner, _ in each.freed)
        search.taken.clear()
        for order in self._orders.values():
            order.back(owners)
        return victims

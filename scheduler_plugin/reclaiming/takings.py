"""Simulated evictions of one cycle: targets taken and put back, and what is lacking then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.errands import Errand, Taken
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.orders import Order
from scheduler_plugin.reclaiming.standings import Standings
from scheduler_plugin.reclaiming.supplies import Supply
from scheduler_plugin.reclaiming.victims.effects import ends_with
from scheduler_plugin.reclaiming.victims.victims import Asker, Away, Victim, whole
from scheduler_plugin.reclaiming.wants import Shortage


class Takings:
    """The targets of one cycle, of all heads.

    Attributes:
        gone: Their pods, and pods that were evicted before and are not seen to terminate yet.
    """

    def __init__(
        self, world: WorldView, now: datetime, away: Away, supply: Supply, standings: Standings
    ) -> None:
        self.gone: dict[PodUid, None] = dict.fromkeys(away.evicted)
        self._world = world
        self._now = now
        self._away = away
        self._supply = supply
        self._standings = standings
        self._orders: dict[object, Order] = {}

    # Reach.

    def errand(self, head: Head) -> Errand:
        """A new search for a head, without targets."""
        reach, path = self._standings.reach(head), self._world.facts.tree.path
        so_far = path(head.queue)[:reach]
        keys = (key for key, _ in head.adds if self._standings.is_guaranteed(so_far, key))
        return Errand(head, path, reach, frozenset(keys))

    def goes_further(self, errand: Errand) -> bool:
        """Whether the targets so far extend the reach to more queues; if so, extend it."""
        found = self.errand(errand.head)
        if found.reach <= errand.reach:
            return False
        errand.reach, errand.guaranteed = found.reach, found.guaranteed
        return True

    def is_enough(self, errand: Errand) -> bool:
        """Whether a head lacks nothing, its shares have room for it, and no gang is split."""
        has_all = not self.lacking(errand) and all(map(self._is_whole, errand.victims))
        return has_all and self._standings.reach(errand.head) >= errand.reach

    def _is_whole(self, victim: Victim) -> bool:
        found = whole(victim, self.gone, self._away.evicted, self._world)
        return isinstance(found, Victim) and found.pods <= self.gone.keys()

    # What is lacking.

    def lacking(self, errand: Errand) -> tuple[ResourceKey, ...]:
        """The resources that a head lacks: room below limits, or devices."""
        short = (shortage.key for shortage in self.shortages(errand))
        return tuple(dict.fromkeys((*short, *self._supply.lacks(errand.head, self.gone))))

    def shortages(self, errand: Errand) -> Iterator[Shortage]:
        """The limits at which a head does not fit, the nearest first."""
        for key, place, most in self._limits(errand.head):
            if (missing := self._used(errand, place, key) - most) > 0:
                yield Shortage(place, key, missing)

    def has_to_spare(self, errand: Errand, victim: Victim) -> bool:
        """Whether the head fits each limit even if this target is put back."""
        freed = next(each.freed for each in errand.taken if each.victim is victim)
        path = self._world.facts.tree.path
        for key, place, most in self._limits(errand.head):
            back = sum(amounts[key] for owner, amounts in freed if place in path(owner))
            if self._used(errand, place, key) + back > most:
                return False
        return True

    def _limits(self, head: Head) -> Iterator[tuple[ResourceKey, QueueName, int]]:
        for key, _ in head.adds:
            for place, share in self._world.facts.tree.checks(head.queue, key):
                if share.most.most is not None:
                    yield key, place, share.most.most

    def _used(self, errand: Errand, place: QueueName, key: ResourceKey) -> int:
        """The usage of a queue with the head and without its targets.

        Of a resource that is not guaranteed, what the targets release does not count: enough has
        to be free. Otherwise two heads with one guaranteed resource each would evict each other
        alternately.
        """
        head = errand.head
        stays = self._standings.has(place, key) + self._standings.comes(place, key)
        left = 0 if errand.is_guaranteed(key) else errand.left_by_others(place, key)
        return stays + left - head.counted(place, key) + head.adds[key]

    # Targets.

    def next(self, errand: Errand, lacking: tuple[ResourceKey, ...]) -> Steps[Victim | None]:
        """The first candidate that releases anything that is lacking; None where none does."""
        lacks_devices = bool(self._supply.lacks(errand.head, self.gone))
        for key in lacking:
            order = yield from self._lined_up(errand, key)
            found = yield from order.next(self.gone, partial(self._helps, errand, lacks_devices))
            if found is not None:
                return found
        return None

    def orders(self, errand: Errand, lacking: tuple[ResourceKey, ...]) -> list[Order]:
        """The candidates for each lacking resource."""
        return [self._orders[self._order_name(errand, key)] for key in lacking]

    def _helps(self, errand: Errand, lacks_devices: bool, victim: Victim) -> bool:
        is_lacking = lacks_devices and self._supply.helps(errand.head, victim)
        return is_lacking or self.gives_room(errand, victim)

    def gives_room(self, errand: Errand, victim: Victim) -> bool:
        """Whether a candidate releases anything that is lacking at a limit."""
        freed = [*ends_with(victim.pods, self.gone, self._world, self._away.stuck)]
        path = self._world.facts.tree.path
        return any(
            amounts[shortage.key] and shortage.place in path(owner)
            for shortage in self.shortages(errand)
            for owner, amounts in freed
        )

    def _lined_up(self, errand: Errand, key: ResourceKey) -> Steps[Order]:
        name = self._order_name(errand, key)
        if name not in self._orders:
            asker = Asker(errand.head.pods, errand.head.queue, self._away)
            found = Order(asker, errand.reach, key, self._standings, self._now)
            yield from found.line_up()
            self._orders[name] = found
        return self._orders[name]

    def _order_name(self, errand: Errand, key: ResourceKey) -> object:
        head = errand.head
        kind = head.uids if head.kind is None else head.kind
        return kind, head.lacks_room, errand.reach, key

    def take(self, errand: Errand, victim: Victim) -> None:
        """Take a target for a head."""
        freed = tuple(ends_with(victim.pods, self.gone, self._world, self._away.stuck))
        pods = tuple(uid for uid in victim.pods if uid not in self.gone)
        errand.taken.append(Taken(victim, pods, freed))
        self.gone |= dict.fromkeys(pods)
        for owner, amounts in freed:
            self._standings.take(owner, amounts)

    def give_back(self, errand: Errand) -> list[Victim]:
        """Put back all targets of a head; returns them in their order."""
        victims = list(errand.victims)
        for each in reversed(errand.taken):
            for uid in each.pods:
                del self.gone[uid]
            for owner, amounts in each.freed:
                self._standings.take(owner, amounts, -1)
        owners = dict.fromkeys(owner for each in errand.taken for owner, _ in each.freed)
        errand.taken.clear()
        for order in self._orders.values():
            order.back(owners)
        return victims

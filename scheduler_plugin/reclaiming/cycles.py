"""Who goes for pods that wait: one head after the other, of all who wait at one time.

    head ──► lacks nothing ──► OnItsWay
       └───► who may go, in order, until it is enough ──► Take: whoever was not needed stays
                                    └── not enough ─────► Nobody, and why

What one head takes, and what it will be charged, counts for all after it: so a whole line is served
in one cycle. Nobody looks for the smallest set: greedily in order, and what turned out not to be
needed stays, the last one first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import AT_ONCE
from scheduler_plugin.judging.verdicts import Admitted, assume
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.orders import Order
from scheduler_plugin.reclaiming.standings import Standings
from scheduler_plugin.reclaiming.victims.effects import ends_with
from scheduler_plugin.reclaiming.victims.victims import Asker, Away, Victim
from scheduler_plugin.reclaiming.wants import Nobody, Shortage


class Supply(Protocol):
    """Where devices are, and who has them."""

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        """Of what a head finds too little once these pods are gone."""

    def helps(self, head: Head, victim: Victim) -> bool:
        """Whether what it holds is anything that the head could have."""

    def keep(self, head: Head, gone: Collection[PodUid]) -> None:
        """What the head finds then is its: nobody after it finds it."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """Who goes, with those that were not gone before, and what ends with them."""

    victim: Victim
    pods: tuple[PodUid, ...]
    freed: tuple[tuple[QueueName, Charges], ...]


@dataclass(slots=True)
class _Errand:
    """One head, and who was chosen for it until now.

    Attributes:
        path: Of a queue, it and those above it.
        reach: See `Standings.reach`.
        guaranteed: The keys of which the queues so far have a quota.
    """

    head: Head
    path: Callable[[QueueName], tuple[QueueName, ...]]
    reach: int
    guaranteed: frozenset[ResourceKey]
    taken: list[_Taken] = field(default_factory=list)

    @property
    def victims(self) -> tuple[Victim, ...]:
        return tuple(each.victim for each in self.taken)

    def is_guaranteed(self, key: ResourceKey) -> bool:
        return key in self.guaranteed

    def left_by_others(self, place: QueueName, key: ResourceKey) -> int:
        """What those below a queue leave of a key who are not below the head's own."""
        return sum(
            amounts[key]
            for taken in self.taken
            if self.head.queue not in self.path(taken.victim.owner)
            for owner, amounts in taken.freed
            if place in self.path(owner)
        )


class Cycle:
    """One look at all that wait. Pods are served in the order in which they are given."""

    def __init__(self, world: WorldView, now: datetime, away: Away, supply: Supply) -> None:
        self._world = world.trial()
        self._now = now
        self._away = away
        self._supply = supply
        self._standings = Standings(self._world, away)
        self._gone: dict[PodUid, None] = dict.fromkeys(away.evicted)
        self._orders: dict[object, Order] = {}

    def serve(self, pod: PodView) -> Decision:
        """Who goes for a pod and those that go with it; that counts for whoever comes after it."""
        head = head_of(pod, self._world)
        if isinstance(head, Nobody):
            return head
        errand = self._errand(head)
        while lacking := self._lacking(errand):
            victim = self._next(errand, lacking)
            if victim is None:
                self._give_back(errand)
                return self._nobody(errand, lacking)
            self._take(errand, victim)
        self._spare(errand)
        self._keep(head)
        if not errand.taken:
            return OnItsWay()
        return Take(pod, head.holds, errand.victims, self._sentence(errand))

    def _errand(self, head: Head) -> _Errand:
        reach, path = self._standings.reach(head), self._world.facts.tree.path
        so_far = path(head.queue)[:reach]
        keys = (key for key, _ in head.adds if self._standings.is_guaranteed(so_far, key))
        return _Errand(head, path, reach, frozenset(keys))

    # What is lacking.

    def _shortages(self, errand: _Errand) -> Iterator[Shortage]:
        """At which limits what a head adds does not fit, the nearest first."""
        for key, place, most in self._limits(errand.head):
            if (missing := self._used(errand, place, key) - most) > 0:
                yield Shortage(place, key, missing)

    def _limits(self, head: Head) -> Iterator[tuple[ResourceKey, QueueName, int]]:
        for key, _ in head.adds:
            for place, share in self._world.facts.tree.checks(head.queue, key):
                if share.most.most is not None:
                    yield key, place, share.most.most

    def _used(self, errand: _Errand, place: QueueName, key: ResourceKey) -> int:
        """What a queue uses with the head, once those are gone that were chosen.

        What they leave of a key that is not guaranteed was not taken for the head: of such a key
        enough has to be free. Two that are guaranteed one key each would take both in turns.
        """
        head = errand.head
        stays = self._standings.has(place, key) + self._standings.comes(place, key)
        left = 0 if errand.is_guaranteed(key) else errand.left_by_others(place, key)
        return stays + left - head.counted(place, key) + head.adds[key]

    def _lacking(self, errand: _Errand) -> tuple[ResourceKey, ...]:
        short = (shortage.key for shortage in self._shortages(errand))
        return tuple(dict.fromkeys((*short, *self._supply.lacks(errand.head, self._gone))))

    def _helps(self, errand: _Errand, victim: Victim) -> bool:
        """Whether it frees anything that is lacking, at a limit or of devices."""
        freed = [*ends_with(victim.pods, self._gone, self._world, self._away.stuck)]
        path = self._world.facts.tree.path
        return any(
            amounts[s.key] and s.place in path(owner)
            for s in self._shortages(errand)
            for owner, amounts in freed
        ) or bool(
            self._supply.lacks(errand.head, self._gone) and self._supply.helps(errand.head, victim)
        )

    # Who goes.

    def _next(self, errand: _Errand, lacking: tuple[ResourceKey, ...]) -> Victim | None:
        for key in lacking:
            order = self._order(errand, key)
            found = order.next(self._gone, partial(self._helps, errand))
            if found is not None:
                return found
        return None

    def _order(self, errand: _Errand, key: ResourceKey) -> Order:
        head = errand.head
        name = head.kind or head.uids, head.lacks_room, errand.reach, key
        if name not in self._orders:
            asker = Asker(head.pods, head.queue, self._away)
            self._orders[name] = Order(asker, errand.reach, key, self._standings, self._now)
        return self._orders[name]

    def _take(self, errand: _Errand, victim: Victim) -> None:
        freed = tuple(ends_with(victim.pods, self._gone, self._world, self._away.stuck))
        pods = tuple(uid for uid in victim.pods if uid not in self._gone)
        errand.taken.append(_Taken(victim, pods, freed))
        self._gone |= dict.fromkeys(pods)
        for owner, amounts in freed:
            self._standings.take(owner, amounts)

    def _give_back(self, errand: _Errand) -> list[Victim]:
        """All that were taken for a head stay; returns them in their order."""
        victims = list(errand.victims)
        for taken in reversed(errand.taken):
            for uid in taken.pods:
                del self._gone[uid]
            for owner, amounts in taken.freed:
                self._standings.take(owner, amounts, -1)
        owners = dict.fromkeys(owner for taken in errand.taken for owner, _ in taken.freed)
        errand.taken.clear()
        for order in self._orders.values():
            order.back(owners)
        return victims

    def _spare(self, errand: _Errand) -> None:
        """Whoever is not needed stays, the last one first; without the very last it was short."""
        for victim in reversed(errand.victims[:-1]):
            if not self._may_be_needless(errand, victim):
                continue
            before = self._give_back(errand)
            others = [other for other in before if other is not victim]
            for other in others:
                self._take(errand, other)
            if self._lacking(errand):
                self._give_back(errand)
                for other in before:
                    self._take(errand, other)

    def _may_be_needless(self, errand: _Errand, victim: Victim) -> bool:
        """Whether there is as much to spare at each limit as ends with it."""
        freed = next(taken.freed for taken in errand.taken if taken.victim is victim)
        path = self._world.facts.tree.path
        for key, place, most in self._limits(errand.head):
            back = sum(amounts[key] for owner, amounts in freed if place in path(owner))
            if self._used(errand, place, key) + back > most:
                return False
        return True

    def _keep(self, head: Head) -> None:
        """The head will be charged, and what it finds is its."""
        self._supply.keep(head, self._gone)
        for case in head.cases:
            admitted = Admitted(queue=case.queue, claims=case.claims, requests=case.requests)
            assume(case.pod, admitted, self._world, AT_ONCE)

    # What is said.

    def _sentence(self, errand: _Errand) -> str:
        names = ", ".join(victim.what for victim in errand.victims)
        return f"{errand.head} takes {names}."

    def _nobody(self, errand: _Errand, lacking: tuple[ResourceKey, ...]) -> Nobody:
        unmet = errand.head.queue if errand.reach else None
        return Nobody(f"{errand.head} lacks {', '.join(lacking)}, and nobody goes.", unmet)

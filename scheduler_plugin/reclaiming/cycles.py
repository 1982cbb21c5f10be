"""Who goes for pods that wait: one head after the other, of all who wait at one time.

    head ──► lacks nothing ──► OnItsWay
       └───► who may go, in order, until it is enough ──► Take: whoever was not needed stays
                                    └── not enough ─────► Nobody, and why

What one head takes, and what it will be charged, counts for all after it: so a whole line is served
in one cycle. Nobody looks for the smallest set: greedily in order, and what turned out not to be
needed stays, the last one first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import AT_ONCE
from scheduler_plugin.judging.verdicts import Admitted, assume
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.errands import Errand, Taken
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.held_places import with_places
from scheduler_plugin.reclaiming.orders import Order
from scheduler_plugin.reclaiming.places.places import Place
from scheduler_plugin.reclaiming.sentences import InVain, Unserved, nobody, taken
from scheduler_plugin.reclaiming.standings import Standings
from scheduler_plugin.reclaiming.supplies import Supply
from scheduler_plugin.reclaiming.victims.effects import ends_with
from scheduler_plugin.reclaiming.victims.victims import Asker, Away, Victim
from scheduler_plugin.reclaiming.wants import Nobody, Shortage


class Cycle:
    """One look at all that wait. Pods are served in the order in which they are given.

    The world may go on while `steps` pauses: its sums are read through. What was decided is looked
    at once more before it is carried out (`due_takes`).
    """

    def __init__(self, world: WorldView, now: datetime, away: Away, supply: Supply) -> None:
        self._world = world.trial()
        self._now = now
        self._away = away
        self._supply = supply
        self._standings = Standings(self._world, away)
        self._gone: dict[PodUid, None] = dict.fromkeys(away.evicted)
        self._orders: dict[object, Order] = {}
        self._in_vain: dict[object, InVain] = {}

    @property
    def standings(self) -> Standings:
        """What each queue has by now, with all that was taken and given in this cycle."""
        return self._standings

    def serve(self, pod: PodView) -> Decision:
        """As `steps`, for who does not pause."""
        return next(found for found in self.steps(pod) if found is not None)

    def steps(self, pod: PodView) -> Iterator[Decision | None]:
        """Who goes for a pod and those that go with it; that counts for whoever comes after it.

        It is None while there is more to look at, and the decision last.
        """
        head = head_of(pod, self._world)
        if isinstance(head, Nobody):
            yield head
        elif (before := self._in_vain.get(head.kind)) is not None:
            yield before.of(head)
        else:
            yield from self._standings.prepare(key for key, _ in head.adds)
            yield from self._served(pod, self._errand(head))

    def _served(self, pod: PodView, errand: Errand) -> Iterator[Decision | None]:
        head = errand.head
        if not head.lacks_room and (doubt := self._supply.doubt(head)):
            yield Nobody(f"{head} waits for a device, and {doubt}.", head.queue)
            return
        while lacking := self._lacking(errand):
            victim = yield from self._next(errand, lacking)
            if victim is None and self._goes_further(errand):
                continue
            if victim is None:
                found = self._nobody(errand, lacking)
                self._give_back(errand)
                yield found
                return
            self._take(errand, victim)
            yield None
        self._spare(errand)
        places = self._keep(head)
        holds = with_places(head.holds, places, errand.victims, self._world)
        if not errand.taken:
            yield OnItsWay(() if head.lacks_room else holds)
            return
        said = taken(head, errand.victims, places)
        yield Take(pod, holds, errand.victims, said, places, is_device=not head.lacks_room)

    def _errand(self, head: Head) -> Errand:
        reach, path = self._standings.reach(head), self._world.facts.tree.path
        so_far = path(head.queue)[:reach]
        keys = (key for key, _ in head.adds if self._standings.is_guaranteed(so_far, key))
        return Errand(head, path, reach, frozenset(keys))

    def _goes_further(self, errand: Errand) -> bool:
        """Whether more queues may be asked than before, now that some of those nearer go."""
        found = self._errand(errand.head)
        if found.reach <= errand.reach:
            return False
        errand.reach, errand.guaranteed = found.reach, found.guaranteed
        return True

    # What is lacking.

    def _shortages(self, errand: Errand) -> Iterator[Shortage]:
        """At which limits what a head adds does not fit, the nearest first."""
        for key, place, most in self._limits(errand.head):
            if (missing := self._used(errand, place, key) - most) > 0:
                yield Shortage(place, key, missing)

    def _limits(self, head: Head) -> Iterator[tuple[ResourceKey, QueueName, int]]:
        for key, _ in head.adds:
            for place, share in self._world.facts.tree.checks(head.queue, key):
                if share.most.most is not None:
                    yield key, place, share.most.most

    def _used(self, errand: Errand, place: QueueName, key: ResourceKey) -> int:
        """What a queue uses with the head, once those are gone that were chosen.

        What they leave of a key that is not guaranteed was not taken for the head: of such a key
        enough has to be free. Two that are guaranteed one key each would take both in turns.
        """
        head = errand.head
        stays = self._standings.has(place, key) + self._standings.comes(place, key)
        left = 0 if errand.is_guaranteed(key) else errand.left_by_others(place, key)
        return stays + left - head.counted(place, key) + head.adds[key]

    def _lacking(self, errand: Errand) -> tuple[ResourceKey, ...]:
        short = (shortage.key for shortage in self._shortages(errand))
        return tuple(dict.fromkeys((*short, *self._supply.lacks(errand.head, self._gone))))

    def _helps(self, errand: Errand, victim: Victim) -> bool:
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

    def _next(self, errand: Errand, lacking: tuple[ResourceKey, ...]) -> Steps[Victim | None]:
        for key in lacking:
            order = yield from self._lined_up(errand, key)
            found = yield from order.next(self._gone, partial(self._helps, errand))
            if found is not None:
                return found
        return None

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

    def _take(self, errand: Errand, victim: Victim) -> None:
        freed = tuple(ends_with(victim.pods, self._gone, self._world, self._away.stuck))
        pods = tuple(uid for uid in victim.pods if uid not in self._gone)
        errand.taken.append(Taken(victim, pods, freed))
        self._gone |= dict.fromkeys(pods)
        for owner, amounts in freed:
            self._standings.take(owner, amounts)

    def _give_back(self, errand: Errand) -> list[Victim]:
        """All that were taken for a head stay; returns them in their order."""
        victims = list(errand.victims)
        for each in reversed(errand.taken):
            for uid in each.pods:
                del self._gone[uid]
            for owner, amounts in each.freed:
                self._standings.take(owner, amounts, -1)
        owners = dict.fromkeys(owner for each in errand.taken for owner, _ in each.freed)
        errand.taken.clear()
        for order in self._orders.values():
            order.back(owners)
        return victims

    def _spare(self, errand: Errand) -> None:
        """Whoever is not needed stays, the last one first; without the very last it was short."""
        for victim in reversed(errand.victims[:-1]):
            if not self._may_be_needless(errand, victim):
                continue
            before = self._give_back(errand)
            others = [other for other in before if other is not victim]
            for other in others:
                self._take(errand, other)
            if self._lacking(errand) or self._standings.reach(errand.head) < errand.reach:
                self._give_back(errand)
                for other in before:
                    self._take(errand, other)

    def _may_be_needless(self, errand: Errand, victim: Victim) -> bool:
        """Whether there is as much to spare at each limit as ends with it."""
        freed = next(each.freed for each in errand.taken if each.victim is victim)
        path = self._world.facts.tree.path
        for key, place, most in self._limits(errand.head):
            back = sum(amounts[key] for owner, amounts in freed if place in path(owner))
            if self._used(errand, place, key) + back > most:
                return False
        return True

    def _keep(self, head: Head) -> tuple[Place, ...]:
        """The head will be charged, and what it finds is its."""
        places = tuple(self._supply.keep(head, self._gone))
        for case in head.cases:
            admitted = Admitted(queue=case.queue, claims=case.claims, requests=case.requests)
            assume(case.pod, admitted, self._world, AT_ONCE)
        return places

    # What is said.

    def _nobody(self, errand: Errand, lacking: tuple[ResourceKey, ...]) -> Nobody:
        head, orders = errand.head, [self._orders[self._order_name(errand, k)] for k in lacking]
        stay = Counter(why for order in orders for why in order.protected.values())
        is_within = errand.reach > 0 and any(map(errand.is_guaranteed, lacking))
        is_below = is_within or self._standings.is_below_quota(head)
        unmet = head.queue if is_below else None
        lacks = next(self._shortages(errand), None)
        why_not = self._supply.why_not(head) if lacks is None else ""
        said = Unserved(lacking, lacks, stay, self._held_back_by(orders), why_not)
        found = Nobody(nobody(head, said, is_within, is_below), unmet)
        if head.kind is not None:
            self._in_vain[head.kind] = InVain(str(head), found)
        return found

    def _held_back_by(self, orders: Iterable[Order]) -> str:
        """What one of those says who may not be evicted now; "" where there is none."""
        uids = (uid for order in orders for uid in order.held_back)
        return next((self._away.held_back[uid] for uid in uids), "")

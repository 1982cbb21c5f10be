"""Aging: other pods leave room for a pod that has waited long, so that it does not starve.

A pod that does not fit does not block later pods that do. Without a limit to that, small pods
could keep a large one waiting without end. So its waiting time is divided into free and kept
periods; each pair is twice as long as the one before:

    free 5m, kept 5m, free 10m, kept 10m, free 20m, kept 20m, ...

In a kept period no later pod takes room that the aged pod needs, at any ceiling of its queue and
of the queues above. The exception is a pod of a queue with a better rank: for example one below
its quota, where the queue of the aged pod is above its own. Devices may be in use without a time
limit, so in half of the time other pods are admitted all the same. If no pod runs for longer than
some time, a kept period of that length ends within eight times that time, and the aged pod is
admitted in it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from kube.shapes.times import read_time
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.pod_order import SortKey
from scheduler_plugin.judging.verdicts import Admitted
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.waiting.classes.pod_classes import ClassKey, EquivalenceClass
from scheduler_plugin.waiting.order.queue_ranks import Rank, own_rank, rank

FIRST_PERIOD = timedelta(minutes=5)
"""The length of the first free period, and of the first kept one."""

QueueResource: TypeAlias = tuple[QueueName, ResourceKey]


def in_kept_period(waited: timedelta, first: timedelta = FIRST_PERIOD) -> bool:
    """Whether this waiting time is in a kept period."""
    if waited < first:
        return False
    period = first
    while waited >= 2 * period:
        waited -= 2 * period
        period *= 2
    return waited >= period


@dataclass(frozen=True, slots=True)
class Aged:
    """The head of a class that was refused at a ceiling.

    Attributes:
        turn: Its sort key.
        needs: The most that can be charged for it, or for its gang.
        name: For a sentence.
        created: As the API writes it.
    """

    class_key: ClassKey
    turn: SortKey
    needs: Charges
    name: str
    created: str

    def in_kept_period(self, now: datetime, first: timedelta) -> bool:
        """Whether other pods leave room for it; False where its creation time is not known."""
        since = read_time(self.created)
        return since is not None and in_kept_period(now - since, first)

    def __str__(self) -> str:
        return f"Room is left for {self.name}, which has waited since {self.created}."


class AgedPods:
    """The aged pods, and the classes that leave room for them."""

    def __init__(
        self, world: WorldView, pod_classes: Mapping[ClassKey, EquivalenceClass], first: timedelta
    ) -> None:
        """`first` is the length of the first two periods."""
        self._world = world
        self._pod_classes = pod_classes
        self._first = first
        self._aged: dict[ClassKey, tuple[QueueResource, ...]] = {}
        self._at: dict[QueueResource, list[tuple[SortKey, Aged]]] = {}
        self._yielding: dict[ClassKey, dict[ClassKey, None]] = {}

    def put(self, aged: Aged, now: datetime) -> Iterable[ClassKey]:
        """A pod was refused: leave room for it in its kept periods, if it could fit at all.

        Returns the classes that do not need to leave room any more.
        """
        if not aged.in_kept_period(now, self._first):
            return self.drop(aged.class_key)
        ceilings = dict(self._ceilings(aged))
        if any(aged.needs[key] > most for (_, key), most in ceilings.items()):
            return self.drop(aged.class_key)
        self._take_out(aged.class_key)
        self._aged[aged.class_key] = tuple(ceilings)
        for place in ceilings:
            insort(self._at.setdefault(place, []), (aged.turn, aged), key=lambda entry: entry[0])
        return ()

    def drop(self, class_key: ClassKey) -> Iterable[ClassKey]:
        """The head of a class is admitted or another; returns the classes that left room for it."""
        self._take_out(class_key)
        return self._yielding.pop(class_key, ())

    def _take_out(self, class_key: ClassKey) -> None:
        for place in self._aged.pop(class_key, ()):
            found = [entry for entry in self._at[place] if entry[1].class_key != class_key]
            if found:
                self._at[place] = found
            else:
                del self._at[place]

    def _ceilings(self, aged: Aged) -> Iterator[tuple[QueueResource, int]]:
        for key, _ in aged.needs:
            for place, share in self._world.facts.tree.checks(aged.class_key.queue, key):
                if share.most.most is not None:
                    yield (place, key), share.most.most

    def period_changed(self, pod_class: EquivalenceClass, created: str, now: datetime) -> bool:
        """Whether an inadmissible class has begun another period."""
        aged = Aged(pod_class.class_key, pod_class.sort_keys[0], pod_class.requests, "", created)
        return aged.in_kept_period(now, self._first) != (pod_class.class_key in self._aged)

    def leave_room(
        self, pod_class: EquivalenceClass, admitted: Iterable[Admitted], now: datetime
    ) -> Aged | None:
        """The aged pod for which a head that fits leaves room; None where it may be admitted."""
        if not self._aged:
            return None
        added = Totals(self._world.facts.tree.path)
        for verdict in admitted:
            added.add(verdict.queue, verdict.requests)
            for use in verdict.claims:
                added.add(use.owner, use.adds)
        for place, charges in added.by_queue().items():
            for key, amount in charges:
                aged = self._first_at((place, key), pod_class, now)
                if aged is not None and self._takes(place, key, amount + aged.needs[key]):
                    self._yielding.setdefault(aged.class_key, {})[pod_class.class_key] = None
                    return aged
        return None

    def _takes(self, place: QueueName, key: ResourceKey, amount: int) -> bool:
        """Whether a ceiling has no room for this amount."""
        ledger, assumed = self._world.ledger.usage, self._world.assumptions.usage
        share = self._world.facts.tree.share(place, key)
        used = ledger.amount(place, key) + assumed.amount(place, key)
        return share is not None and not share.most.allows(used + amount)

    def _first_at(
        self, place: QueueResource, pod_class: EquivalenceClass, now: datetime
    ) -> Aged | None:
        """The first aged pod at a ceiling that is before the class and has no worse rank."""
        for turn, aged in self._at.get(place, ()):
            if turn >= pod_class.sort_keys[0] or aged.class_key == pod_class.class_key:
                return None
            there = self._pod_classes.get(aged.class_key)
            is_first = there is not None and turn in there.sort_keys[:1]
            if (
                is_first
                and aged.in_kept_period(now, self._first)
                and not self._ranks_better(pod_class, aged)
            ):
                return aged
        return None

    def _ranks_better(self, pod_class: EquivalenceClass, aged: Aged) -> bool:
        """Whether the class ranks better, at the level where the paths of both queues divide."""
        mine, other = pod_class.class_key.queue, aged.class_key.queue
        if mine == other:
            return False
        path = self._world.facts.tree.path
        below_mine = [place for place in path(mine) if place not in path(other)]
        below_other = [place for place in path(other) if place not in path(mine)]
        mine_stands = self._rank(below_mine, mine, aged.needs)
        return mine_stands[:2] < self._rank(below_other, other, aged.needs)[:2]

    def _rank(self, below: list[QueueName], queue: QueueName, requests: Charges) -> Rank:
        if below:
            return rank(below[-1], requests, self._world)
        return own_rank(queue, requests, self._world)

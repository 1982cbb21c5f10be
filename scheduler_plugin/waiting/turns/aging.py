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
from scheduler_plugin.judging.turns import Turn
from scheduler_plugin.judging.verdicts import Admitted
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.waiting.lines.lines import Line, Signature
from scheduler_plugin.waiting.turns.fairness import Rank, own_rank, rank

FIRST_TURN = timedelta(minutes=5)
"""The length of the first free period, and of the first kept one."""

Place: TypeAlias = tuple[QueueName, ResourceKey]


def is_kept(waited: timedelta, first: timedelta = FIRST_TURN) -> bool:
    """Whether this waiting time is in a kept period."""
    if waited < first:
        return False
    turn = first
    while waited >= 2 * turn:
        waited -= 2 * turn
        turn *= 2
    return waited >= turn


@dataclass(frozen=True, slots=True)
class Aged:
    """The head of a class that was refused at a ceiling.

    Attributes:
        turn: Its sort key.
        needs: The most that can be charged for it, or for its gang.
        name: For a sentence.
        created: As the API writes it.
    """

    signature: Signature
    turn: Turn
    needs: Charges
    name: str
    created: str

    def is_kept(self, now: datetime, first: timedelta) -> bool:
        """Whether other pods leave room for it; False where its creation time is not known."""
        since = read_time(self.created)
        return since is not None and is_kept(now - since, first)

    def __str__(self) -> str:
        return f"Room is left for {self.name}, which has waited since {self.created}."


class AgedPods:
    """The aged pods, and the classes that leave room for them."""

    def __init__(self, world: WorldView, lines: Mapping[Signature, Line], first: timedelta) -> None:
        """`first` is the length of the first two periods."""
        self._world = world
        self._lines = lines
        self._first = first
        self._aged: dict[Signature, tuple[Place, ...]] = {}
        self._at: dict[Place, list[tuple[Turn, Aged]]] = {}
        self._leaving: dict[Signature, dict[Signature, None]] = {}

    def put(self, aged: Aged, now: datetime) -> Iterable[Signature]:
        """A pod was refused: leave room for it in its kept periods, if it could fit at all.

        Returns the classes that do not need to leave room any more.
        """
        if not aged.is_kept(now, self._first):
            return self.drop(aged.signature)
        ceilings = dict(self._ceilings(aged))
        if any(aged.needs[key] > most for (_, key), most in ceilings.items()):
            return self.drop(aged.signature)
        self._take_out(aged.signature)
        self._aged[aged.signature] = tuple(ceilings)
        for place in ceilings:
            insort(self._at.setdefault(place, []), (aged.turn, aged), key=lambda entry: entry[0])
        return ()

    def drop(self, signature: Signature) -> Iterable[Signature]:
        """The head of a class is admitted or another; returns the classes that left room for it."""
        self._take_out(signature)
        return self._leaving.pop(signature, ())

    def _take_out(self, signature: Signature) -> None:
        for place in self._aged.pop(signature, ()):
            found = [entry for entry in self._at[place] if entry[1].signature != signature]
            if found:
                self._at[place] = found
            else:
                del self._at[place]

    def _ceilings(self, aged: Aged) -> Iterator[tuple[Place, int]]:
        for key, _ in aged.needs:
            for place, share in self._world.facts.tree.checks(aged.signature.queue, key):
                if share.most.most is not None:
                    yield (place, key), share.most.most

    def is_turned(self, line: Line, created: str, now: datetime) -> bool:
        """Whether an inadmissible class has begun another period."""
        aged = Aged(line.signature, line.turns[0], line.asks, "", created)
        return aged.is_kept(now, self._first) != (line.signature in self._aged)

    def leave_room(self, line: Line, admitted: Iterable[Admitted], now: datetime) -> Aged | None:
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
                aged = self._first_at((place, key), line, now)
                if aged is not None and self._takes(place, key, amount + aged.needs[key]):
                    self._leaving.setdefault(aged.signature, {})[line.signature] = None
                    return aged
        return None

    def _takes(self, place: QueueName, key: ResourceKey, amount: int) -> bool:
        """Whether a ceiling has no room for this amount."""
        ledger, assumed = self._world.ledger.usage, self._world.assumptions.usage
        share = self._world.facts.tree.share(place, key)
        used = ledger.amount(place, key) + assumed.amount(place, key)
        return share is not None and not share.most.allows(used + amount)

    def _first_at(self, place: Place, line: Line, now: datetime) -> Aged | None:
        """The first aged pod at a ceiling that is before the class and has no worse rank."""
        for turn, aged in self._at.get(place, ()):
            if turn >= line.turns[0] or aged.signature == line.signature:
                return None
            there = self._lines.get(aged.signature)
            is_first = there is not None and turn in there.turns[:1]
            if is_first and aged.is_kept(now, self._first) and not self._stands_better(line, aged):
                return aged
        return None

    def _stands_better(self, line: Line, aged: Aged) -> bool:
        """Whether the class ranks better, at the level where the paths of both queues divide."""
        mine, other = line.signature.queue, aged.signature.queue
        if mine == other:
            return False
        path = self._world.facts.tree.path
        below_mine = [place for place in path(mine) if place not in path(other)]
        below_other = [place for place in path(other) if place not in path(mine)]
        mine_stands = self._rank(below_mine, mine, aged.needs)
        return mine_stands[:2] < self._rank(below_other, other, aged.needs)[:2]

    def _rank(self, below: list[QueueName], queue: QueueName, asks: Charges) -> Rank:
        if below:
            return rank(below[-1], asks, self._world)
        return own_rank(queue, asks, self._world)

"""Who has waited for so long that others leave room for it: an end to being passed.

A pod that does not fit lets those pass that do. If that went on for ever, small pods would keep a
large one waiting without end. So its time is cut into turns, free ones and kept ones, each pair
twice as long as the one before:

    free 5m, kept 5m, free 10m, kept 10m, free 20m, kept 20m, ...

In its kept turns nobody who comes after it takes room that it needs, at any ceiling of its queue
and above; nobody but queues that stand better, which are under their quota, say, while its own is
over its. Devices may be in use for ever, so half of the time others may go all the same. Where no
pod runs for longer than some time, a kept turn of that length ends within eight times that time,
and in it the pod goes.
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
"""How long the first free turn is, and the first kept one."""

Place: TypeAlias = tuple[QueueName, ResourceKey]


def is_kept(waited: timedelta, first: timedelta = FIRST_TURN) -> bool:
    """Whether others leave room for who has waited for so long."""
    if waited < first:
        return False
    turn = first
    while waited >= 2 * turn:
        waited -= 2 * turn
        turn *= 2
    return waited >= turn


@dataclass(frozen=True, slots=True)
class Aged:
    """The first pod of a line that was refused at a ceiling.

    Attributes:
        needs: The most that it can be charged, with those that go with it if there are any.
        name: For a sentence.
        created: As the API writes it.
    """

    signature: Signature
    turn: Turn
    needs: Charges
    name: str
    created: str

    def is_kept(self, now: datetime, first: timedelta) -> bool:
        """Whether others leave room for it; for nobody of whom it is not known since when."""
        since = read_time(self.created)
        return since is not None and is_kept(now - since, first)

    def __str__(self) -> str:
        return f"Room is left for {self.name}, which has waited since {self.created}."


class AgedPods:
    """For whom room is left, and which lines leave it."""

    def __init__(self, world: WorldView, lines: Mapping[Signature, Line], first: timedelta) -> None:
        """`first` is the length of the first turns."""
        self._world = world
        self._lines = lines
        self._first = first
        self._aged: dict[Signature, tuple[Place, ...]] = {}
        self._at: dict[Place, list[tuple[Turn, Aged]]] = {}
        self._leaving: dict[Signature, dict[Signature, None]] = {}

    def put(self, aged: Aged, now: datetime) -> Iterable[Signature]:
        """A pod was refused: leave room for it, if it is its turn and it could fit at all.

        Returns the lines that need to leave none any more.
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
        """A line's first goes, or another is the first: the lines that left room for it."""
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
        """Whether a line that waits at a ceiling has another turn than it had."""
        aged = Aged(line.signature, line.turns[0], line.asks, "", created)
        return aged.is_kept(now, self._first) != (line.signature in self._aged)

    def leave_room(self, line: Line, admitted: Iterable[Admitted], now: datetime) -> Aged | None:
        """For whom a line's first, which would fit, leaves room; None where it may go."""
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
        """Whether a ceiling has no room for both."""
        ledger, assumed = self._world.ledger.usage, self._world.assumptions.usage
        share = self._world.facts.tree.share(place, key)
        used = ledger.amount(place, key) + assumed.amount(place, key)
        return share is not None and not share.most.allows(used + amount)

    def _first_at(self, place: Place, line: Line, now: datetime) -> Aged | None:
        """The first that is kept room for there, if it comes before the line and stands as well."""
        for turn, aged in self._at.get(place, ()):
            if turn >= line.turns[0] or aged.signature == line.signature:
                return None
            there = self._lines.get(aged.signature)
            is_first = there is not None and turn in there.turns[:1]
            if is_first and aged.is_kept(now, self._first) and not self._stands_better(line, aged):
                return aged
        return None

    def _stands_better(self, line: Line, aged: Aged) -> bool:
        """Where the ways to both part: under its quota, say, or in a queue of higher priority."""
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

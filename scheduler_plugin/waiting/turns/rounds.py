"""The order of the classes to judge in one cycle, the fairest first.

The classes are leaves of the tree of queues. At each queue the child with the best rank is next
(`fairness`); among equal ranks, the child whose head has the smaller sort key.

    above the roots ──► root ──► child ──► … ──► the queue's own classes, by sort key

Each queue keeps its children sorted, each once. An admission changes ranks only on the paths of
the charged queues; so only these, and the head of each queue, are ranked again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush, heapreplace
from itertools import count
from typing import TypeAlias

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.turns import Turn
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.waiting.lines.lines import Line, Signature
from scheduler_plugin.waiting.turns.fairness import Rank, own_rank, rank

_Entry: TypeAlias = tuple[Rank, Turn, QueueName]
"""A child of a queue with the rank of the last look; `NO_QUEUE` stands for the own classes."""

_TOP = NO_QUEUE
_OWN = NO_QUEUE


class Round:
    """The classes that are not judged yet in this cycle."""

    def __init__(self, lines: Mapping[Signature, Line], world: WorldView) -> None:
        self._lines = lines
        self._world = world
        self._signatures: set[Signature] = set()
        self._children: dict[QueueName, list[_Entry]] = {}
        self._known: dict[tuple[QueueName, QueueName], _Entry] = {}
        self._own: dict[QueueName, list[tuple[Turn, int, Signature]]] = {}
        # A pod that changes its class is in the heap twice, with the same sort key.
        self._numbers = count()

    def add(self, signatures: Iterable[Signature]) -> None:
        """Add these classes, each once; a class that is here already is ranked again."""
        for signature in signatures:
            line = self._lines.get(signature)
            if line is not None:
                self._signatures.add(signature)
                self._hang(line)

    def moved_up(self, line: Line) -> None:
        """The class has a new head, and may be earlier in the order."""
        if line.signature in self._signatures:
            self._hang(line)

    def __bool__(self) -> bool:
        """Whether there may be a class that is not judged yet."""
        return bool(self._signatures)

    def _hang(self, line: Line) -> None:
        queue = line.signature.queue
        heap = self._own.setdefault(queue, [])
        heappush(heap, (line.turns[0], next(self._numbers), line.signature))
        self.charged((queue,))

    def _put(self, place: QueueName, child: QueueName, line: Line) -> None:
        """Rank a child for this class. An entry may be too good for the present, never too bad."""
        entry, known = self._entry(place, child, line), self._known.get((place, child))
        if known is None or entry < known:
            self._replace(place, child, entry)

    def _replace(self, place: QueueName, child: QueueName, entry: _Entry | None) -> None:
        entries, known = self._children.setdefault(place, []), self._known.pop((place, child), None)
        if known is not None:
            del entries[bisect_left(entries, known)]
        if entry is not None:
            self._known[place, child] = entry
            insort(entries, entry)
        elif not entries:
            # Lists are dropped one by one, so that the end of a cycle takes no time.
            del self._children[place]

    def _path(self, queue: QueueName) -> Iterable[tuple[QueueName, QueueName]]:
        """Each queue on the path down to a queue's own classes, with the next child."""
        places = (_TOP, *reversed(self._world.facts.tree.path(queue)))
        return zip(places, (*places[1:], _OWN), strict=True)

    def _entry(self, place: QueueName, child: QueueName, line: Line) -> _Entry:
        stands = own_rank(place, line.asks, self._world)
        if child != _OWN:
            stands = rank(child, line.asks, self._world)
        return stands, line.turns[0], child

    def next(self) -> Line | None:
        """Remove and return the next class; None at the end of the cycle."""
        line = self._first(_TOP)
        if line is None:
            self._signatures.clear()
            return None
        self._signatures.discard(line.signature)
        self.charged((line.signature.queue,))
        return line

    def charged(self, queues: Iterable[QueueName]) -> None:
        """The usage of these queues changed, or a class was added to them.

        Not only the added class may be next: where it gives its queue a worse rank, a sibling may
        move forward.
        """
        for queue in queues:
            for place, child in reversed(list(self._path(queue))):
                line = self._first_of(place, child)
                if line is not None:
                    self._put(place, child, line)

    def _first_of(self, place: QueueName, child: QueueName) -> Line | None:
        return self._first_own(place) if child == _OWN else self._first(child)

    def _first(self, place: QueueName) -> Line | None:
        entries = self._children.get(place, [])
        while entries:
            child = entries[0][-1]
            line = self._first_of(place, child)
            entry = self._entry(place, child, line) if line is not None else None
            if entry == entries[0]:
                return line
            self._replace(place, child, entry)
        return None

    def _first_own(self, queue: QueueName) -> Line | None:
        heap = self._own.get(queue, [])
        while heap:
            turn, _, signature = heap[0]
            line = self._lines.get(signature) if signature in self._signatures else None
            if line is None:
                heappop(heap)
            elif line.turns[0] == turn:
                return line
            else:
                heapreplace(heap, (line.turns[0], next(self._numbers), signature))
        self._own.pop(queue, None)
        return None

    def rest(self) -> Iterable[Signature]:
        """The classes that are not judged yet."""
        return self._signatures

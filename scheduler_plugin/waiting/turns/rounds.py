"""One round of decisions: the lines that may go, the fairest first.

The lines hang on the tree of queues. At each queue the child goes next that stands best
(`fairness`); of those that stand equally, the one whose next pod has the earlier turn.

    above the roots ──► root ──► child ──► … ──► the queue's own lines, by turn

Each queue keeps its children in order, each once. While pods are admitted ranks change on the
paths that are charged alone; so these are looked at again, and whatever is the first of a queue.
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
"""A child of a queue, as it stood when somebody looked; the name of none: its own lines."""

_TOP = NO_QUEUE
_OWN = NO_QUEUE


class Round:
    """The lines that take part, each until its turn comes."""

    def __init__(self, lines: Mapping[Signature, Line], world: WorldView) -> None:
        self._lines = lines
        self._world = world
        self._signatures: set[Signature] = set()
        self._children: dict[QueueName, list[_Entry]] = {}
        self._known: dict[tuple[QueueName, QueueName], _Entry] = {}
        self._own: dict[QueueName, list[tuple[Turn, int, Signature]]] = {}
        # A pod that goes from one line to another stands in the heap twice, with one turn.
        self._numbers = count()

    def add(self, signatures: Iterable[Signature]) -> None:
        """Let these lines take part, each once; one that does already is looked at anew."""
        for signature in signatures:
            line = self._lines.get(signature)
            if line is not None:
                self._signatures.add(signature)
                self._hang(line)

    def moved_up(self, line: Line) -> None:
        """Somebody came who is the first of a line now, which may be its turn earlier."""
        if line.signature in self._signatures:
            self._hang(line)

    def __bool__(self) -> bool:
        """Whether there may be a line whose turn has not come."""
        return bool(self._signatures)

    def _hang(self, line: Line) -> None:
        queue = line.signature.queue
        heap = self._own.setdefault(queue, [])
        heappush(heap, (line.turns[0], next(self._numbers), line.signature))
        self.charged((queue,))

    def _put(self, place: QueueName, child: QueueName, line: Line) -> None:
        """What stands there may be better than the child is by now, never worse."""
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
            # Piece by piece: to drop a round at its end takes no time then.
            del self._children[place]

    def _path(self, queue: QueueName) -> Iterable[tuple[QueueName, QueueName]]:
        """Each place on the way down to a queue's own lines, and the child that the way takes."""
        places = (_TOP, *reversed(self._world.facts.tree.path(queue)))
        return zip(places, (*places[1:], _OWN), strict=True)

    def _entry(self, place: QueueName, child: QueueName, line: Line) -> _Entry:
        stands = own_rank(place, line.asks, self._world)
        if child != _OWN:
            stands = rank(child, line.asks, self._world)
        return stands, line.turns[0], child

    def next(self) -> Line | None:
        """The line whose turn it is; it is out of the round then. None at the round's end."""
        line = self._first(_TOP)
        if line is None:
            self._signatures.clear()
            return None
        self._signatures.discard(line.signature)
        self.charged((line.signature.queue,))
        return line

    def charged(self, queues: Iterable[QueueName]) -> None:
        """What these queues are charged changed, or a line came to them.

        Another line of theirs may be the next now, and not only the one that came: where that
        makes its queue stand worse, the turn is a sibling's, which may be earlier than before.
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
        """The lines whose turn has not come."""
        return self._signatures

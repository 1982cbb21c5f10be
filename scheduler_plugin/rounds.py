"""One round of decisions: the lines that may go, the fairest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from scheduler_plugin.fairness import Precedence, precedence
from scheduler_plugin.waiting_lines import Line, Shape, Turn
from scheduler_plugin.world import World

_Rank: TypeAlias = tuple[Precedence, Turn, Shape]


class Round:
    """Lines by the precedence of their queue, then by the turn of their first pod.

    While pods are admitted a rank only grows; so the smallest is found by looking again at the one
    that was the smallest, and not at all of them.
    """

    def __init__(self, lines: Mapping[Shape, Line], world: World) -> None:
        self._lines = lines
        self._world = world
        self._heap: list[_Rank] = []
        self._shapes: set[Shape] = set()

    def add(self, shapes: Iterable[Shape]) -> None:
        """Let these lines take part; one that is in the round already takes part once."""
        new = [shape for shape in shapes if shape in self._lines and shape not in self._shapes]
        self._shapes.update(new)
        ranks = [self._rank(self._lines[shape]) for shape in new]
        if len(ranks) > 1:
            self._heap += ranks
            heapify(self._heap)
        else:
            for rank in ranks:
                heappush(self._heap, rank)

    def next(self) -> Line | None:
        """The line whose turn it is; it is out of the round then. None at the round's end."""
        while self._heap:
            before = heappop(self._heap)
            shape = before[-1]
            line = self._lines.get(shape)
            rank = self._rank(line) if line is not None else None
            if rank is not None and rank[:2] > before[:2]:
                heappush(self._heap, rank)
                continue
            self._shapes.discard(shape)
            if line is not None:
                return line
        return None

    def rest(self) -> Iterable[Shape]:
        """The lines whose turn has not come."""
        return self._shapes

    def _rank(self, line: Line) -> _Rank:
        keys = (key for key, _ in line.asks)
        return precedence(line.shape.queue, keys, self._world), line.turns[0], line.shape

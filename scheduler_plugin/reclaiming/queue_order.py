"""Whose turn it is among pods that wait: the queue farthest below its share first.

Within a queue priority goes first, then age. What a cycle gives to a queue counts at once, so that
of two queues that are below their shares neither is served alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import TypeAlias

from scheduler_plugin.judging.turns import Turn, asked, turn_of
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.standings import Standings

Rank: TypeAlias = tuple[int, Turn]
"""How much a queue is below its share, turned round, and the turn of its first pod."""


class QueueOrder:
    """The pods that wait, one after the other; each once."""

    def __init__(self, pods: Iterable[PodView], standings: Standings) -> None:
        self._standings = standings
        self._facts = standings.world.facts
        self._lines: dict[QueueName, list[tuple[Turn, PodView]]] = {}
        for pod in pods:
            line = self._lines.setdefault(self._facts.queue_of(pod), [])
            line.append((turn_of(pod), pod))
        for line in self._lines.values():
            line.sort(key=lambda entry: entry[0], reverse=True)
        self._heap = [(self._rank(queue), queue) for queue in self._lines]
        heapify(self._heap)

    def __iter__(self) -> Iterator[PodView]:
        while self._heap:
            rank, queue = self._heap[0]
            if (now := self._rank(queue)) != rank:
                heapreplace(self._heap, (now, queue))
                continue
            _, pod = self._lines[queue].pop()
            if self._lines[queue]:
                heapreplace(self._heap, (self._rank(queue), queue))
            else:
                heappop(self._heap)
            yield pod

    def _rank(self, queue: QueueName) -> Rank:
        turn, pod = self._lines[queue][-1]
        return -sum(self._below(queue, pod)), turn

    def _below(self, queue: QueueName, pod: PodView) -> Iterator[int]:
        """How much is left of its share of each resource that the pod asks for."""
        for key, _ in asked(pod, self._facts):
            has = self._standings.has(queue, key) + self._standings.comes(queue, key)
            yield max(0, self._standings.share(queue, key) - has)

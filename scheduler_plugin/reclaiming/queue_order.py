"""The order of waiting pods in a cycle: the queue farthest below its share first.

In a queue the order is priority, then age. What a cycle gives to a queue counts at once, so that
two queues below their shares are served alternately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from typing import TypeAlias

from scheduler_plugin.judging.pod_order import SortKey, asked, sort_key
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.queue_shares import QueueShares

Rank: TypeAlias = tuple[float, SortKey]
"""The negative amount below the queue's share, and the sort key of its head.

Of several resources the parts of the largest quota or limit are added, see `QueueTree.scale`.
"""


class QueueOrder:
    """An iterator over waiting pods; each is yielded once."""

    def __init__(self, pods: Iterable[PodView], queue_shares: QueueShares) -> None:
        self._queue_shares = queue_shares
        self._facts = queue_shares.world.facts
        self._queued: dict[QueueName, list[tuple[SortKey, PodView]]] = {}
        for pod in pods:
            queued = self._queued.setdefault(self._facts.queue_of(pod), [])
            queued.append((sort_key(pod), pod))
        for queued in self._queued.values():
            queued.sort(key=lambda entry: entry[0], reverse=True)
        self._heap = [(self._rank(queue), queue) for queue in self._queued]
        heapify(self._heap)

    def __iter__(self) -> Iterator[PodView]:
        while self._heap:
            rank, queue = self._heap[0]
            if (now := self._rank(queue)) != rank:
                heapreplace(self._heap, (now, queue))
                continue
            _, pod = self._queued[queue].pop()
            if self._queued[queue]:
                heapreplace(self._heap, (self._rank(queue), queue))
            else:
                heappop(self._heap)
            yield pod

    def _rank(self, queue: QueueName) -> Rank:
        turn, pod = self._queued[queue][-1]
        return -sum(self._below(queue, pod)), turn

    def _below(self, queue: QueueName, pod: PodView) -> Iterator[float]:
        """The free part of the queue's share, for each resource that the pod requests."""
        for key, _ in asked(pod, self._facts):
            has = self._queue_shares.has(queue, key) + self._queue_shares.assumed(queue, key)
            below = max(0, self._queue_shares.share(queue, key) - has)
            yield below / self._facts.tree.scale(key)

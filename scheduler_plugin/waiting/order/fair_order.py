"""The order of the classes to judge in one cycle, the fairest first.

The classes are leaves of the tree of queues. At each queue the child with the best rank is next
(`queue_ranks`); among equal ranks, the child whose head has the smaller sort key.

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
from scheduler_plugin.judging.pod_order import SortKey
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.waiting.classes.pod_classes import ClassKey, EquivalenceClass
from scheduler_plugin.waiting.order.queue_ranks import Rank, own_rank, rank

_Entry: TypeAlias = tuple[Rank, SortKey, QueueName]
"""A child of a queue with the rank of the last look; `NO_QUEUE` stands for the own classes."""

_TOP = NO_QUEUE
_OWN = NO_QUEUE


class FairOrder:
    """The classes that are not judged yet in this cycle."""

    def __init__(self, pod_classes: Mapping[ClassKey, EquivalenceClass], world: WorldView) -> None:
        self._pod_classes = pod_classes
        self._world = world
        self._class_keys: set[ClassKey] = set()
        self._children: dict[QueueName, list[_Entry]] = {}
        self._known: dict[tuple[QueueName, QueueName], _Entry] = {}
        self._own: dict[QueueName, list[tuple[SortKey, int, ClassKey]]] = {}
        # A pod that changes its class is in the heap twice, with the same sort key.
        self._numbers = count()

    def add(self, class_keys: Iterable[ClassKey]) -> None:
        """Add these classes, each once; a class that is here already is ranked again."""
        for class_key in class_keys:
            pod_class = self._pod_classes.get(class_key)
            if pod_class is not None:
                self._class_keys.add(class_key)
                self._hang(pod_class)

    def head_changed(self, pod_class: EquivalenceClass) -> None:
        """The class has a new head, and may be earlier in the order."""
        if pod_class.class_key in self._class_keys:
            self._hang(pod_class)

    def __bool__(self) -> bool:
        """Whether there may be a class that is not judged yet."""
        return bool(self._class_keys)

    def _hang(self, pod_class: EquivalenceClass) -> None:
        queue = pod_class.class_key.queue
        heap = self._own.setdefault(queue, [])
        heappush(heap, (pod_class.sort_keys[0], next(self._numbers), pod_class.class_key))
        self.charged((queue,))

    def _put(self, place: QueueName, child: QueueName, pod_class: EquivalenceClass) -> None:
        """Rank a child for this class. An entry may be too good for the present, never too bad."""
        entry, known = self._entry(place, child, pod_class), self._known.get((place, child))
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

    def _entry(self, place: QueueName, child: QueueName, pod_class: EquivalenceClass) -> _Entry:
        stands = own_rank(place, pod_class.requests, self._world)
        if child != _OWN:
            stands = rank(child, pod_class.requests, self._world)
        return stands, pod_class.sort_keys[0], child

    def next(self) -> EquivalenceClass | None:
        """Remove and return the next class; None at the end of the cycle."""
        pod_class = self._first(_TOP)
        if pod_class is None:
            self._class_keys.clear()
            return None
        self._class_keys.discard(pod_class.class_key)
        self.charged((pod_class.class_key.queue,))
        return pod_class

    def charged(self, queues: Iterable[QueueName]) -> None:
        """The usage of these queues changed, or a class was added to them.

        Not only the added class may be next: where it gives its queue a worse rank, a sibling may
        move forward.
        """
        for queue in queues:
            for place, child in reversed(list(self._path(queue))):
                pod_class = self._first_of(place, child)
                if pod_class is not None:
                    self._put(place, child, pod_class)

    def _first_of(self, place: QueueName, child: QueueName) -> EquivalenceClass | None:
        return self._first_own(place) if child == _OWN else self._first(child)

    def _first(self, place: QueueName) -> EquivalenceClass | None:
        entries = self._children.get(place, [])
        while entries:
            child = entries[0][-1]
            pod_class = self._first_of(place, child)
            entry = self._entry(place, child, pod_class) if pod_class is not None else None
            if entry == entries[0]:
                return pod_class
            self._replace(place, child, entry)
        return None

    def _first_own(self, queue: QueueName) -> EquivalenceClass | None:
        heap = self._own.get(queue, [])
        while heap:
            turn, _, class_key = heap[0]
            pod_class = self._pod_classes.get(class_key) if class_key in self._class_keys else None
            if pod_class is None:
                heappop(heap)
            elif pod_class.sort_keys[0] == turn:
                return pod_class
            else:
                heapreplace(heap, (pod_class.sort_keys[0], next(self._numbers), class_key))
        self._own.pop(queue, None)
        return None

    def remaining(self) -> Iterable[ClassKey]:
        """The classes that are not judged yet."""
        return self._class_keys

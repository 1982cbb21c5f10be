"""Which pods wait in which queue: who that admits may change."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_plugin.objects.names import NO_QUEUE, PodUid, QueueName
from scheduler_plugin.objects.tables import Index, enter


class PodsByQueue:
    """Pods, each in one queue or in none."""

    def __init__(self) -> None:
        self._queues: dict[PodUid, QueueName] = {}
        self._pods: Index[QueueName, PodUid] = {}

    def put(self, pod: PodUid, queue: QueueName) -> None:
        """It is in this queue from now on; with "" in none."""
        if before := self._queues.pop(pod, NO_QUEUE):
            enter(self._pods, [before], pod, -1)
        if queue:
            self._queues[pod] = queue
            enter(self._pods, [queue], pod)

    def of(self, queue: QueueName) -> tuple[PodUid, ...]:
        """Those of a queue."""
        return tuple(self._pods.get(queue, ()))

    def count(self, queues: Iterable[QueueName]) -> int:
        """How many there are of these queues together."""
        return sum(len(self._pods.get(queue, ())) for queue in queues)

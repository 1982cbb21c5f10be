"""The pending pods of each queue, to be counted again when the queue's namespaces change."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_plugin.objects.names import NO_QUEUE, PodUid, QueueName
from scheduler_plugin.objects.tables import Index, enter


class PodsByQueue:
    """Pods by queue; each pod is in one queue at most."""

    def __init__(self) -> None:
        self._queues: dict[PodUid, QueueName] = {}
        self._pods: Index[QueueName, PodUid] = {}

    def put(self, pod: PodUid, queue: QueueName) -> None:
        """Move a pod to this queue; "" removes it."""
        if before := self._queues.pop(pod, NO_QUEUE):
            enter(self._pods, [before], pod, -1)
        if queue:
            self._queues[pod] = queue
            enter(self._pods, [queue], pod)

    def of(self, queue: QueueName) -> tuple[PodUid, ...]:
        """The pods of a queue."""
        return tuple(self._pods.get(queue, ()))

    def count(self, queues: Iterable[QueueName]) -> int:
        """The number of pods of these queues together."""
        return sum(len(self._pods.get(queue, ())) for queue in queues)

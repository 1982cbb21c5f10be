"""Which Queues need a write of their status, and its content.

A change of the number of pending pods alone causes no write, unless it lasts (`recount`): a pod
that joins a charged claim is pending for a moment only, and changes no other figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from kube.shapes.reading import JsonObject
from scheduler_plugin.accounting.figures.queue_status import (
    LATE_FIELDS,
    QueueObject,
    StatusInputs,
    queue_status,
)
from scheduler_plugin.accounting.figures.quota_excess import QuotaExcess
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.steps import Steps


class QueueStatuses:
    """The statuses of Queues. Moments are seconds of the monotonic clock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._shares = ShareFigures(world)
        self._excess = QuotaExcess(world)
        # Queues whose number of pending pods is written even if nothing else changed.
        self._recounted: set[QueueName] = set()
        self._plain_until = float("-inf")

    def wanted(self, found: QueueObject, now: datetime, moment: float) -> JsonObject | None:
        """The status to write; None if no write is necessary."""
        name = found.queue.name
        inputs = self._inputs(name, moment)
        status = queue_status(found, self._world, now, inputs)
        if name in self._recounted:
            self._recounted.discard(name)
            return status
        if status is None:
            return None
        as_shown = replace(inputs, waiting=found.status.get("waiting"))
        return status if queue_status(found, self._world, now, as_shown) is not None else None

    def _inputs(self, name: QueueName, moment: float) -> StatusInputs:
        return StatusInputs(
            share=self._shares.of(name, moment),
            waiting=self._waiting_pods(name),
            excess=self._excess.of(name),
            without=LATE_FIELDS if self.is_plain(moment) else frozenset(),
        )

    def _waiting_pods(self, name: QueueName) -> int:
        return self._world.waiting.count(self._world.facts.tree.below(name))

    def leave_out_late_fields(self, until: float) -> None:
        """Omit `LATE_FIELDS` until then: the definition is of an earlier version."""
        self._plain_until = until

    def is_plain(self, moment: float) -> bool:
        """Whether statuses omit the fields that earlier definitions lack."""
        return moment < self._plain_until

    def recount(self, queues: Iterable[QueueObject], moment: float) -> list[QueueName]:
        """The Queues whose status has a wrong number of pending pods; it is written now."""
        if self.is_plain(moment):
            return []
        names = [
            found.queue.name
            for found in queues
            if found.status.get("waiting") != self._waiting_pods(found.queue.name)
        ]
        self._recounted.update(names)
        return names

    def look_for_excess(self, moment: float) -> Steps[set[QueueName]]:
        """Compare quotas with the published devices; returns the Queues whose result changed."""
        return self._excess.steps(moment)

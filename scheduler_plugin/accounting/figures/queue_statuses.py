"""Which Queues have a status that is worth a write, and what it says.

A number of waiting pods alone is worth none, unless it stayed (`recount`): a pod that joins what is
charged already waits for a moment and changes no other figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from kube.shapes.reading import JsonObject
from scheduler_plugin.accounting.figures.queue_status import (
    LATE_FIELDS,
    Besides,
    QueueObject,
    queue_status,
)
from scheduler_plugin.accounting.figures.quota_excess import QuotaExcess
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.steps import Steps


class QueueStatuses:
    """The statuses of one world's Queues. Moments are seconds of the monotonic clock."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._shares = ShareFigures(world)
        self._excess = QuotaExcess(world)
        # Queues with a number of waiting pods to write though nothing else changed.
        self._recounted: set[QueueName] = set()
        self._plain_until = float("-inf")

    def wanted(self, found: QueueObject, now: datetime, moment: float) -> JsonObject | None:
        """The status to write; None where none has to be written."""
        name = found.queue.name
        besides = self._besides(name, moment)
        status = queue_status(found, self._world, now, besides)
        if name in self._recounted:
            self._recounted.discard(name)
            return status
        if status is None:
            return None
        as_shown = replace(besides, waiting=found.status.get("waiting"))
        return status if queue_status(found, self._world, now, as_shown) is not None else None

    def _besides(self, name: QueueName, moment: float) -> Besides:
        return Besides(
            share=self._shares.of(name, moment),
            waiting=self._waiting_pods(name),
            excess=self._excess.of(name),
            without=LATE_FIELDS if self.is_plain(moment) else frozenset(),
        )

    def _waiting_pods(self, name: QueueName) -> int:
        return self._world.waiting.count(self._world.facts.tree.below(name))

    def leave_out_late_fields(self, until: float) -> None:
        """The definition is of an earlier version, and may be upgraded by then."""
        self._plain_until = until

    def is_plain(self, moment: float) -> bool:
        """Whether statuses go without the fields that earlier definitions do not have."""
        return moment < self._plain_until

    def recount(self, queues: Iterable[QueueObject], moment: float) -> list[QueueName]:
        """The Queues that show another number of waiting pods than there is: worth a write now."""
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
        """Compare quotas with the devices that there are; returns what changed by it."""
        return self._excess.steps(moment)

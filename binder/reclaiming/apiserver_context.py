"""The shared context of preemption: writes, world, recorder and clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from binder import apiserver_events
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from kube.events.api import Event
from scheduler_plugin.accounting.api import World


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimContext:
    """The shared context of preemption.

    Attributes:
        record: Takes Events and returns at once.
        clock: The wall-clock time.
        monotonic: The monotonic clock, in seconds.
    """

    writes: ReclaimWrites
    world: World
    record: Callable[[Event], None]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]

    def report(self, event: Event) -> None:
        """Log an Event, and pass it to the recorder."""
        apiserver_events.report(event, self.record)

    def why_not(self) -> str:
        """Why no write may begin now; "" where one may.

        While the plugin is not ready for a Queue, no pod would be bound to what an eviction frees.
        """
        unfenced = self.writes.fence.why_not(self.writes.write_seconds)
        return unfenced or self.world.facts.tree.why_misread()

"""What those need who take something back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from binder import apiserver_events
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from kube.api import Event
from scheduler_plugin.api import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What those need who take something back.

    Attributes:
        record: Takes Events and returns at once.
        clock: The time now.
        monotonic: The seconds of a clock that nobody sets.
    """

    writes: ReclaimWrites
    world: World
    record: Callable[[Event], None]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]

    def tell(self, event: Event) -> None:
        """Log an Event, and have it written."""
        apiserver_events.tell(event, self.record)

    def why_not(self) -> str:
        """Why nothing may be written now; "" where it may."""
        return self.writes.fence.why_not(self.writes.write_seconds)

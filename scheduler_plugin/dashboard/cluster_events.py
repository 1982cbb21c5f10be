"""The Events that schedulers recorded, read from the API server while a page is open.

    API server ──Events of the scheduler plugin──► Recent ──► the page

The API server has no index of Events by their reporter: a list costs it all Events of the cluster.
So they are watched only while a page is open, by one watch in each process.
"""

from __future__ import annotations

import asyncio

from kube.calls.api import ApiClient
from kube.kinds import EVENTS
from kube.shapes.events import Event
from kube.shapes.metadata import NO_METADATA
from kube.shapes.reading import JsonObject, read_as
from kube.stores.api import Store, WatchSettings
from scheduler_plugin.dashboard.recent_events import Recent, recent_event
from scheduler_plugin.objects.names import ADMIT, FIELD_MANAGER

OURS = EVENTS.select(field_selector=f"reportingController={FIELD_MANAGER}")


class ClusterEvents:
    """Adds Events to `Recent`, between `start` and `stop`."""

    def __init__(self, client: ApiClient, recent: Recent) -> None:
        self._client, self.recent = client, recent
        self._store: Store[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Watch the Events, unless they are watched already."""
        if self._task is None:
            # The store keeps no object: `Recent` keeps the last Events.
            settings = WatchSettings(shape=Event)
            self._store = Store(self._client, OURS, self._take, settings=settings)
            self._task = tasks.create_task(self._store.run())

    def stop(self) -> None:
        """End the watch, since no page is open."""
        if self._task is not None:
            self._task.cancel()
            self._store = self._task = None

    async def read(self, seconds: float) -> None:
        """Wait until the Events are known, `seconds` at most."""
        if self._store is not None:
            try:
                async with asyncio.timeout(seconds):
                    await self._store.synced.wait()
            except TimeoutError:
                return

    def why_not(self) -> str:
        """Why the Events are not known, as a sentence; "" if they are."""
        if self._store is None or not self._store.stats.failures_in_a_row:
            return ""
        said = self._store.stats.last_failure.rstrip(".")
        return f"Events could not be read: {said}."

    def _take(self, obj: JsonObject | Event) -> None:
        found = read_as(Event, obj)
        event = recent_event(found)
        # Events of thousands of waiting pods would push out all others; they have their own list.
        if event.action != ADMIT:
            self.recent.add(event, (found.metadata or NO_METADATA).uid or "")

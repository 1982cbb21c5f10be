"""The Events of all replicas, read from the API server while a page is watched.

    this process ──as it records them──┐
    API server ──those of the others───┴──► Recent ──► the page

So a replica that stands by shows what the leader did, and a new leader what the one before did. The
API server has no index of Events by who reported them: a list costs it all Events of the cluster.
So they are followed only while the page is watched, by one watch of each replica.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from driver.api import timestamp
from kube.api import EVENTS, ApiClient, Event, Store, wall_clock
from scheduler_plugin.dashboard.told_events import About, Recent, ToldEvent, stored_event
from scheduler_plugin.objects.names import ADMIT, FIELD_MANAGER

OURS = EVENTS.select(field_selector=f"reportingController={FIELD_MANAGER}")


def told_now(event: Event, now: datetime) -> ToldEvent:
    """An Event that this process records now."""
    about = event.regarding
    return ToldEvent(
        at=timestamp(now),
        type=str(event.type),
        reason=event.reason,
        action=event.action,
        about=About(about.kind, about.namespace, about.name),
        note=event.note,
    )


class ClusterEvents:
    """Adds to the recent Events those that other processes recorded, between `start` and `stop`."""

    def __init__(self, client: ApiClient, recent: Recent, instance: str) -> None:
        """`instance` is this process's name in Events."""
        self._client, self._recent, self._instance = client, recent, instance
        self._began = timestamp(wall_clock())
        self._store: Store[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Follow them, unless that goes on."""
        if self._task is None:
            # It keeps nothing: what is shown is kept, and bounded, by `Recent`.
            self._store = Store(self._client, OURS, self._take)
            self._task = tasks.create_task(self._store.run())

    def stop(self) -> None:
        """No page is watched any more."""
        if self._task is not None:
            self._task.cancel()
            self._store = self._task = None

    async def read(self, seconds: float) -> None:
        """Wait until they are known, for so long at the most."""
        if self._store is not None:
            try:
                async with asyncio.timeout(seconds):
                    await self._store.synced.wait()
            except TimeoutError:
                return

    def why_not(self) -> str:
        """Why those of other replicas are not known, as a sentence; "" where they are."""
        if self._store is None or not self._store.stats.failures_in_a_row:
            return ""
        said = self._store.stats.last_failure.rstrip(".")
        return f"The Events of other replicas could not be read: {said}."

    def _take(self, obj: Any) -> None:
        event = stored_event(obj)
        is_own = obj.get("reportingInstance") == self._instance and event.at >= self._began
        # Thousands of pods that wait would push out all others; the list of those shows them.
        if not is_own and event.action != ADMIT:
            self._recent.add(event, str((obj.get("metadata") or {}).get("uid") or ""))

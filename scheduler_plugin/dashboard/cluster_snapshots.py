"""Snapshots of the cluster's world: one for all viewers, and none while there are no viewers.

A snapshot is made in short pieces, so that viewers are answered in between. After each snapshot
there is a pause of twice its time, so that a busy large cluster takes at most a third of a CPU.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.dashboard.cluster_events import ClusterEvents
from scheduler_plugin.dashboard.history import STEP_SECONDS, History
from scheduler_plugin.dashboard.lines import (
    claim_lines,
    device_lines,
    queue_lines,
    waiting_lines,
)
from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.recent_events import Recent
from scheduler_plugin.dashboard.snapshots import Line, Snapshot
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.viewing.free_devices import FreeDevices
from scheduler_plugin.viewing.queue_rows import queue_rows

T = TypeVar("T")

PIECE_SECONDS = 0.005
PAUSE_FACTOR = 2
LEAST_SECONDS = 1.0
"""The shortest pause between two snapshots, and so the usual delay of a change."""

MOST_SECONDS = 5.0
"""The age at which a snapshot is made again without a reported change: slots and shares change
without one."""

WATCHED_SECONDS = 15.0
"""How long a viewer counts after a request without a stream."""

EVENTS_SECONDS = 2.0
"""How long the first snapshot waits for Events."""

FIRST_SECONDS = 10.0
"""How long the first request waits for a snapshot."""


class Snapshots:
    """The latest snapshot, while `run` runs; run it once the world is in sync."""

    def __init__(
        self,
        world: WorldView,
        recent: Recent,
        devices: OfferedDevices | None = None,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
        clock: Callable[[], float] = time.time,  # noqa: TID251
    ) -> None:
        """`devices` are the devices that slices offer, with their taints."""
        self.history = History()
        self.latest: Snapshot | None = None
        # The devices of the latest snapshot.
        self.free: FreeDevices | None = None
        self.cluster_events: ClusterEvents | None = None
        """Watches Events for `recent` while a page is open."""
        self._world, self._recent, self._devices = world, recent, devices
        self._monotonic, self._clock = monotonic, clock
        self._shares = ShareFigures(world)
        # The first number differs from those of other replicas and of earlier processes.
        self._number = int(clock() * 1000)
        self._listening = 0
        self._asked_at = float("-inf")
        self._looked_at = float("-inf")
        self._next_look_at = float("-inf")
        self._events = 0
        self._is_old = asyncio.Event()
        self._looked = asyncio.Condition()

    def changed(self, _: object = None) -> None:
        """Note a change; it is a listener of the world."""
        self._is_old.set()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count a viewer with a stream while the context lasts."""
        self._listening += 1
        self._is_old.set()
        try:
            yield
        finally:
            self._listening -= 1
            self._asked_at = self._monotonic()

    async def now(self) -> Snapshot | None:
        """The latest snapshot; the first request waits for one, and gets None after a while."""
        self._asked_at = self._monotonic()
        if self.latest is None:
            await self.after(0, FIRST_SECONDS)
        return self.latest

    async def after(self, number: int, seconds: float) -> bool:
        """Wait for a snapshot with a higher number; returns False after `seconds`."""
        self._asked_at = self._monotonic()
        self._is_old.set()

        def came() -> bool:
            return self.latest is not None and self.latest.number > number

        async with self._looked:
            try:
                async with asyncio.timeout(seconds):
                    await self._looked.wait_for(came)
            except TimeoutError:
                return False
        return True

    async def run(self) -> NoReturn:
        """Make snapshots and samples until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sample())
            while True:
                await self._step(tasks)
        raise AssertionError("samples are taken until cancelled")

    async def _step(self, tasks: asyncio.TaskGroup) -> None:
        if not self._is_watched():
            self._end_events()
            self.latest = None
            self._is_old.clear()
            await self._is_old.wait()
            if not self._is_watched():  # The world changed, and there is no viewer.
                await asyncio.sleep(0)
            return
        now = self._monotonic()
        if now < self._next_look_at:
            await asyncio.sleep(self._next_look_at - now)
            return
        await self._until_old()
        await self._begin_events(tasks)
        await self._look()

    async def _begin_events(self, tasks: asyncio.TaskGroup) -> None:
        """Watch Events; the first snapshot waits for them, since an empty list would be wrong."""
        if self.cluster_events is not None:
            self.cluster_events.start(tasks)
            if self.latest is None:
                await self.cluster_events.read(EVENTS_SECONDS)

    def _end_events(self) -> None:
        if self.cluster_events is not None:
            self.cluster_events.stop()

    def _is_watched(self) -> bool:
        return bool(self._listening) or self._monotonic() - self._asked_at < WATCHED_SECONDS

    async def _until_old(self) -> None:
        """Wait until the world or the Events have changed, or the snapshot is old."""
        if self._recent.count != self._events or self.latest is None:
            return
        try:
            async with asyncio.timeout(self._looked_at + MOST_SECONDS - self._monotonic()):
                await self._is_old.wait()
        except TimeoutError:
            return

    async def _look(self) -> None:
        self._is_old.clear()
        self._events = self._recent.count
        began = self._monotonic()
        lines: dict[Part, list[Line]] = {part: [] for part in Part}
        worked = await self._draw(
            self._lines(began), lambda found: lines[found[0]].append(found[1])
        )
        if self._is_new(lines):
            self._number += 1
            self.latest = Snapshot(self._number, lines)
        self._looked_at = self._monotonic()
        self._next_look_at = self._looked_at + max(LEAST_SECONDS, PAUSE_FACTOR * worked)
        async with self._looked:
            self._looked.notify_all()

    def _is_new(self, lines: dict[Part, list[Line]]) -> bool:
        return self.latest is None or self.latest.lines != lines

    def _lines(self, moment: float) -> Iterator[tuple[Part, Line] | None]:
        sources = {
            Part.QUEUES: queue_lines(self._world, lambda name: self._shares.of(name, moment)),
            Part.WAITING: waiting_lines(self._world, self._note_free),
            Part.CLAIMS: claim_lines(self._world),
            Part.DEVICES: device_lines(self._world, self._devices),
            Part.EVENTS: self._recent.lines(),
        }
        for part, source in sources.items():
            for line in source:
                yield (part, line) if line is not None else None

    def _note_free(self, free: FreeDevices) -> None:
        self.free = free

    async def _sample(self) -> NoReturn:
        while True:
            self.history.begin(self._clock())
            await self._draw(
                queue_rows(self._world),
                lambda row: self.history.put(
                    (row.queue, row.device_class), row.usage, row.requested
                ),
            )
            await asyncio.sleep(STEP_SECONDS)

    async def _draw(self, source: Iterator[T | None], take: Callable[[T], None]) -> float:
        """Exhaust `source` in short pieces, between other tasks; returns the seconds of work."""
        worked, began = 0.0, self._monotonic()
        for found in source:
            if found is not None:
                take(found)
            took = self._monotonic() - began
            if took > PIECE_SECONDS:
                worked += took
                await asyncio.sleep(0)
                began = self._monotonic()
        return worked + self._monotonic() - began

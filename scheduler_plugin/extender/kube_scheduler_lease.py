"""Follows kube-scheduler's Lease, so that this process writes only while it may.

The Lease is read every second. A kube-scheduler that calls while nothing may be written may have
acquired the Lease a moment ago. Then the Lease is read at once and the call waits (`await_lease`):
after a failed call kube-scheduler would not try its pods for a second or more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from kube.calls.api import ApiClient, ApiError
from kube.kinds import LEASES
from kube.leases.api import LeaseView, LeaseWatcher
from kube.objects import JsonObject
from kube.shapes.leases import parse_lease
from kube.shapes.times import read_time
from kube.wall_clock import wall_clock
from scheduler_plugin.extender.leadership import (
    NEVER,
    Leadership,
    LeaseObservation,
    LeaseRecord,
    caught_up,
    needs_record,
    needs_to_catch_up,
    see,
    why_not,
)

logger = logging.getLogger(__name__)

CATCH_UP_SECONDS = 30.0

SHORTEST_SECONDS = 8.0
"""The shortest Lease duration that leaves time for all writes: some may take 5 s, and a renewal may
be seen 2 s late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Which Lease is followed.

    Attributes:
        identity: Host name of the kube-scheduler beside this process.
        period_seconds: How often the Lease is read; the delay of the first write after a change.
    """

    namespace: str
    name: str
    identity: str
    period_seconds: float = 1.0

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class KubeSchedulerLease:
    """The Lease of the kube-scheduler beside this process; see `bindings.Fence`."""

    def __init__(
        self,
        client: ApiClient,
        settings: LeaseSettings,
        stores_catch_up: Callable[[float, float], Awaitable[bool]],
    ) -> None:
        """`stores_catch_up(moment, seconds)` waits until the stores are as new as the moment.

        It returns False if that took too long.
        """
        self._client = client
        self._settings = settings
        self._stores_catch_up = stores_catch_up
        self._watcher = LeaseWatcher(
            client, settings.name, settings.namespace, timeout_seconds=5 * settings.period_seconds
        )
        self._leadership = Leadership(identity=settings.identity)
        self._looked = asyncio.Event()
        self._requested = asyncio.Event()
        self._changed = asyncio.Event()
        self._reported = ""

    def why_not(self, seconds: float) -> str:
        """Why a write of that many seconds may not begin now, as a sentence; "" if it may."""
        return why_not(self._leadership, seconds, _now(), str(self._settings))

    def why_not_ready(self) -> str:
        """Why the kube-scheduler beside this process is not served; "" if it is."""
        return self.why_not(0.0)

    async def await_lease(self, seconds: float) -> None:
        """Wait until the kube-scheduler beside this process is served, `seconds` at most."""
        if not self.why_not_ready():
            return
        self._requested.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.why_not_ready():
                    await self._changed.wait()

    async def run(self) -> NoReturn:
        """Follow the Lease until cancelled; failures are logged and retried without a limit."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._catch_up_loop())
        raise AssertionError("the Lease is followed until cancelled")

    async def _follow(self) -> NoReturn:
        while True:
            self._requested.clear()
            await self._look()
            self._report_change()
            self._looked.set()
            await self._pause()

    async def _pause(self) -> None:
        """Wait until the next look: a call that waits or an earlier holder's end shortens it.

        A call that waits ends the pause once; after that the usual period is enough.
        """
        seconds = self._settings.period_seconds
        if self.why_not_ready():
            left = self._leadership.others_over - _now()
            seconds = min(seconds, left) if left > 0 else seconds
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._requested.wait()

    async def _look(self) -> None:
        await self._watcher.poll()
        now = _now()
        observation = _observation(self._watcher.view(), now)
        record = None
        if needs_record(self._leadership, observation, now):
            record = await self._read_record()
            if record is None or record.holder != observation.holder:
                return  # The next look brings both; until then this process writes less, not more.
            self._warn_of(record.duration)
        self._leadership = see(self._leadership, observation, _now(), record)

    async def _read_record(self) -> LeaseRecord | None:
        path = LEASES.at(self._settings.name, self._settings.namespace)
        try:
            seconds = 5 * self._settings.period_seconds
            lease = await self._client.get(path, timeout_seconds=seconds)
        except ApiError as error:
            logger.warning("Lease not read lease=%s error=%s", self._settings, error)
            return None
        return _record_of(lease, _now(), wall_clock())

    async def _catch_up_loop(self) -> NoReturn:
        while True:
            await self._looked.wait()
            self._looked.clear()
            if needs_to_catch_up(self._leadership, _now()):
                await self._catch_up(self._leadership.others_over)
                self._report_change()

    async def _catch_up(self, moment: float) -> None:
        try:
            if await self._stores_catch_up(moment, CATCH_UP_SECONDS):
                self._leadership = caught_up(self._leadership, moment)
        except ApiError as error:
            logger.warning("stores not caught up with the API server yet: %s", error)

    def _warn_of(self, duration: float) -> None:
        if duration < SHORTEST_SECONDS:
            logger.warning(
                "Lease too short for some writes lease=%s seconds=%g at_least=%g",
                self._settings,
                duration,
                SHORTEST_SECONDS,
            )

    def _report_change(self) -> None:
        """Wake the calls that wait for a change, and log each change once.

        A sentence that counts seconds is logged once, too.
        """
        self._changed.set()
        self._changed.clear()
        why = self.why_not_ready()
        kind = why.partition(" for ")[0]
        if kind == self._reported:
            return
        self._reported = kind
        if why:
            logger.warning("not serving: %s", why)
        else:
            logger.info("serving holder=%s", self._leadership.last.holder)


def _observation(view: LeaseView, now: float) -> LeaseObservation:
    until = now + view.at_least_seconds if view.at_least_seconds > 0 else NEVER
    return LeaseObservation(view.holder, until, now + view.at_most_seconds)


def _record_of(lease: JsonObject, now: float, wall_now: datetime) -> LeaseRecord:
    """How the holder acquired the Lease; a time that cannot be read counts as now, the latest."""
    found = parse_lease(lease)
    age = (wall_now - (read_time(found.acquire_time) or wall_now)).total_seconds()
    return LeaseRecord(
        holder=found.holder,
        transitions=found.transitions,
        duration=found.duration_seconds,
        acquired=now - age,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()

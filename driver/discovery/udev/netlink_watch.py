"""Watches the devices of this node for any number of searches.

    netlink ──paths──► worker thread: libudev, rules ──changed searches──► subscriptions

An event is only a hint where to look: what a device is like is read afterwards, so that events may
come twice, late, or for a device that is gone again. A scan is a hint for every path at once and
goes on in small steps beside the events. Hence nothing need be merged and no order matters, but
one: the socket is open before the first scan begins.

Beside udevd the kernel's events are no hints, since they come before udevd's rules have been
applied; they tell whether udevd's database is in doubt, see `doubts`.

libudev is used by one thread only, which also keeps slow reads of sysfs off the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from driver.discovery.udev.doubts import Doubts
from driver.discovery.udev.handler_subscriptions import Subscription
from driver.discovery.udev.netlink import EventsLostError, UeventSocket, udevd_source
from driver.discovery.udev.sysfs import Looker
from driver.discovery.udev.uevents import Source, Uevent, sys_name_of

logger = logging.getLogger(__name__)

STEP = 64
"""Paths looked at before others get their turn; ten milliseconds or so."""

_ANSWER_SECONDS = 1.0
"""How soon it is seen whether udevd is there, when it has not answered an event."""

_FIRST_RETRY_SECONDS = 0.5
_LAST_RETRY_SECONDS = 30.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UdevSettings:
    """Settings of the udev handler.

    Attributes:
        rescan_interval: How often all devices are read anew.
        source_interval: How often it is seen whether udevd was started or ended.
        receive_buffer_bytes: Room for events that are not read yet. The kernel charges it to the
            process as far as it is filled; when it is full, events are lost and a scan follows.
        source: Tells who is to be listened to.
    """

    rescan_interval: timedelta = timedelta(seconds=60)
    source_interval: timedelta = timedelta(seconds=5)
    receive_buffer_bytes: int = 16 * 1024 * 1024
    source: Callable[[], Source] = udevd_source


class Scan:
    """Paths that are still to be looked at for some subscriptions; None before they are listed."""

    def __init__(self, subscriptions: Iterable[Subscription]) -> None:
        self.subscriptions = tuple(subscriptions)
        self.paths: deque[str] | None = None


class Watch:
    """The netlink socket, the worker thread, and what they still have to do."""

    def __init__(self, settings: UdevSettings, subscriptions: set[Subscription]) -> None:
        self.problem: str | None = None
        self._settings = settings
        self._subscriptions = subscriptions
        self._paths: dict[str, None] = {}
        self._scans: deque[Scan] = deque()
        self._doubts = Doubts()
        self._source = Source.KERNEL
        self._is_missing_events = True
        self._broken: OSError | None = None
        self._wake = asyncio.Event()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="udev")

    def scan(self, subscriptions: Iterable[Subscription]) -> None:
        """Look at all devices for these subscriptions, after other scans."""
        self._scans.append(Scan(subscriptions))
        self._wake.set()

    def scan_anew(self) -> None:
        """Look at all devices for all, from the beginning if a scan is under way."""
        self._scans.clear()
        self.scan(self._subscriptions)

    async def run(self) -> None:
        """Watch until cancelled; failures are told in `problem` and tried again."""
        failures = 0
        try:
            while True:
                try:
                    await self._follow()
                except (OSError, ImportError) as error:
                    failures = 1 if self.problem is None else failures + 1
                    self._report(f"Devices cannot be discovered: {error}.")
                    doubled = _FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10)
                    await asyncio.sleep(min(doubled, _LAST_RETRY_SECONDS))
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def _follow(self) -> None:
        """Hear all events, until the socket breaks."""
        loop = asyncio.get_running_loop()
        socket = UeventSocket(self._settings.receive_buffer_bytes)
        self._broken, self._is_missing_events = None, True
        try:
            loop.add_reader(socket, self.receive, socket)
            await self._see_source()
            while True:
                await self._follow_source()
        finally:
            loop.remove_reader(socket)
            socket.close()

    async def _follow_source(self) -> None:
        """Look where this source says, until it is no longer the right one."""
        loop, source = asyncio.get_running_loop(), self._source
        is_udevd = source is Source.UDEVD
        looker = await self._in_thread(lambda: Looker(settles=is_udevd, doubts=self._doubts))
        logger.info("listening to device events: source=%s", source.name.lower())
        while True:
            self.scan_anew()
            rescan_at = loop.time() + self._settings.rescan_interval.total_seconds()
            while loop.time() < rescan_at:
                await self._work_until(rescan_at, looker)
                await self._see_source()
                if self._source is not source:
                    return

    async def _see_source(self) -> None:
        """See whether udevd lives, and what that says of its database."""
        is_missing_events, self._is_missing_events = self._is_missing_events, False
        self._source = await self._in_thread(self._settings.source)
        udevd_lives = self._source is Source.UDEVD
        now = asyncio.get_running_loop().time()
        if is_missing_events:
            self._doubts.begin(now, udevd_lives=udevd_lives)
            self.scan_anew()
        self._paths.update(dict.fromkeys(self._doubts.look(now, udevd_lives=udevd_lives)))

    async def _work_until(self, rescan_at: float, looker: Looker) -> None:
        """Until then, or until it is time to see whether this is still the right source."""
        clock = asyncio.get_running_loop().time
        deadline = min(rescan_at, clock() + self._settings.source_interval.total_seconds())
        while self._paths or self._scans or await self._is_woken_before(deadline):
            if self._is_missing_events:
                return
            if self._doubts.is_waiting:
                deadline = min(deadline, clock() + _ANSWER_SECONDS)
            await self._step(looker)

    def receive(self, socket: UeventSocket) -> None:
        try:
            events = socket.receive()
        except EventsLostError:
            logger.warning("device events were lost, scanning all devices")
            self._is_missing_events = True
            self._wake.set()
            return
        except OSError as error:
            self._broken = error
            self._wake.set()
            return
        for event in events:
            self._hear(event)

    def _hear(self, event: Uevent) -> None:
        self._doubts.hear(event, asyncio.get_running_loop().time())
        if event.source is Source.KERNEL and self._source is Source.UDEVD:
            self._wake.set()  # It is to be seen whether the answer comes.
            return
        self._note(event.path, event.subsystem)
        if event.old_path is not None:
            self._note_move(event.old_path, event.subsystem)

    def _note(self, path: str, subsystem: str) -> None:
        name = sys_name_of(path)
        if any(each.search.may_select(subsystem, name) for each in self._subscriptions):
            self._paths[path] = None
            self._wake.set()

    def _note_move(self, old_path: str, subsystem: str) -> None:
        self._note(old_path, subsystem)
        # What is below a device moves with it, without events of its own.
        if any(each.search.has_below(old_path) for each in self._subscriptions):
            self.scan_anew()

    async def _is_woken_before(self, deadline: float) -> bool:
        try:
            async with asyncio.timeout_at(deadline):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        if self._broken is not None:
            raise self._broken
        return True

    async def _step(self, looker: Looker) -> None:
        if self._paths:
            paths = list(self._paths)[:STEP]
            for path in paths:
                del self._paths[path]
            await self._look(looker, paths, tuple(self._subscriptions), told=True)
        if self._scans:
            await self._scan_step(looker, self._scans[0])

    async def _scan_step(self, looker: Looker, scan: Scan) -> None:
        if scan.paths is None:
            scan.paths = await self._in_thread(lambda: looker.paths(scan.subscriptions))
        paths = [scan.paths.popleft() for _ in range(min(STEP, len(scan.paths)))]
        await self._look(looker, paths, scan.subscriptions, told=False)
        if scan.paths or not self._scans or self._scans[0] is not scan:
            return
        self._scans.popleft()
        self._report(None)
        for subscription in scan.subscriptions:
            if not subscription.is_heard:
                subscription.offer()

    async def _look(
        self,
        looker: Looker,
        paths: Sequence[str],
        subscriptions: Sequence[Subscription],
        *,
        told: bool,
    ) -> None:
        changed = await self._in_thread(lambda: looker.look(paths, subscriptions, told=told))
        for subscription in changed:
            if subscription.is_heard:
                subscription.offer()

    def _report(self, problem: str | None) -> None:
        if problem is not None and problem != self.problem:
            logger.warning("devices cannot be discovered: handler=udev problem=%s", problem)
        elif problem is None and self.problem is not None:
            logger.info("devices are discovered again: handler=udev")
        self.problem = problem

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, function)

"""Watches the devices of this node for any number of searches.

    netlink ──paths──► worker thread: libudev, rules ──changed searches──► subscriptions

An event is only a hint which device to read: its state is read afterwards. So events may come
twice, late, or for a device that is absent again. A scan is a hint for every path, and runs in
small steps beside the events. So nothing needs to be merged, and only one order matters: the socket
is open before the first scan begins.

If udevd runs, the kernel's events are no hints, because they come before udevd has applied its
rules. They then tell whether udevd's database is in doubt, see `doubts`.

One thread alone uses libudev; so slow reads of sysfs do not block the event loop.
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
"""Devices that one step reads, which takes about 10 ms; then events are handled."""

_ANSWER_SECONDS = 1.0
"""How soon to check whether udevd runs, after an event that it has not answered."""

_FIRST_RETRY_SECONDS = 0.5
_LAST_RETRY_SECONDS = 30.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UdevSettings:
    """Settings of the udev handler.

    Attributes:
        rescan_interval: How often all devices are read anew.
        source_interval: How often to check whether udevd was started or ended.
        receive_buffer_bytes: Buffer for events that are not read yet. The kernel charges the
            filled part to the process. When it is full, events are lost and a scan follows.
        source: Returns the source whose events to follow.
    """

    rescan_interval: timedelta = timedelta(seconds=60)
    source_interval: timedelta = timedelta(seconds=5)
    receive_buffer_bytes: int = 16 * 1024 * 1024
    source: Callable[[], Source] = udevd_source


class Scan:
    """The paths that a scan has yet to read for its subscriptions; None before it lists them."""

    def __init__(self, subscriptions: Iterable[Subscription]) -> None:
        self.subscriptions = tuple(subscriptions)
        self.paths: deque[str] | None = None


class Watch:
    """The netlink socket, the worker thread, and their pending work."""

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
        """Read all devices for these subscriptions, after other scans."""
        self._scans.append(Scan(subscriptions))
        self._wake.set()

    def scan_anew(self) -> None:
        """Read all devices for all subscriptions; a running scan starts anew."""
        self._scans.clear()
        self.scan(self._subscriptions)

    async def run(self) -> None:
        """Watch until cancelled; a failure is set as `problem`, and the watch retries."""
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
        """Receive all events, until the socket fails."""
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
        """Follow the events of this source, until another one is the right one."""
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
        """Check whether udevd lives, and update which devices are in doubt."""
        is_missing_events, self._is_missing_events = self._is_missing_events, False
        self._source = await self._in_thread(self._settings.source)
        udevd_lives = self._source is Source.UDEVD
        now = asyncio.get_running_loop().time()
        if is_missing_events:
            self._doubts.begin(now, udevd_lives=udevd_lives)
            self.scan_anew()
        self._paths.update(dict.fromkeys(self._doubts.look(now, udevd_lives=udevd_lives)))

    async def _work_until(self, rescan_at: float, looker: Looker) -> None:
        """Work until then, or until the next check of the source."""
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
            self._wake.set()  # The loop checks whether the answer comes.
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
        # Devices below a device move with it, without events of their own.
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
            await self._look(looker, paths, tuple(self._subscriptions), by_event=True)
        if self._scans:
            await self._scan_step(looker, self._scans[0])

    async def _scan_step(self, looker: Looker, scan: Scan) -> None:
        if scan.paths is None:
            scan.paths = await self._in_thread(lambda: looker.paths(scan.subscriptions))
        paths = [scan.paths.popleft() for _ in range(min(STEP, len(scan.paths)))]
        await self._look(looker, paths, scan.subscriptions, by_event=False)
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
        by_event: bool,
    ) -> None:
        changed = await self._in_thread(
            lambda: looker.look(paths, subscriptions, by_event=by_event)
        )
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

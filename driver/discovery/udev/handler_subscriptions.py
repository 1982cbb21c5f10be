"""Readers of the udev handler."""

from __future__ import annotations

import asyncio
import logging

from driver.devices import Device
from driver.discovery.udev.details import UdevDetails
from driver.discovery.udev.devices import Search
from driver.discovery.udev.doubts import withheld_sentence
from driver.discovery.udev.passthrough import NO_PASSTHROUGH, Passthrough

logger = logging.getLogger(__name__)


class Subscription:
    """A search and its reader, which gets the newest list and may skip older ones.

    Attributes:
        is_heard: Whether all devices were read once, so that the list is complete.
        withheld: Paths of the devices that the list omits, because they are in doubt.
    """

    def __init__(self, details: UdevDetails, passthrough: Passthrough = NO_PASSTHROUGH) -> None:
        self.search = Search(details, passthrough)
        self.is_heard = False
        self.withheld: tuple[str, ...] = ()
        self._devices: tuple[Device, ...] = ()
        self._shown: tuple[Device, ...] | None = None
        self._unnamed: frozenset[str] = frozenset()
        self._error: BaseException | None = None
        self._news = asyncio.Event()
        self._again: asyncio.TimerHandle | None = None

    def offer(self) -> None:
        """Give the reader the devices that the search has found."""
        loop = asyncio.get_running_loop()
        self.is_heard = True
        self._devices = self.search.devices(loop.time())
        self._log_unnamed()
        self._log_withheld()
        self._news.set()
        if self._again is not None:
            self._again.cancel()
        due = self.search.due
        self._again = None if due is None else loop.call_at(due, self.offer)

    def close(self) -> None:
        """Stop offering lists."""
        if self._again is not None:
            self._again.cancel()

    def _log_unnamed(self) -> None:
        unnamed = frozenset(self.search.unnamed())
        for path in sorted(unnamed - self._unnamed):
            logger.warning("device has no unique identity, so its id is its path: %s", path)
        self._unnamed = unnamed

    def _log_withheld(self) -> None:
        before, self.withheld = self.withheld, self.search.withheld
        if (sentence := withheld_sentence(self.withheld)) and set(self.withheld) != set(before):
            logger.warning("devices are withheld: %s", sentence)

    def fail(self, error: BaseException) -> None:
        """Give the reader an error instead of further lists."""
        self._error = error
        self._news.set()

    async def next_list(self) -> tuple[Device, ...]:
        """Wait for the next list that differs from the one before. Raises what `fail` got."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self._error is not None:
                raise self._error
            if self._devices != self._shown:
                self._shown = self._devices
                return self._devices

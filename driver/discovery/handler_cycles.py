"""Discovery cycles of handlers that poll, because the network sends no events of changes."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from datetime import timedelta
from typing import TypeAlias

from driver.devices import Device
from driver.discovery.reach import SENDERS_ONLY, Reach

MOST_REASONS = 8
"""Reasons that one sentence or one log burst has at most."""

_JITTER = 0.1
"""Part of the interval by which a pause varies, so that nodes do not poll in step."""

DeviceLists: TypeAlias = AsyncGenerator[tuple[Device, ...], None]
Cycle: TypeAlias = Callable[[tuple[Device, ...] | None], DeviceLists]


class Reasons:
    """Why devices were not discovered, for each followed Configuration."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._sentences: dict[object, tuple[str, ...]] = {}

    @property
    def problem(self) -> str | None:
        """All reasons in a few sentences; None if there is no reason."""
        every = sorted({sentence for some in self._sentences.values() for sentence in some})
        more = len(every) - MOST_REASONS
        sentences = " ".join(every[:MOST_REASONS])
        return (f"{sentences} And {more} more." if more > 0 else sentences) or None

    def record(self, follower: object, sentences: Iterable[str]) -> None:
        """Record the reasons of a follower's last cycle, and log those that are new."""
        now = tuple(sorted(set(sentences)))
        before = self._sentences.get(follower, ())
        self._sentences[follower] = now
        new = [sentence for sentence in now if sentence not in before]
        for sentence in new[:MOST_REASONS]:
            self._logger.warning("not discovered: %s", sentence)
        if len(new) > MOST_REASONS:
            self._logger.warning("not discovered: %d more", len(new) - MOST_REASONS)

    def forget(self, follower: object) -> None:
        """Drop the reasons of a follower that ended."""
        self._sentences.pop(follower, None)


async def changes(cycle: Cycle, interval: timedelta) -> DeviceLists:
    """Run one discovery cycle after another; yield the first result and each changed one.

    Args:
        cycle: One cycle. It gets the devices of the cycles before, or None if no cycle has ended
            yet. It yields sorted lists: the devices known so far, and last all devices. It yields
            nothing while the devices cannot be known.
        interval: From the start of one cycle to the start of the next, see `pause`.
    """
    clock = asyncio.get_running_loop().time
    shown: tuple[Device, ...] | None = None
    while True:
        began = clock()
        async with aclosing(cycle(shown)) as lists:
            async for found in lists:
                if found != shown:
                    shown = found
                    yield found
        await asyncio.sleep(pause(interval.total_seconds(), clock() - began))


def pause(interval: float, took: float) -> float:
    """Seconds to wait after a cycle that took `took` seconds.

    A server that never answers makes a cycle long, but must not make cycles rare. So the wait gets
    shorter after a long cycle, down to half of the interval.
    """
    return max(interval / 2, interval - took) * random.uniform(1 - _JITTER, 1 + _JITTER)


class NetworkHandler:
    """Base of the handlers that poll the network for devices, which several nodes may see.

    Args:
        interval: Between the starts of two cycles for the same Configuration.
        reach: Which addresses are contacted.
    """

    def __init__(self, interval: timedelta, reach: Reach = SENDERS_ONLY) -> None:
        self._interval = interval
        self._reach = reach
        self._reasons = Reasons(logging.getLogger(type(self).__module__))

    @property
    def problem(self) -> str | None:
        return self._reasons.problem

    def is_shared(self, _: object) -> bool:
        """Always, as Akri has it."""
        return True

    async def _changes(self, follower: object, cycle: Cycle) -> DeviceLists:
        """Yield what the cycles of a follower find; drop its reasons when they end."""
        try:
            async with aclosing(changes(cycle, self._interval)) as answers:
                async for found in answers:
                    yield found
        finally:
            self._reasons.forget(follower)

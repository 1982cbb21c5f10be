"""Turns of handlers that must ask again and again, since nobody tells them of changes."""

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
"""So many are told at a time."""

_JITTER = 0.1
"""Of the interval, up and down, so that nodes do not ask in step."""

DeviceLists: TypeAlias = AsyncGenerator[tuple[Device, ...], None]
Look: TypeAlias = Callable[[tuple[Device, ...] | None], DeviceLists]


class Reasons:
    """Why something was not discovered, of every Configuration that is followed."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._sentences: dict[object, tuple[str, ...]] = {}

    @property
    def problem(self) -> str | None:
        """All of them in a few sentences; None for none."""
        every = sorted({sentence for some in self._sentences.values() for sentence in some})
        more = len(every) - MOST_REASONS
        told = " ".join(every[:MOST_REASONS])
        return (f"{told} And {more} more." if more > 0 else told) or None

    def tell(self, follower: object, sentences: Iterable[str]) -> None:
        """These are the reasons of one follower's last turn; new ones are logged."""
        now = tuple(sorted(set(sentences)))
        before = self._sentences.get(follower, ())
        self._sentences[follower] = now
        new = [sentence for sentence in now if sentence not in before]
        for sentence in new[:MOST_REASONS]:
            self._logger.warning("not discovered: %s", sentence)
        if len(new) > MOST_REASONS:
            self._logger.warning("not discovered: %d more", len(new) - MOST_REASONS)

    def forget(self, follower: object) -> None:
        """The follower follows no more."""
        self._sentences.pop(follower, None)


async def changes(look: Look, interval: timedelta) -> DeviceLists:
    """Look again and again; yield what is found first, and whenever it is something else.

    Args:
        look: Yields all devices, sorted, as far as they are known by then, and last the whole;
            nothing while they cannot be known. It gets what the looks before found, None where
            there was none that ended.
        interval: Between the beginnings of two looks, or a little more, see `pause`.
    """
    clock = asyncio.get_running_loop().time
    shown: tuple[Device, ...] | None = None
    while True:
        began = clock()
        async with aclosing(look(shown)) as lists:
            async for found in lists:
                if found != shown:
                    shown = found
                    yield found
        await asyncio.sleep(pause(interval.total_seconds(), clock() - began))


def pause(interval: float, took: float) -> float:
    """How long to rest after a look that took so long, in seconds.

    A server that never answers makes a look long, and shall not make looks rare: the rest becomes
    shorter, by half of the interval at the most.
    """
    return max(interval / 2, interval - took) * random.uniform(1 - _JITTER, 1 + _JITTER)


class NetworkHandler:
    """What handlers share that ask the network for devices which several nodes may see.

    Args:
        interval: Between two looks for the same Configuration.
        reach: Which addresses are asked.
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

    async def _changes(self, follower: object, look: Look) -> DeviceLists:
        """What the looks of a follower find; his reasons end with them."""
        try:
            async with aclosing(changes(look, self._interval)) as answers:
                async for found in answers:
                    yield found
        finally:
            self._reasons.forget(follower)

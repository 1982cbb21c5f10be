"""Turns of handlers that must ask again and again, since nobody tells them of changes."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from datetime import timedelta

from driver.devices import Device

MOST_REASONS = 8
"""So many are told at a time."""

REDISCOVERY_INTERVAL = timedelta(seconds=10)
"""As Akri's."""

_JITTER = 0.1
"""Of the interval, up and down, so that nodes do not ask in step."""


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


async def changes(
    look: Callable[[], Awaitable[tuple[Device, ...] | None]], interval: timedelta
) -> AsyncGenerator[tuple[Device, ...], None]:
    """Look again and again; yield what is found first, and whenever it is something else.

    Args:
        look: Finds all devices, sorted; None while they cannot be known.
        interval: Between the end of one look and the next.
    """
    shown: tuple[Device, ...] | None = None
    while True:
        found = await look()
        if found is not None and found != shown:
            shown = found
            yield found
        seconds = interval.total_seconds()
        await asyncio.sleep(seconds * random.uniform(1 - _JITTER, 1 + _JITTER))

"""How many pods may be about to be bound: beyond that, Filter is answered later.

kube-scheduler asks about one pod at a time, and does not wait for what is written for those before:
their reservations and bindings pile up. Where the API server is slower than that, hundreds of
writes run out of their time, and pods that share a claim get in each other's way.

Only calls of Bind count, whose writes are ours. A pod that passed Filter may wait for its volume,
or for a condition of its device, for as long as that takes: the API server has no work with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_SECONDS = 0.2
"""What an answer is put off by at most, whatever is known: kube-scheduler must not stand still."""


class Turns:
    """The calls of Bind that are under way."""

    def __init__(self, most: int) -> None:
        """`most` should be more than an API server works on at one time."""
        self._most = most
        self._count = 0
        self._ended = asyncio.Event()

    @property
    def has_room(self) -> bool:
        """Whether one more pod may be on its way."""
        return self._count < self._most

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A pod is being bound."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self._ended.set()

    async def next(self) -> None:
        """Wait until there is room for one more, but not for long."""
        if self.has_room:
            return
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                while not self.has_room:
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            return

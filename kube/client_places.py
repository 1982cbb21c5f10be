"""Places that clients share: few for all, and so many for each that no client has them all.

A semaphore alone is taken in the order in which it is asked for: whoever asks a thousand times
makes everybody wait for a thousand turns. Here a client waits among its own for a place of its
own first, so that at most these few of each client stand in the line of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K", bound=Hashable)


class ClientPlaces(Generic[K]):
    """Places for as long as somebody holds or awaits one."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Provide places.

        Args:
            most: For all clients together.
            most_of_one: For each client; less than `most`, or one may have them all.
        """
        self._all = asyncio.Semaphore(most)
        self._most_of_one = most_of_one
        # What nobody holds or awaits any more is gone by itself.
        self._of_one: WeakValueDictionary[K, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, client: K) -> AsyncIterator[None]:
        """Hold a place, once there is one for this client."""
        own = self._of_one.setdefault(client, asyncio.Semaphore(self._most_of_one))
        async with own, self._all:
            yield

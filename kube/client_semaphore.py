"""A semaphore that clients share fairly: a limit for all clients, and a lower one for each.

A plain semaphore serves callers in their order: a client with a thousand requests delays all
others by a thousand requests. Here a caller first acquires a place of its own client, so that only
a few requests of each client wait for the places of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K", bound=Hashable)


class ClientSemaphore(Generic[K]):
    """Places of all clients. A client's state is dropped once it holds and awaits none."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Create without holders.

        Args:
            most: The number of places of all clients together.
            most_of_one: The number for each client; less than `most`, or one client may take all.
        """
        self._all = asyncio.Semaphore(most)
        self._most_of_one = most_of_one
        # Weak: a semaphore that is neither held nor awaited is dropped.
        self._of_one: WeakValueDictionary[K, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, client: K) -> AsyncIterator[None]:
        """Hold a place of this client; waits for one."""
        own = self._of_one.setdefault(client, asyncio.Semaphore(self._most_of_one))
        async with own, self._all:
            yield

"""Locks by key: a holder of several keys excludes every other holder of one of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class KeyLocks(Generic[K]):
    """A lock for each key, dropped once it is neither held nor awaited."""

    def __init__(self) -> None:
        self._locks: dict[K, asyncio.Lock] = {}
        self._wanted: dict[K, int] = {}

    @asynccontextmanager
    async def of(self, keys: Sequence[K]) -> AsyncIterator[None]:
        """Hold all keys. All callers must use the same order of keys, or two may deadlock."""
        if not keys:
            yield
            return
        async with AsyncExitStack() as held:
            for key in keys:
                await held.enter_async_context(self._one(key))
            yield

    @asynccontextmanager
    async def _one(self, key: K) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._wanted[key] = self._wanted.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key], self._locks[key]

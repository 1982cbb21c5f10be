"""Direct reads of objects that no store has: few concurrently, fair, and none twice in a second.

A user who may create pods can name many claims that do not exist. One account reads them all, so
the requests of one namespace must not delay the others. A client that reaches the port can claim to
be the API server, and name any namespace. So limits count by client address first, and by namespace
within an address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from cachetools import TTLCache

from kube.calls.api import NotFoundError
from kube.client_semaphore import ClientSemaphore
from kube.key_locks import KeyLocks
from kube.resources import ObjectPath

T = TypeVar("T")

ABSENT_SECONDS = 1.0
"""How long an object that was not found is not read again. If it is created meanwhile, the watch
brings it to the store, which is asked first."""

MOST_ABSENT = 10_000

MOST_AT_ONCE = 16
MOST_OF_CLIENT = 8
"""Reads in flight of all clients, and of each client."""

MOST_OF_ONE = 16
"""Objects that are read, or wait to be read, for one namespace of one client."""

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The address of the client of this request; a request itself is not trusted to name it."""


class BusyError(Exception):
    """Raised when too many look-ups for a namespace are in flight."""


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Lookups:
    """The reads in flight."""

    def __init__(self, clock: Callable[[], float] = _loop_time) -> None:
        self._places: ClientSemaphore[str] = ClientSemaphore(MOST_AT_ONCE, MOST_OF_CLIENT)
        self._reading: KeyLocks[tuple[str, ObjectPath]] = KeyLocks()
        self._asked: dict[tuple[str, str], Counter[ObjectPath]] = {}
        self._absent: TTLCache[ObjectPath, None] = TTLCache(MOST_ABSENT, ABSENT_SECONDS, clock)

    async def find(
        self,
        path: ObjectPath,
        namespace: str,
        known: Callable[[], T | None],
        read: Callable[[], Awaitable[object]],
    ) -> T | None:
        """The stored object, if needed after a read; None if it does not exist.

        Args:
            path: The object.
            namespace: The namespace of the reviewed object, for limits.
            known: Returns the stored object.
            read: Reads and stores the object; raises NotFoundError if it does not exist.

        Raises:
            BusyError: Too many look-ups for this namespace are in flight.
            ApiError: It cannot be read.
        """
        found = known()
        if found is not None or path in self._absent:
            return found
        client = CLIENT.get()
        with self._counted(path, namespace, client):
            async with self._reading.of(((client, path),)), self._places.of(client):
                # Another review may have read it meanwhile.
                if known() is None and path not in self._absent:
                    await self._read(path, read)
        return known()

    async def _read(self, path: ObjectPath, read: Callable[[], Awaitable[object]]) -> None:
        try:
            await read()
        except NotFoundError:
            self._absent[path] = None

    @contextmanager
    def _counted(self, path: ObjectPath, namespace: str, client: str) -> Iterator[None]:
        asked = self._asked.setdefault((client, namespace), Counter())
        if path not in asked and len(asked) >= MOST_OF_ONE:
            raise BusyError(
                f'Namespace "{namespace}" refers to more than {MOST_OF_ONE} objects that do not'
                " exist, or are new, at once."
            )
        asked[path] += 1
        try:
            yield
        finally:
            asked[path] -= 1
            if not asked[path]:
                del asked[path]
            if not asked:
                self._asked.pop((client, namespace), None)

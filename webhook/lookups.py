"""Reads of what no store has: few at one time, fair between all who ask, none twice in a moment.

Whoever may create pods can name claims that are not there, many in each pod. All of it is asked of
the API server by one account, so what one namespace asks for must not become everybody's waiting.
Whoever reaches the port can say that he is the API server, and name any namespace. So what counts
first is where a request came from: a stranger's namespaces are his own, and so is his line.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from cachetools import TTLCache

from kube.api import ClientPlaces, KeyLocks, NotFoundError, ObjectPath

T = TypeVar("T")

ABSENT_SECONDS = 1.0
"""How long a name that stood for nothing is not looked up again. What is created meanwhile is in a
store as soon as the watch tells of it, and a store is asked first."""

MOST_ABSENT = 10_000

MOST_AT_ONCE = 16
MOST_OF_CLIENT = 8
"""Reads under way for all, and for each client."""

MOST_OF_ONE = 16
"""Names that are read or wait to be for one namespace of one client."""

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The address of who is answered; what stands in a request is anybody's word."""


class BusyError(Exception):
    """Raised with a sentence where a namespace asks for too many names at one time."""


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Lookups:
    """The reads under way."""

    def __init__(self, clock: Callable[[], float] = _loop_time) -> None:
        self._places: ClientPlaces[str] = ClientPlaces(MOST_AT_ONCE, MOST_OF_CLIENT)
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
        """What is known; else what is known once it was read. None where there is nothing.

        Args:
            path: What is looked for.
            namespace: In whose behalf, as `CLIENT` says.
            known: Looks at what was read before.
            read: Makes it known; raises NotFoundError where there is nothing.

        Raises:
            BusyError: Too many names are looked up for this namespace already.
            ApiError: It cannot be read.
        """
        found = known()
        if found is not None or path in self._absent:
            return found
        client = CLIENT.get()
        with self._counted(path, namespace, client):
            async with self._reading.of(((client, path),)), self._places.of(client):
                # Somebody else may have read it before.
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
            raise BusyError(f'Too many names are looked up for namespace "{namespace}" just now.')
        asked[path] += 1
        try:
            yield
        finally:
            asked[path] -= 1
            if not asked[path]:
                del asked[path]
            if not asked:
                self._asked.pop((client, namespace), None)

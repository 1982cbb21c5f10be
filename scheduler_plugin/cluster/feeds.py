"""The API server's kinds of objects, each with its store and what hears of its changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from kube.api import (
    ApiClient,
    ApiError,
    Change,
    Deleted,
    Resource,
    Store,
)
from scheduler_plugin.accounting.world_changes import WorldChange

logger = logging.getLogger(__name__)

T = TypeVar("T")

PROBE_SECONDS = 60.0
"""How often a kind that the cluster does not serve is asked for."""

RETRY_SECONDS = 2.0
"""How soon it is asked for anew where the answer was an error."""


@dataclass(frozen=True, slots=True)
class Feed(Generic[T]):
    """Hands on the changes of one store.

    An object that becomes unreadable keeps its last readable state until it is readable again or
    gone: the store sees to that. A device that it holds stays charged, a limit that it sets stays
    in force. One that was never readable counts as absent.

    Attributes:
        put: Takes an object in; False if nothing came of it that anybody hears of.
        delete: Likewise, for one that is gone.
        change: What is heard of it.
        tell: Who hears.
    """

    put: Callable[[T], bool | None]
    delete: Callable[[T], bool | None]
    change: Callable[[T], WorldChange]
    tell: Callable[[WorldChange], None]

    def take(self, change: Change[T]) -> None:
        if isinstance(change, Deleted):
            found, matters = change.old, self.delete(change.old)
        else:
            found, matters = change.new, self.put(change.new)
        if matters is not False:
            self.tell(self.change(found))


class Kind(Generic[T]):
    """One kind of objects: found out whether it is served, followed, fed."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        store: Store[T],
        feed: Feed[T],
        *,
        is_optional: bool,
    ) -> None:
        self.served: Callable[[], None] = lambda: None
        """Called once an optional kind is found to be served; to be set by who minds."""
        self.store = store
        self.settled = asyncio.Event()
        self._client = client
        self._resource = resource
        self._feed = feed
        self._is_served = None if is_optional else True
        self._problem = ""
        self._hint = asyncio.Event()

    @property
    def is_followed(self) -> bool:
        return bool(self._is_served)

    def hint(self) -> None:
        """Something suggests that the kind is served by now."""
        self._hint.set()

    def feed(self) -> None:
        """Hand on what there is and all that comes."""
        self.store.subscribe(self._feed.take)

    def why_not_ready(self) -> str:
        """Why its objects are not known; "" where they are, or where there is no such kind."""
        if self._is_served is False or self.store.synced.is_set():
            return ""
        failure = self._problem or self.store.stats.last_failure
        said = f": {failure}" if failure else "."
        return f"{self} are not known yet{said}"

    def __str__(self) -> str:
        return f"{self._resource.plural} of {self._resource.api_version}"

    async def run(self) -> NoReturn:
        """Follow it from the moment at which it is served; `settled` once that is known."""
        while not await self._probe():
            self._hint.clear()
            seconds = RETRY_SECONDS if self._problem else PROBE_SECONDS
            try:
                async with asyncio.timeout(seconds):
                    await self._hint.wait()
            except TimeoutError:
                continue
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.store.run())
            await self.store.synced.wait()
            self.settled.set()
        raise AssertionError("a store runs until it is cancelled")

    async def _probe(self) -> bool:
        if self._is_served:
            return True
        try:
            self._is_served = await self._client.serves(self._resource)
        except ApiError as error:
            self._problem = str(error)
            logger.warning("%s: not known whether they are served: %s", self, error)
            return False
        self._problem = ""
        if self._is_served:
            self.served()
        elif not self.settled.is_set():
            logger.info("%s are not served here; asked for again later", self)
            self.settled.set()
        return self._is_served

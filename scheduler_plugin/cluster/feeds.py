"""The API server's kinds of objects, each with its store and the listener of its changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from kube.calls.api import ApiClient, ApiError
from kube.resources import Resource
from kube.stores.api import Change, Deleted, Store
from scheduler_plugin.accounting.world_changes import WorldChange

logger = logging.getLogger(__name__)

T = TypeVar("T")

PROBE_SECONDS = 60.0
"""How often discovery is asked again for a kind that the cluster does not serve."""

RETRY_SECONDS = 2.0
"""How soon discovery is asked again after an error."""

RECHECK_SECONDS = 10.0
"""How often discovery is asked while an optional kind cannot be watched."""

RECHECKS = 3
"""How many answers in a row count: API servers behind one address are upgraded one by one."""


class KindMovedError(Exception):
    """Raised when a kind that was followed is no longer served as it was found."""


@dataclass(frozen=True, slots=True)
class Feed(Generic[T]):
    """Passes the changes of one store on.

    An object that becomes unreadable keeps its last readable state in the store until it is
    readable again or deleted: a device that it holds stays charged, a limit that it sets stays in
    force. An object that was never readable counts as absent.

    Attributes:
        put: Enters an object; returns False if listeners need not hear of it.
        delete: Removes an object; returns False likewise.
        change: The change that listeners hear of.
        notify: Passes the change to the listeners.
    """

    put: Callable[[T], bool | None]
    delete: Callable[[T], bool | None]
    change: Callable[[T], WorldChange]
    notify: Callable[[WorldChange], None]

    def take(self, change: Change[T]) -> None:
        if isinstance(change, Deleted):
            found, matters = change.old, self.delete(change.old)
        else:
            found, matters = change.new, self.put(change.new)
        if matters is not False:
            self.notify(self.change(found))


class Kind(Generic[T]):
    """One kind of objects: discovered, then watched, then fed to the world."""

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
        """Called when an optional kind is found to be served; callers may set it."""
        self.store = store
        self.settled = asyncio.Event()
        self._client = client
        self._resource = resource
        self._feed = feed
        self._given = resource
        self._is_optional = is_optional
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
        """Pass all stored objects on, and all changes from then on."""
        self.store.subscribe(self._feed.take)

    def why_not_ready(self) -> str:
        """Why the objects are not known; "" if they are, or if the kind is not served."""
        if self._is_served is False or self.store.synced.is_set():
            return ""
        failure = self._problem or self.store.stats.last_failure
        said = f": {failure}" if failure else "."
        return f"{self} are not known yet{said}"

    @property
    def resource(self) -> Resource:
        """The resource; without a version until the served one is found, if none was given."""
        return self._resource

    def __str__(self) -> str:
        found = self._resource
        return f"{found.plural} of {found.api_version if found.version else found.group}"

    async def run(self) -> NoReturn:
        """Watch the kind from the moment at which it is served; `settled` is set once known.

        Raises:
            KindMovedError: It is no longer served, or in another version: by an upgrade, a feature
                gate, or a definition that was deleted. The next process follows what is served.
        """
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
            if self._is_optional:
                tasks.create_task(self._recheck())
            await self.store.synced.wait()
            self.settled.set()
        raise AssertionError("a store runs until it is cancelled")

    async def _recheck(self) -> NoReturn:
        moved = 0
        while moved < RECHECKS:
            await asyncio.sleep(RECHECK_SECONDS)
            is_watched = not self.store.stats.failures_in_a_row
            moved = 0 if is_watched or await self._is_where_it_was() else moved + 1
        raise KindMovedError(f"{self} are no longer served; what is served is followed anew")

    async def _is_where_it_was(self) -> bool:
        try:
            return await self._served() == self._resource
        except ApiError:
            return True

    async def _served(self) -> Resource | None:
        """The resource in a version that is served, or in the one that was given; None if none."""
        if self._given.version:
            return self._given if await self._client.serves(self._given) else None
        return await self._client.in_served_version(self._given)

    async def _find(self) -> bool:
        found = await self._served()
        if found not in (None, self._resource):
            self._resource = found
            self.store.select(found.select())
        return found is not None

    async def _probe(self) -> bool:
        if self._is_served:
            return True
        try:
            self._is_served = await self._find()
        except ApiError as error:
            self._problem = str(error)
            logger.warning("discovery failed for %s: %s", self, error)
            return False
        self._problem = ""
        if self._is_served:
            self.served()
        elif not self.settled.is_set():
            logger.info("%s are not served; discovery is repeated later", self)
            self.settled.set()
        return self._is_served

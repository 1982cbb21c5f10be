"""A store: a local copy of objects of the API server, as values of the caller's projection."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, NoReturn, TypeAlias, TypeVar

from kube.calls.apiserver import ApiClient
from kube.objects import ObjectKey, StoredObject
from kube.resources import Selection
from kube.stores.apiserver_watch import Items, Watch, WatchSettings, WatchStats
from kube.stores.changes import Added, Change, Skipped
from kube.stores.contents import Contents, Facts, Projection, TermsOf

log = logging.getLogger(__name__)

T = TypeVar("T")

# If objects change, the watch brings the changes within milliseconds.
CATCH_UP_SECONDS = 0.1

Subscriber: TypeAlias = Callable[[Change[T]], None]


class Store(Generic[T]):
    """The objects of one selection; up to date while `run` runs, readable at any time.

    `synced` is set when the first list is in, and stays set. Read methods do not wait.
    """

    def __init__(
        self,
        client: ApiClient,
        selection: Selection,
        project: Projection[T],
        *,
        indexes: Mapping[str, TermsOf[T]] | None = None,
        settings: WatchSettings | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        self._client = client
        self._selection = selection
        self._contents = Contents(project, indexes)
        self._subscribers: tuple[Subscriber[T], ...] = ()
        # Each change with its subscribers: a later subscriber finds it in the contents.
        self._outbox: deque[tuple[Change[T], tuple[Subscriber[T], ...]]] = deque()
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._watch = Watch(client, selection, self, settings or WatchSettings())

    def select(self, selection: Selection) -> None:
        """Follow another selection; to be called before `run` only."""
        self._selection = selection
        self._watch.select(selection)

    @property
    def stats(self) -> WatchStats:
        return self._watch.stats

    @property
    def position(self) -> int:
        """The resourceVersion up to which everything is known; 0 before the first list."""
        return self._contents.position

    def __len__(self) -> int:
        return len(self._contents)

    def __iter__(self) -> Iterator[T]:
        return iter(self._contents)

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._contents.get(ObjectKey(namespace, name))

    def known(self, obj: StoredObject) -> T | None:
        """The stored value of an object of any source; None if this version is not stored."""
        return self._contents.known(obj)

    def by_index(self, index: str, term: str) -> tuple[T, ...]:
        return self._contents.by_index(index, term)

    async def run(self) -> NoReturn:
        """List and watch until cancelled. Failures are logged and retried without a limit."""
        await self._watch.run()

    def note(self, obj: StoredObject) -> None:
        """Store the response to an own write at once, before the watch brings it.

        A response that is older than the stored object changes nothing. The object must be in this
        store's selection: only the server evaluates selectors.
        """
        self._notify(self._contents.note(obj))

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call back with each change after it took effect; present objects come as Added.

        A subscriber must be quick and must not raise.
        """
        for key, value in self._contents.items():
            subscriber(Added(key, value))
        self._subscribers += (subscriber,)

    async def at_least(self, resource_version: int, timeout_seconds: float) -> bool:
        """Wait until everything up to this version is stored; False after the time-out.

        If nothing changes, only the server's bookmarks move the position, about once a minute. To
        be as new as this moment, use `catch_up`.
        """
        if self.position >= resource_version:
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiter = (resource_version, reached)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_seconds):
                await reached
        except TimeoutError:
            return False
        finally:
            self._waiters.remove(waiter)
        return True

    async def catch_up(self, timeout_seconds: float) -> bool:
        """Wait until the store is as new as the time of this call; False after the time-out.

        If the watch brings nothing within `CATCH_UP_SECONDS`, the objects are listed: without a
        bookmark, only a list shows that nothing changed.

        Raises:
            ApiError: The API server does not answer.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.synced.wait()
                newest = await self._client.current_version(self._selection)
                while not await self.at_least(newest, CATCH_UP_SECONDS):
                    await self._watch.refresh()
        except TimeoutError:
            return False
        return True

    def begin_list(self, resource_version: int) -> None:
        if resource_version < self.position:
            log.warning(
                "resourceVersion went back from %d to %d selection=%s",
                *(self.position, resource_version, self._selection),
            )
            self._contents.rewind()

    def take_list(self, items: Items, seen: set[ObjectKey], *, beside_watch: bool = False) -> None:
        for item in items:
            self._notify(self._contents.list_item(item, seen, beside_watch=beside_watch))

    def finish_list(self, seen: set[ObjectKey], resource_version: int) -> None:
        self._notify(self._contents.finish_list(seen, resource_version))
        self.synced.set()

    def take_version(self, obj: StoredObject) -> None:
        self._notify(self._contents.observe(obj))

    def take_deletion(self, obj: StoredObject) -> None:
        self._notify(self._contents.observe(obj, is_gone=True))

    def take_bookmark(self, resource_version: int) -> None:
        self._contents.bookmark(resource_version)
        self._wake()

    def _notify(self, facts: Facts[T]) -> None:
        is_nested = bool(self._outbox)
        for fact in facts:
            if isinstance(fact, Skipped):
                self._report(fact)
            else:
                self._outbox.append((fact, self._subscribers))
        # A subscriber may call `note`: that change is delivered after the current one.
        while self._outbox and not is_nested:
            change, subscribers = self._outbox[0]
            for subscriber in subscribers:
                self._call(subscriber, change)
            self._outbox.popleft()
        self._wake()

    def _call(self, subscriber: Subscriber[T], change: Change[T]) -> None:
        try:
            subscriber(change)
        except Exception:  # The other subscribers must get the change, too.
            log.exception("subscriber failed key=%s", change.key)

    def _report(self, skipped: Skipped) -> None:
        self.stats.skipped += 1
        log.error(
            "object skipped selection=%s key=%s",
            self._selection,
            skipped.key,
            exc_info=skipped.error,
        )

    def _wake(self) -> None:
        for resource_version, reached in self._waiters:
            if resource_version <= self.position and not reached.done():
                reached.set_result(None)

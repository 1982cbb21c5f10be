"""Follows a selection on the API server: list, watch, resume, and list again if needed.

    list (pages) ──► watch from its version ──► watch from the last version seen ──► …
         ▲                 410, or five failures in a row                │
         └───────────────────────────────────────────────────────────────┘

Failures are counted until a watch makes progress. A list alone does not reset them: a server that
answers every watch with 410 would be listed in a tight loop. After several failures in a row the
position itself may be the reason (an event that cannot be parsed comes again each time; a restored
backup never reaches the position), and a list repairs it.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, TypeAlias, assert_never

from kube.backoff import Backoff
from kube.calls.apiserver import ApiClient
from kube.calls.apiserver_reads import PAGE_SIZE, Page
from kube.calls.errors import ApiError, ForbiddenError, GoneError, UnavailableError
from kube.calls.frames import Bookmark, Failed, Frame, Observed, Removed
from kube.objects import JsonObject, ObjectKey, StoredObject
from kube.resources import Selection

log = logging.getLogger(__name__)

Items: TypeAlias = Sequence[JsonObject]

FAILURES_BEFORE_LIST = 5
HEALTHY_SECONDS = 5.0
# How many objects of a page are processed before the event loop runs other tasks.
STRIDE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """Page size of lists, limits of watches, and back-off after failures.

    page_size: a page is parsed at once, about 40 microseconds an object, and blocks the event loop
        meanwhile.
    watch_seconds: the server ends a watch after a random time in this range, so that clients spread
        over all servers again after one has restarted.
    idle_seconds: the longest silence. The server sends a bookmark every minute, plus or minus two
        seconds; a connection without data for longer counts as half-open and is replaced. TCP
        keep-alive notices a vanished host sooner.
    uniform: yields numbers in [0, 1).
    shape: a msgspec Struct as which a watch reads each object that fits it; lists and own writes
        always bring JSON.
    """

    page_size: int = PAGE_SIZE
    list_seconds: float = 60.0
    watch_seconds: tuple[int, int] = (300, 600)
    idle_seconds: float = 75.0
    backoff: Backoff = field(default_factory=Backoff)
    uniform: Callable[[], float] = random.random
    shape: type[Any] | None = None


@dataclass(slots=True)
class WatchStats:
    """Counters for metrics; all but the last four only increase.

    events: versions, deletions and bookmarks. skipped: objects that could not be projected.
    failures_in_a_row: 0 while the watch works. last_failure, last_cause: message and cause of the
        last error, see `ApiError.cause`; kept after it is over.
    forbidden: whether the last list or watch was forbidden.
    """

    lists: int = 0
    events: int = 0
    skipped: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    last_failure: str = ""
    last_cause: str = ""
    forbidden: bool = False


class Follower(Protocol):
    """The consumer of a watch; called in order, and never concurrently."""

    @property
    def position(self) -> int: ...
    def begin_list(self, resource_version: int) -> None: ...
    def take_list(
        self, items: Items, seen: set[ObjectKey], *, beside_watch: bool = False
    ) -> None: ...
    def finish_list(self, seen: set[ObjectKey], resource_version: int) -> None: ...
    def take_version(self, obj: StoredObject) -> None: ...
    def take_deletion(self, obj: StoredObject) -> None: ...
    def take_bookmark(self, resource_version: int) -> None: ...


class Watch:
    """Keeps one follower up to date with one selection while `run` runs."""

    def __init__(
        self,
        client: ApiClient,
        selection: Selection,
        follower: Follower,
        settings: WatchSettings,
    ) -> None:
        self.stats = WatchStats()
        self.listing = False
        self._client = client
        self._selection = selection
        self._follower = follower
        self._settings = settings

    def select(self, selection: Selection) -> None:
        """Follow another selection; to be called before `run` only."""
        self._selection = selection

    async def run(self) -> NoReturn:
        while True:
            await self._until_listed()
            await self._until_lost()

    async def refresh(self) -> None:
        """List while the watch goes on.

        The list is abandoned if the watch itself lists again: that list is as new.
        """
        lists = self.stats.lists
        if self.listing:
            return
        seen: set[ObjectKey] = set()
        version = 0
        async for page in self._pages():
            version = page.resource_version
            for piece in _pieces(page.items):
                if self.stats.lists != lists:
                    return
                self._follower.take_list(piece, seen, beside_watch=True)
                await asyncio.sleep(0)
        if self.stats.lists == lists:
            self._follower.finish_list(seen, version)

    async def _until_listed(self) -> None:
        self.listing = True
        while True:
            try:
                await self._list()
            except ApiError as error:
                await self._back_off("list", error)
            else:
                self.listing = False
                return

    async def _until_lost(self) -> None:
        failures = 0  # Failures before this list say nothing about its position.
        while failures < FAILURES_BEFORE_LIST:
            try:
                await self._watch()
            except GoneError as error:
                await self._back_off("watch", error)
                return
            except ApiError as error:
                failures = failures + 1 if self.stats.failures_in_a_row else 1
                await self._back_off("watch", error)

    async def _list(self) -> None:
        self.stats.lists += 1
        seen: set[ObjectKey] = set()
        version = 0
        async for page in self._pages():
            if not version:
                self._follower.begin_list(page.resource_version)
            version = page.resource_version
            for piece in _pieces(page.items):
                self._follower.take_list(piece, seen)
                await asyncio.sleep(0)
        self.stats.forbidden = False
        self._follower.finish_list(seen, version)

    def _pages(self) -> AsyncIterator[Page]:
        return self._client.pages(
            self._selection,
            page_size=self._settings.page_size,
            timeout_seconds=self._settings.list_seconds,
        )

    async def _watch(self) -> None:
        async with self._client.watch(
            self._selection,
            self._follower.position,
            seconds=self._length(),
            idle_seconds=self._settings.idle_seconds,
            shape=self._settings.shape,
        ) as frames:
            self.stats.forbidden = False
            with self._health():
                async for frame in frames:
                    self._take(frame)
                    self.stats.failures_in_a_row = 0

    @contextmanager
    def _health(self) -> Iterator[None]:
        """Count a watch as healthy if it was open for `HEALTHY_SECONDS`, or brought an event."""
        loop = asyncio.get_running_loop()
        opened_at, events = loop.time(), self.stats.events
        try:
            yield
        finally:
            was_open = loop.time() - opened_at
            if was_open >= HEALTHY_SECONDS:
                self.stats.failures_in_a_row = 0
        if was_open < 1 and self.stats.events == events:
            raise UnavailableError("the watch ended at once")
        self.stats.failures_in_a_row = 0

    def _length(self) -> int:
        shortest, longest = self._settings.watch_seconds
        return shortest + round((longest - shortest) * self._settings.uniform())

    def _take(self, frame: Frame) -> None:
        match frame:
            case Observed(obj):
                self._follower.take_version(obj)
            case Removed(obj):
                self._follower.take_deletion(obj)
            case Bookmark(resource_version):
                self._follower.take_bookmark(resource_version)
            case Failed(error):
                raise error
            case _:
                assert_never(frame)
        self.stats.events += 1

    async def _back_off(self, verb: str, error: ApiError) -> None:
        stats = self.stats
        stats.failures += 1
        stats.failures_in_a_row += 1
        stats.last_failure = str(error)
        stats.last_cause = error.cause
        stats.forbidden = isinstance(error, ForbiddenError)
        delay = self._settings.backoff.delay(stats.failures_in_a_row, self._settings.uniform)
        delay += error.retry_after_seconds
        # Expired watches and restarted servers are normal; only lasting failures are a warning.
        level = logging.WARNING if stats.failures_in_a_row >= 3 else logging.INFO
        log.log(
            level,
            "%s failed selection=%s attempt=%d retry_in_seconds=%.1f cause=%s error=%s",
            verb,
            self._selection,
            stats.failures_in_a_row,
            delay,
            error.cause,
            error,
        )
        await asyncio.sleep(delay)


def _pieces(items: Items) -> Iterator[Items]:
    return (items[start : start + STRIDE] for start in range(0, len(items), STRIDE))

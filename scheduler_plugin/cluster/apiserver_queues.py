"""The API server's Queues: their status is kept at what the ledger says.

    World ─changed─► what is touched ─► one queue at a time, each once in a while ─► status

Nothing that decides about pods waits for this. It writes only while the Lease is ours.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from kube.api import (
    QUEUES,
    ApiClient,
    ApiError,
    Backoff,
    Change,
    Deleted,
    JsonObject,
    Preconditions,
    Store,
    UnauthorizedError,
    UnavailableError,
    WatchSettings,
    WriteOptions,
    wall_clock,
)
from scheduler_plugin.accounting.figures.queue_status import (
    LATE_FIELDS,
    SHORTEST_SECONDS,
    Besides,
    QueueObject,
    queue_object,
    queue_status,
    rest_seconds,
)
from scheduler_plugin.accounting.figures.quota_excess import QuotaExcess
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world import World
from scheduler_plugin.due import Due, Rests
from scheduler_plugin.objects.bindings import Fence
from scheduler_plugin.objects.names import FIELD_MANAGER, QUEUE_KIND, QueueName

logger = logging.getLogger(__name__)

WRITE_SECONDS = 5.0
GATHER_SECONDS = 0.1
"""How long changes are gathered: each binding touches a few queues several times."""

FENCED_SECONDS = 1.0
"""How soon it is asked again whether the Lease is ours."""

RECOUNT_SECONDS = 5.0
"""How often the numbers of waiting pods are compared with those that are shown. A pod that joins
what is charged already waits for a moment and changes no other figure: that is not worth a write.
"""

EXCESS_SECONDS = 30.0
"""How often it is looked whether quotas are more than the devices that there are."""

PLAIN_SECONDS = 600.0
"""How long statuses go without the fields that an older definition does not have."""

_NO_SUCH_FIELD = "field not declared in schema"
"""In what the API server answers to such a field; the code is 500."""

BACKOFF = Backoff(first_seconds=1.0, cap_seconds=30.0)
WRITE = WriteOptions(field_manager=FIELD_MANAGER, timeout_seconds=WRITE_SECONDS)


class QueueStatusWriter:
    """Writes the status of Queues while `run` runs; to be run once the world is in sync.

    Whoever feeds the world calls `changed` afterwards. That costs next to nothing, and where
    nothing changed nothing is done at all.
    """

    def __init__(
        self,
        client: ApiClient,
        world: World,
        fence: Fence,
        watch: WatchSettings | None = None,
    ) -> None:
        self._client = client
        self._world = world
        self._fence = fence
        self._queues = Store(client, QUEUES.select(), queue_object, settings=watch)
        self._asked: Due[QueueName] = Due()
        self._failures: Rests[QueueName] = Rests(BACKOFF.cap_seconds)
        self._writes: Rests[QueueName] = Rests()
        self._shares = ShareFigures(world)
        self._excess = QuotaExcess(world)
        # Whose number of waiting pods is to be written though nothing else changed.
        self._recounted: set[QueueName] = set()
        self._plain_until = float("-inf")
        self._more = asyncio.Event()

    def changed(self, _: object = None) -> None:
        """The world took an event; fit to be subscribed to it."""
        if self._world.ledger.is_touched:
            self._more.set()

    async def run(self) -> NoReturn:
        """Write until cancelled; failures are retried for ever, and logged."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queues.run())
            await self._queues.synced.wait()
            self._queues.subscribe(self._queue_changed)
            # Before a status is written: what was told of quotas and devices may still be so.
            await self._look_for_excess()
            tasks.create_task(self._look_now_and_then())
            while True:
                await self._step()
        raise AssertionError("the store runs until it is cancelled")

    async def _look_now_and_then(self) -> NoReturn:
        """See to what no event touches."""
        next_excess = self._now() + EXCESS_SECONDS
        while True:
            if self._now() >= next_excess:
                next_excess = self._now() + EXCESS_SECONDS
                await self._look_for_excess()
            await asyncio.sleep(RECOUNT_SECONDS)
            for found in self._queues:
                self._recount(found)

    async def _look_for_excess(self) -> None:
        """In steps, so that Filter and Bind go on meanwhile."""
        steps = self._excess.steps(self._now())
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                self._ask_all(ended.value)
                return
            await asyncio.sleep(0)

    def _recount(self, found: QueueObject) -> None:
        name, shown = found.queue.name, found.status.get("waiting")
        if not self._without() and shown != self._waiting_pods(name):
            self._recounted.add(name)
            self._ask_all((name,))

    def _ask_all(self, names: Iterable[QueueName]) -> None:
        for name in names:
            self._ask(name)
            self._more.set()

    def _queue_changed(self, change: Change[QueueObject]) -> None:
        """Also when somebody else wrote the status."""
        if isinstance(change, Deleted):
            self._writes.forget(QueueName(change.key.name))
        self._ask(QueueName(change.key.name))
        self._more.set()

    def _ask(self, name: QueueName) -> None:
        """Make a queue due: now, or when its rest is over."""
        if name not in self._asked:
            now = self._now()
            tables = (self._writes, self._failures)
            self._asked.set(name, max(table.until(name, now) or now for table in tables))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _step(self) -> None:
        self._more.clear()
        for name in self._world.ledger.take_touched():
            self._ask(name)
        seconds = self._seconds_to_next()
        if seconds != 0.0 and not self._world.ledger.is_touched:
            await self._more_within(seconds)
        elif self._fence.why_not(WRITE_SECONDS):
            await asyncio.sleep(FENCED_SECONDS)
        else:
            due = self._asked.pop(self._now())
            if due is not None:
                await self._bring_up_to_date(due)

    def _seconds_to_next(self) -> float | None:
        moment = self._asked.next_moment()
        return None if moment is None else max(0.0, moment - self._now())

    async def _more_within(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._more.wait()
                await asyncio.sleep(GATHER_SECONDS)

    async def _bring_up_to_date(self, name: QueueName) -> None:
        try:
            await self._write(name)
            self._failures.succeeded(name)
        except Exception as error:  # noqa: BLE001  An odd object must not end the process.
            await self._put_off(name, error)

    async def _write(self, name: QueueName) -> None:
        found = self._queues.get(name)
        status = self._wanted(found) if found is not None else None
        self._recounted.discard(name)
        if found is None or status is None:
            return
        # From before the write: what asks for the queue meanwhile must wait, too.
        self._writes.again(name, self._now(), rest_seconds)
        path = QUEUES.at(name, subresource="status")
        body = {"apiVersion": QUEUES.api_version, "kind": QUEUE_KIND, "metadata": {"name": name}}
        answer = await self._client.apply(
            path,
            {**body, "status": status},
            force=True,
            preconditions=Preconditions(found.queue.uid),
            options=WRITE,
        )
        self._queues.note(answer)

    def _wanted(self, found: QueueObject) -> JsonObject | None:
        """The status to be written. It is none for a number of pods that waited for a moment."""
        name, shown = found.queue.name, found.status.get("waiting")
        besides = Besides(
            share=self._shares.of(name, self._now()),
            waiting=self._waiting_pods(name),
            excess=self._excess.of(name),
            without=self._without(),
        )
        status = queue_status(found, self._world, wall_clock(), besides)
        if status is None or name in self._recounted:
            return status
        as_shown = replace(besides, waiting=shown)
        is_worth_it = queue_status(found, self._world, wall_clock(), as_shown) is not None
        return status if is_worth_it else None

    def _waiting_pods(self, name: QueueName) -> int:
        return self._world.waiting.count(self._world.facts.tree.below(name))

    def _without(self) -> frozenset[str]:
        return LATE_FIELDS if self._now() < self._plain_until else frozenset()

    async def _put_off(self, name: QueueName, error: Exception) -> None:
        """Try this queue again later; while the server is away, or knows us not, all of them."""
        now = self._now()
        if self._is_of_a_field(error):
            logger.warning("%s; statuses go without it: apply the chart's definitions", error)
            self._plain_until = now + PLAIN_SECONDS
            self._writes.forget(name)
            self._ask(name)
            return
        self._writes.forget(name)
        until = self._failures.again(name, now, _failed_seconds)
        bug = None if isinstance(error, ApiError) else error
        attempt = self._failures.times(name)
        logger.warning(
            "status not written queue=%s attempt=%d error=%s", name, attempt, error, exc_info=bug
        )
        self._ask(name)
        if isinstance(error, UnavailableError | UnauthorizedError):
            await asyncio.sleep(max(until - now, error.retry_after_seconds))

    def _is_of_a_field(self, error: Exception) -> bool:
        """Whether the definition is older than this version, and lacks a field of the status."""
        is_told = isinstance(error, ApiError) and _NO_SUCH_FIELD in error.message
        return is_told and not self._without()


def _failed_seconds(failures: int) -> float:
    return max(SHORTEST_SECONDS, BACKOFF.delay(failures, random.random))

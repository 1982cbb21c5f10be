"""Writes the status of Queues from the ledger.

    World ─changed─► Queues that it touched ─► one at a time, each rate-limited ─► status

No decision about pods waits for this. Only the process that holds the Lease writes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NoReturn

from binder.queues.status_rate_limits import StatusRateLimits
from kube.backoff import Backoff
from kube.calls.api import ApiClient, ApiError, Preconditions, WriteOptions
from kube.kinds import QUEUES
from kube.objects import JsonObject
from kube.reconciling.api import After, Done, Reconciler, Result, failed_call
from kube.stores.api import Change, Deleted, Store
from kube.wall_clock import wall_clock
from scheduler_plugin.accounting.api import QueueObject, QueueStatuses, World, queue_object
from scheduler_plugin.objects.api import Fence
from scheduler_plugin.objects.names import FIELD_MANAGER, QUEUE_KIND, QueueName

logger = logging.getLogger(__name__)

_NO_SUCH_FIELD = "field not declared in schema"
"""Part of the API server's error for a field that its definition lacks; the status code is 500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSettings:
    """How often statuses of Queues are checked and written. All times are seconds.

    Attributes:
        write_seconds: How long one write may take.
        gather_seconds: How long changes are collected: each binding touches a few Queues several
            times.
        interval: The least time between two writes of one status, by the number of writes in a
            row. A single change is written at once. Under load all figures change all the time,
            and without this limit their writes were a tenth of the API server's work. A merge
            patch of one figure costs the API server as much as an apply of all.
        recount_seconds: How often the number of waiting pods is compared with the one in the
            status.
        excess_seconds: How often quotas are compared with the published devices.
        plain_seconds: How long statuses omit fields that the installed definition lacks.
        backoff: The back-off of failed writes.
    """

    write_seconds: float = 5.0
    gather_seconds: float = 0.1
    interval: Backoff = Backoff(first_seconds=1.0, cap_seconds=5.0)
    recount_seconds: float = 5.0
    excess_seconds: float = 30.0
    plain_seconds: float = 600.0
    backoff: Backoff = Backoff(first_seconds=1.0, cap_seconds=30.0, patient=True)


class Look(StrEnum):
    """The checks that find Queues to write."""

    TOUCHED = "touched"
    WAITING = "waiting"
    EXCESS = "excess"


class QueueStatusWriter:
    """Writes the status of Queues while `run` runs; start it once the world is in sync.

    Subscribe `changed` to the world.
    """

    def __init__(
        self,
        client: ApiClient,
        world: World,
        fence: Fence,
        settings: StatusSettings = StatusSettings(),
    ) -> None:
        self._client = client
        self._world = world
        self._settings = settings
        self._queues = Store(client, QUEUES.select(), queue_object)
        self._statuses = QueueStatuses(world)
        self._rate_limits = StatusRateLimits(settings.interval)
        self._is_gathering = False
        self._looks: Reconciler[Look] = Reconciler("queue-status-looks", self._look)
        self._writes: Reconciler[QueueName] = Reconciler(
            "queue-status",
            self._reconcile,
            why_not=partial(fence.why_not, settings.write_seconds),
            backoff=settings.backoff,
        )

    def changed(self, _: object = None) -> None:
        """Collect the Queues that a change touched; cheap enough for each event of the world."""
        if self._world.ledger.is_touched and not self._is_gathering:
            self._is_gathering = True
            self._looks.add_after(Look.TOUCHED, self._settings.gather_seconds)

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queues.run())
            await self._queues.synced.wait()
            self._queues.subscribe(self._queue_changed)
            # Before the first write: a condition about quotas and devices may still hold.
            await self._look(Look.EXCESS)
            self._looks.add_after(Look.EXCESS, self._settings.excess_seconds)
            self._looks.add_after(Look.WAITING, self._settings.recount_seconds)
            tasks.create_task(self._looks.run())
            tasks.create_task(self._writes.run())
        raise AssertionError("the store runs until it is cancelled")

    # Checks.

    async def _look(self, look: Look) -> Result:
        match look:
            case Look.TOUCHED:
                self._is_gathering = False
                self._add(self._world.ledger.take_touched())
                return Done()
            case Look.WAITING:
                self._add(self._statuses.recount(self._queues, _now()))
                return After(self._settings.recount_seconds)
            case Look.EXCESS:
                await self._look_for_excess()
                return After(self._settings.excess_seconds)

    async def _look_for_excess(self) -> None:
        """Check in steps, so that Filter and Bind are answered meanwhile."""
        steps = self._statuses.look_for_excess(_now())
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                self._add(ended.value)
                return
            await asyncio.sleep(0)

    def _queue_changed(self, change: Change[QueueObject]) -> None:
        """Add a changed Queue: another client may have written its status."""
        name = QueueName(change.key.name)
        if isinstance(change, Deleted):
            self._rate_limits.forget(name)
        self._add((name,))

    def _add(self, names: Iterable[QueueName]) -> None:
        """Add these to the write queue: now, or when their interval is over."""
        for name in names:
            self._writes.add_after(name, self._rate_limits.seconds(name, _now()))

    # Writes.

    async def _reconcile(self, name: QueueName) -> Result:
        found = self._queues.get(name)
        status = self._statuses.wanted(found, wall_clock(), _now()) if found is not None else None
        if found is None or status is None:
            return Done()
        # Noted before the write, so that what is added meanwhile waits, too.
        self._rate_limits.wrote(name, _now())
        try:
            self._queues.note(await self._apply(found, status))
        except ApiError as error:
            return self._failed(name, error)
        return Done()

    async def _apply(self, found: QueueObject, status: JsonObject) -> JsonObject:
        name = found.queue.name
        body = {"apiVersion": QUEUES.api_version, "kind": QUEUE_KIND, "metadata": {"name": name}}
        return await self._client.apply(
            QUEUES.at(name, subresource="status"),
            {**body, "status": status},
            force=True,
            preconditions=Preconditions(found.queue.uid),
            options=WriteOptions(
                field_manager=FIELD_MANAGER, timeout_seconds=self._settings.write_seconds
            ),
        )

    def _failed(self, name: QueueName, error: ApiError) -> Result:
        """Retry later, or at once without the fields that the definition lacks."""
        if _NO_SUCH_FIELD in error.message and not self._statuses.is_plain(_now()):
            logger.warning("%s; statuses omit it: apply the chart's definitions", error)
            self._statuses.leave_out_late_fields(_now() + self._settings.plain_seconds)
            self._rate_limits.forget(name)
            return After(0.0)
        return failed_call(error)


def _now() -> float:
    return asyncio.get_running_loop().time()

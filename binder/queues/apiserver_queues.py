"""The API server's Queues: their status is kept at what the ledger says.

    World ─changed─► Queues that it touched ─► one at a time, each once in a while ─► status

No decision about pods waits for this. It writes only while the Lease is ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NoReturn

from binder.queues.status_paces import StatusPaces
from kube.api import (
    QUEUES,
    After,
    ApiClient,
    ApiError,
    Backoff,
    Change,
    Deleted,
    Done,
    JsonObject,
    Preconditions,
    Reconciler,
    Result,
    Store,
    WriteOptions,
    failed_call,
    wall_clock,
)
from scheduler_plugin.api import (
    FIELD_MANAGER,
    QUEUE_KIND,
    Fence,
    QueueName,
    QueueObject,
    QueueStatuses,
    World,
    queue_object,
)

logger = logging.getLogger(__name__)

_NO_SUCH_FIELD = "field not declared in schema"
"""In what the API server answers to a field that its definition does not have; the code is 500."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSettings:
    """How often statuses of Queues are looked at and written. All times are seconds.

    Attributes:
        write_seconds: How long one write may take.
        gather_seconds: How long changes are gathered: each binding touches a few Queues several
            times.
        rest: Between writes of one status. One change is shown at once. Under load every figure
            changes all the time, and its reader a second later reads another one anyway: there the
            writes would be a tenth of the API server's work, which costs as much for a merge patch
            of one figure as for an apply of them all.
        recount_seconds: How often the numbers of waiting pods are compared with those shown.
        excess_seconds: How often quotas are compared with the devices that there are.
        plain_seconds: How long statuses go without the fields that an older definition lacks.
        backoff: After writes that failed.
    """

    write_seconds: float = 5.0
    gather_seconds: float = 0.1
    rest: Backoff = Backoff(first_seconds=1.0, cap_seconds=5.0)
    recount_seconds: float = 5.0
    excess_seconds: float = 30.0
    plain_seconds: float = 600.0
    backoff: Backoff = Backoff(first_seconds=1.0, cap_seconds=30.0)


class Look(StrEnum):
    """What is looked at for Queues to be written."""

    TOUCHED = "touched"
    WAITING = "waiting"
    EXCESS = "excess"


class QueueStatusWriter:
    """Writes the status of Queues while `run` runs; to be run once the world is in sync.

    Subscribe `changed` to the world. It costs next to nothing, and nothing where nothing changed.
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
        self._paces = StatusPaces(settings.rest)
        self._is_gathering = False
        self._looks: Reconciler[Look] = Reconciler("queue-status-looks", self._look)
        self._writes: Reconciler[QueueName] = Reconciler(
            "queue-status",
            self._reconcile,
            why_not=partial(fence.why_not, settings.write_seconds),
            backoff=settings.backoff,
        )

    def changed(self, _: object = None) -> None:
        """The world took an event; fit to be subscribed to it."""
        if self._world.ledger.is_touched and not self._is_gathering:
            self._is_gathering = True
            self._looks.add_after(Look.TOUCHED, self._settings.gather_seconds)

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._queues.run())
            await self._queues.synced.wait()
            self._queues.subscribe(self._queue_changed)
            # Before a status is written: what was told of quotas and devices may still be so.
            await self._look(Look.EXCESS)
            self._looks.add_after(Look.EXCESS, self._settings.excess_seconds)
            self._looks.add_after(Look.WAITING, self._settings.recount_seconds)
            tasks.create_task(self._looks.run())
            tasks.create_task(self._writes.run())
        raise AssertionError("the store runs until it is cancelled")

    # What is looked at.

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
        """In steps, so that Filter and Bind go on meanwhile."""
        steps = self._statuses.look_for_excess(_now())
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                self._add(ended.value)
                return
            await asyncio.sleep(0)

    def _queue_changed(self, change: Change[QueueObject]) -> None:
        """Also where another client wrote the status."""
        name = QueueName(change.key.name)
        if isinstance(change, Deleted):
            self._paces.forget(name)
        self._add((name,))

    def _add(self, names: Iterable[QueueName]) -> None:
        """Have these written: now, or when their rest is over."""
        for name in names:
            self._writes.add_after(name, self._paces.seconds(name, _now()))

    # What is written.

    async def _reconcile(self, name: QueueName) -> Result:
        found = self._queues.get(name)
        status = self._statuses.wanted(found, wall_clock(), _now()) if found is not None else None
        if found is None or status is None:
            return Done()
        # From before the write: what is added meanwhile must rest, too.
        self._paces.wrote(name, _now())
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
        """Try it again later, or at once without what the definition does not have."""
        if _NO_SUCH_FIELD in error.message and not self._statuses.is_plain(_now()):
            logger.warning("%s; statuses go without it: apply the chart's definitions", error)
            self._statuses.leave_out_late_fields(_now() + self._settings.plain_seconds)
            self._paces.forget(name)
            return After(0.0)
        return failed_call(error)


def _now() -> float:
    return asyncio.get_running_loop().time()

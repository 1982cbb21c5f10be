"""The API server's Queues that must not go while they are charged: their finalizer.

Only the leader writes. A binding that would charge a queue waits until the finalizer is there; a
removal that is under way is waited for, and then undone. A write that finds another object of the
name, or one on its way out, changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from kube.api import (
    QUEUES,
    ApiClient,
    ApiError,
    KeyLocks,
    NotFoundError,
    Preconditions,
    WriteOptions,
)
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.due import Due
from scheduler_plugin.keeping.charged_queues import ChargedQueues, Keep, is_charged, unkept
from scheduler_plugin.objects.bindings import (
    BindFailed,
    BindRequest,
    CarriesOut,
    ClaimsChanged,
    Fence,
    FencedError,
    Outcome,
    check_fence,
)
from scheduler_plugin.objects.names import CHARGES_FINALIZER, QUEUE_KIND, QueueName

logger = logging.getLogger(__name__)

FINALIZER_MANAGER = CHARGES_FINALIZER
"""A field manager of its own: whoever applies a status says nothing of finalizers."""

WRITE_SECONDS = 4.0
TICK_SECONDS = 1.0
"""How often all queues are looked at while something changes."""

FAILED_SECONDS = 5.0
LOOK_SECONDS = 30.0
"""How soon all are looked at although nothing changed: somebody may have written a finalizer."""

STRIDE = 100
WRITE = WriteOptions(field_manager=FINALIZER_MANAGER, timeout_seconds=WRITE_SECONDS)


class QueueKeeper:
    """Adds and removes the finalizer; `run` once the world is in sync."""

    def __init__(self, client: ApiClient, cluster: ClusterWorld, fence: Fence) -> None:
        self._client = client
        self._cluster = cluster
        self._fence = fence
        self._charged = ChargedQueues(cluster.world)
        self._locks: KeyLocks[QueueName] = KeyLocks()
        # Whose finalizer is being removed, or that failed: it may be gone, whatever is known.
        self._releasing: set[QueueName] = set()
        # What was written, until it may be again: an object that cannot be read does not show it.
        self._wrote: Due[tuple[QueueName, bool]] = Due()
        self._more = asyncio.Event()
        self._more.set()

    def changed(self, _: object = None) -> None:
        """The world took an event; fit to be subscribed to it."""
        self._more.set()

    async def keep(self, queues: Iterable[QueueName]) -> str:
        """Have the finalizer on all that these charge; why that is not certain, "" where it is.

        Where it is there already, as it mostly is, nothing is awaited.
        """
        for queue in unkept(queues, self._cluster.world, self._releasing):
            if queue.is_deleting:
                return f'Queue "{queue.name}" is being deleted: nothing new is charged to it.'
            try:
                await self.write_under_lock(queue.name, kept=True)
            except (ApiError, FencedError) as error:
                return f'Queue "{queue.name}" could go while it is charged: {error}'
            if queue.name not in self._cluster.world.facts.tree:
                return f'Queue "{queue.name}" is gone.'
        return ""

    async def write_under_lock(self, name: QueueName, *, kept: bool) -> None:
        """Write unless it is so by now, or a charge began or ended meanwhile."""
        world = self._cluster.world
        async with self._locks.of((name,)):
            queue = world.facts.tree.get(name)
            if queue is None or is_charged(name, world) != kept:
                return
            if queue.is_kept == kept and name not in self._releasing:
                return
            if not kept:
                self._releasing.add(name)
            await self._write(Keep(queue, kept=kept))
            self._releasing.discard(name)

    async def _write(self, keep: Keep) -> None:
        check_fence(self._fence, WRITE_SECONDS)
        name, uid = keep.queue.name, keep.queue.uid
        finalizers = {"finalizers": [CHARGES_FINALIZER]} if keep.kept else {}
        metadata = {"name": name, **finalizers}
        answer = await self._client.apply(
            QUEUES.at(name),
            {"apiVersion": QUEUES.api_version, "kind": QUEUE_KIND, "metadata": metadata},
            preconditions=Preconditions(uid),
            options=WRITE,
        )
        logger.info("finalizer queue=%s kept=%s", name, keep.kept)
        self._wrote.set((name, keep.kept), self._now() + LOOK_SECONDS)
        self._wrote.drop((name, not keep.kept))
        self._cluster.note_queue(answer)

    async def run(self) -> NoReturn:
        """Look until cancelled; failures are retried for ever, and logged."""
        while True:
            due = self._charged.next_moment()
            look_at = self._now() + LOOK_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(look_at, look_at if due is None else due)):
                    await self._more.wait()
            self._more.clear()
            if not self._fence.why_not(WRITE_SECONDS):
                await self._look_at_all()
            await asyncio.sleep(TICK_SECONDS)

    async def _look_at_all(self) -> None:
        self._charged.forget_gone()
        self._wrote.take(self._now())
        names = [queue.name for queue in self._cluster.world.facts.tree]
        for number, name in enumerate(names, start=1):
            found = self._charged.look(name, self._now())
            if found is not None and (name, found.kept) not in self._wrote:
                await self._carry_out(found)
            if number % STRIDE == 0:
                await asyncio.sleep(0)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _carry_out(self, found: Keep) -> None:
        name = found.queue.name
        try:
            await self.write_under_lock(name, kept=found.kept)
        except NotFoundError:
            return
        except Exception as error:  # An odd object must not end the process.
            bug = None if isinstance(error, ApiError) else error
            logger.warning("finalizer not written queue=%s: %s", name, error, exc_info=bug)
            self._more.set()
            await asyncio.sleep(FAILED_SECONDS)


class KeepingBinder:
    """A binder that charges no queue which could go."""

    def __init__(self, binder: CarriesOut, keeper: QueueKeeper) -> None:
        self._binder = binder
        self._keeper = keeper

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        """See `CarriesOut`. Nothing is written where a queue could go."""
        if why := await self._keep(request):
            return BindFailed(why, is_certain=True)
        return await self._binder.write_owners(request)

    async def take_back(self, request: BindRequest) -> bool:
        """See `CarriesOut`."""
        return await self._binder.take_back(request)

    async def bind(self, request: BindRequest) -> Outcome:
        """See `CarriesOut`. Nothing is bound where a queue could go."""
        if why := await self._keep(request):
            return BindFailed(why, is_certain=await self._binder.take_back(request))
        return await self._binder.bind(request)

    async def _keep(self, request: BindRequest) -> str:
        owners = {claim.queue for claim in request.claims}
        return await self._keeper.keep(sorted(owners | {request.queue}))

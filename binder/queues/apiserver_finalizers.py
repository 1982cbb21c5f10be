"""Writes the finalizer of Queues, which keeps a Queue from being deleted while it is charged.

Only the leader writes. A binding that would charge a queue waits until the queue has the finalizer;
if a removal is in progress, the binding waits for it and adds the finalizer again. A write has no
effect if the Queue was replaced by another of its name, or is terminating.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from kube.backoff import Backoff
from kube.calls.api import ApiClient, ApiError, NotFoundError, Preconditions, WriteOptions
from kube.key_locks import KeyLocks
from kube.kinds import QUEUES
from kube.objects import JsonObject
from kube.reconciling.api import After, Done, Reconciler, Result, failed_call
from scheduler_plugin.accounting.api import World
from scheduler_plugin.cleanup.api import (
    ChargedQueues,
    FinalizerWrite,
    is_charged,
    without_finalizer,
)
from scheduler_plugin.objects.api import (
    BinderProtocol,
    BindFailed,
    BindRequest,
    ClaimsChanged,
    Fence,
    FencedError,
    Outcome,
    check_fence,
)
from scheduler_plugin.objects.names import CHARGES_FINALIZER, NO_QUEUE, QUEUE_KIND, QueueName

logger = logging.getLogger(__name__)

FINALIZER_MANAGER = CHARGES_FINALIZER
"""A separate field manager, since an applied status has no finalizers."""

ALL = NO_QUEUE
"""The key that checks all Queues."""

STRIDE = 100
"""How many Queues are checked before other tasks run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizerSettings:
    """How often finalizers are checked and written. All times are seconds.

    Attributes:
        write_seconds: How long one write may take.
        tick_seconds: The least time between two checks of all Queues.
        look_seconds: The time to the next check without a change: another client may have written a
            finalizer.
        backoff: The back-off of failed writes.
    """

    write_seconds: float = 4.0
    tick_seconds: float = 1.0
    look_seconds: float = 30.0
    backoff: Backoff = Backoff(first_seconds=1.0, cap_seconds=30.0)


class FinalizerWriter:
    """Adds and removes the finalizer while `run` runs; start it once the world is in sync."""

    def __init__(
        self,
        client: ApiClient,
        world: World,
        fence: Fence,
        note_queue: Callable[[JsonObject], None],
        settings: FinalizerSettings = FinalizerSettings(),
    ) -> None:
        """`note_queue` takes the Queues that the API server returns."""
        self._client = client
        self._world = world
        self._fence = fence
        self._note_queue = note_queue
        self._settings = settings
        self._charged = ChargedQueues(world)
        self._locks: KeyLocks[QueueName] = KeyLocks()
        # Queues that may have lost the finalizer: its removal is in progress, or failed.
        self._releasing: set[QueueName] = set()
        # Until when a write is not repeated: a Queue that cannot be parsed never shows its effect.
        self._wrote: dict[tuple[QueueName, bool], float] = {}
        # Failed writes are retried after their back-off only, whatever changes meanwhile.
        self._failing: set[QueueName] = set()
        self._is_asked = False
        self._queue: Reconciler[QueueName] = Reconciler(
            "queue-finalizers",
            self._reconcile,
            why_not=partial(fence.why_not, settings.write_seconds),
            backoff=settings.backoff,
        )

    def changed(self, _: object = None) -> None:
        """Check all Queues soon; subscribe this to the world."""
        if not self._is_asked:
            self._is_asked = True
            self._queue.add_after(ALL, self._settings.tick_seconds)

    async def ensure(self, queues: Iterable[QueueName]) -> str:
        """Add the finalizer to these queues and their ancestors, where it is missing.

        Returns why a queue may lack it, as a sentence; "" if all have it. In most cases all have it
        already, and nothing is awaited.
        """
        for queue in without_finalizer(queues, self._world, self._releasing):
            if queue.is_deleting:
                return f'Queue "{queue.name}" is being deleted and takes no new charge.'
            try:
                await self.write_under_lock(queue.name, present=True)
            except (ApiError, FencedError) as error:
                return f'Queue "{queue.name}": its finalizer could not be added: {error}'
            if queue.name not in self._world.facts.tree:
                return f'Queue "{queue.name}" was deleted.'
        return ""

    async def write_under_lock(self, name: QueueName, *, present: bool) -> None:
        """Write, unless it is already so, or the queue began or ceased to be charged meanwhile."""
        async with self._locks.of((name,)):
            queue = self._world.facts.tree.get(name)
            if queue is None or is_charged(name, self._world) != present:
                return
            if queue.has_finalizer == present and name not in self._releasing:
                return
            if not present:
                self._releasing.add(name)
            await self._write(FinalizerWrite(queue, present=present))
            self._releasing.discard(name)

    async def _write(self, wanted: FinalizerWrite) -> None:
        seconds = self._settings.write_seconds
        check_fence(self._fence, seconds)
        name, uid = wanted.queue.name, wanted.queue.uid
        finalizers = {"finalizers": [CHARGES_FINALIZER]} if wanted.present else {}
        metadata = {"name": name, **finalizers}
        answer = await self._client.apply(
            QUEUES.at(name),
            {"apiVersion": QUEUES.api_version, "kind": QUEUE_KIND, "metadata": metadata},
            preconditions=Preconditions(uid),
            options=WriteOptions(field_manager=FINALIZER_MANAGER, timeout_seconds=seconds),
        )
        logger.info("finalizer queue=%s present=%s", name, wanted.present)
        self._wrote[name, wanted.present] = _now() + self._settings.look_seconds
        self._wrote.pop((name, not wanted.present), None)
        self._note_queue(answer)

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        self._queue.add(ALL)
        await self._queue.run()

    async def _reconcile(self, name: QueueName) -> Result:
        if name == ALL:
            return await self._look_at_all()
        self._failing.discard(name)
        if (found := self._wanted(name)) is not None:
            try:
                await self.write_under_lock(name, present=found.present)
            except NotFoundError:
                return Done()
            except ApiError as error:
                self._failing.add(name)
                return failed_call(error)
        return Done()

    async def _look_at_all(self) -> Result:
        self._is_asked = False
        self._charged.forget_gone()
        now = _now()
        self._wrote = {wrote: until for wrote, until in self._wrote.items() if until > now}
        for number, queue in enumerate(list(self._world.facts.tree), start=1):
            if queue.name not in self._failing and self._wanted(queue.name) is not None:
                self._queue.add(queue.name)
            if number % STRIDE == 0:
                await asyncio.sleep(0)
        due = self._charged.next_moment()
        seconds = self._settings.look_seconds if due is None else due - _now()
        return After(max(self._settings.tick_seconds, min(seconds, self._settings.look_seconds)))

    def _wanted(self, name: QueueName) -> FinalizerWrite | None:
        """The write that a Queue needs now; None if it needs none."""
        found = self._charged.look(name, _now())
        return None if found is None or (name, found.present) in self._wrote else found


def _now() -> float:
    return asyncio.get_running_loop().time()


class FinalizingBinder:
    """A binder that adds the finalizer to each queue before it charges it."""

    def __init__(self, binder: BinderProtocol, writer: FinalizerWriter) -> None:
        self._binder = binder
        self._writer = writer

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        """See `BinderProtocol`. Writes nothing if a queue may lack the finalizer."""
        if why := await self._ensure(request):
            return BindFailed(why, is_certain=True)
        return await self._binder.write_owners(request)

    async def roll_back(self, request: BindRequest) -> bool:
        """See `BinderProtocol`."""
        return await self._binder.roll_back(request)

    async def bind(self, request: BindRequest) -> Outcome:
        """See `BinderProtocol`. Binds nothing if a queue may lack the finalizer."""
        if why := await self._ensure(request):
            return BindFailed(why, is_certain=await self._binder.roll_back(request))
        return await self._binder.bind(request)

    async def _ensure(self, request: BindRequest) -> str:
        owners = {claim.queue for claim in request.claims}
        return await self._writer.ensure(sorted(owners | {request.queue}))

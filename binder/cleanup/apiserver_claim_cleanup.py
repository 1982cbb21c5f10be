"""The controller of claims: carries out the next step of the cleanup of each claim.

    changed claim, pod, decision ─┐
    changed Queue, each minute ───┴─► key: UID of a claim ──► next step
                 ▲                                            (scheduler_plugin.cleanup)
                 └── requeued ◄───────────────────────────────── none, or one step ──► API server

Every process reconciles, so that each knows how long a claim has been stale. Only the process that
holds the Lease writes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass

from binder import apiserver_events
from binder.cleanup.apiserver_cleanup_steps import Steps
from binder.cleanup.periods import Periods
from binder.evictions.apiserver_evictions import EVICTED_SECONDS, HELD_BACK, HeldBackError
from kube.calls.api import ApiError, ConflictError, NotFoundError, PermanentError
from kube.processes.api import log_context
from kube.reconciling.api import (
    After,
    Done,
    Failed,
    KeyedBackoff,
    Reconciler,
    Result,
    failed_call,
)
from scheduler_plugin.cleanup.api import EvictForeign, RequeueAt, Step, lost_queue
from scheduler_plugin.objects.api import Fence, FencedError
from scheduler_plugin.objects.names import ClaimUid, QueueName

logger = logging.getLogger(__name__)

WORKERS = 4
"""How many claims are written concurrently; few, since bindings take precedence."""

PERIODS = Periods(gather=0.2, retry=1.0)

ALL = "all claims"
"""The key of the resync."""

RESYNCS_APART_SECONDS = 5.0
"""The least time between two resyncs, however many Queues change."""


@dataclass(eq=False)
class ClaimController:
    """Reconciles claims while `run` runs; start it once the world is in sync.

    Attributes:
        steps: Carries the steps out.
        fence: Checked before each step, and again before each write.
        is_busy: Whether a binding that uses the claim is in progress.
        write_seconds: How long one write may take.
        periods: How often claims are reconciled.
    """

    steps: Steps
    fence: Fence
    _: KW_ONLY
    is_busy: Callable[[ClaimUid], bool]
    write_seconds: float = 2.0
    periods: Periods = PERIODS

    def __post_init__(self) -> None:
        self._world = self.steps.cleanup.world
        # Claims whose foreign pods were just evicted, or whose eviction is held back.
        self._evictions: KeyedBackoff[ClaimUid] = KeyedBackoff(HELD_BACK, random.random)
        self._reported: dict[ClaimUid, QueueName] = {}
        self._resynced_at = float("-inf")
        self._resync: Reconciler[str] = Reconciler("claims-resync", self._add_all)
        self._claims: Reconciler[ClaimUid] = Reconciler("claims", self._reconcile, workers=WORKERS)

    def changed(self, claim_uids: Iterable[ClaimUid]) -> None:
        """Add claims that changed, or whose pods or decisions changed."""
        for uid in claim_uids:
            self._claims.add_after(uid, self.periods.gather)

    def queues_changed(self) -> None:
        """Add all claims soon, since a change of a Queue may concern any of them."""
        rest = self._resynced_at + RESYNCS_APART_SECONDS - _now()
        self._resync.add_after(ALL, max(0.0, rest))

    async def run(self) -> None:
        """Reconcile until cancelled."""
        unsubscribe = self._world.assumptions.subscribe(self._assumed)
        self._resync.add(ALL)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._resync.run())
                group.create_task(self._claims.run())
        finally:
            unsubscribe()

    def _assumed(self, claims: Iterable[ClaimUid]) -> None:
        """Add claims whose decision ended: no change of an API object reports that."""
        self.changed([uid for uid in claims if uid not in self._world.assumptions])

    async def _add_all(self, _: str) -> Result:
        self._claims.add_all(claim.uid for claim in self._world.facts.claims())
        self._resynced_at = _now()
        return After(self.periods.resync * random.uniform(0.9, 1.0))

    async def _reconcile(self, uid: ClaimUid) -> Result:
        self._report_lost_queue(uid)
        now = self.steps.clock()
        step = self.steps.cleanup.next_step(uid, now)
        if not isinstance(step, EvictForeign):
            self._evictions.forget(uid)
        if step is None:
            return Done()
        if isinstance(step, RequeueAt):
            return After((step.at - now).total_seconds())
        if (seconds := self._wait_seconds(uid)) > 0:
            return After(seconds)
        with log_context(claimUID=uid):
            return await self._carry_out(uid, step)

    def _report_lost_queue(self, uid: ClaimUid) -> None:
        """Report a lost queue, once for as long as it stays lost."""
        found = lost_queue(uid, self._world)
        if found is None:
            self._reported.pop(uid, None)
        elif self._reported.get(uid) != found.queue and not self._why_fenced():
            self._reported[uid] = found.queue
            logger.warning("queue lost claim=%s queue=%s", found.claim, found.queue)
            self.steps.record(apiserver_events.queue_lost(found))

    def _wait_seconds(self, uid: ClaimUid) -> float:
        """How long the next step must wait; 0 if it may begin now."""
        if seconds := self._evictions.left(uid, _now()):
            return seconds
        return self.periods.retry if self._why_fenced() or self.is_busy(uid) else 0.0

    def _why_fenced(self) -> str:
        return self.fence.why_not(self.write_seconds)

    async def _carry_out(self, uid: ClaimUid, step: Step) -> Result:
        try:
            if isinstance(step, EvictForeign):
                return await self._evict(step)
            await self.steps.carry_out(step)
        except (ConflictError, NotFoundError) as error:
            # The watch event of the newer version adds the key again.
            logger.debug("claim in another version uid=%s: %s", uid, error)
            return Done()
        except PermanentError as error:
            logger.warning("claim not written uid=%s step=%s: %s", uid, _name(step), error)
            return Done()
        except ApiError as error:
            return failed_call(error)
        except FencedError as error:
            return Failed(error)
        return After(self.periods.gather)

    async def _evict(self, step: EvictForeign) -> Result:
        """Evict the foreign pods; no change of the claim repeats it before a back-off is over."""
        try:
            await self.steps.carry_out(step)
        except HeldBackError as error:
            logger.warning("eviction held back claim=%s/%s: %s", step.namespace, step.name, error)
            self.steps.record(apiserver_events.held_back(step, str(error)))
            return After(self._evictions.failed(step.uid, _now()))
        self._evictions.wait(step.uid, _now(), EVICTED_SECONDS)
        return After(self.periods.gather)


def _name(step: Step) -> str:
    return type(step).__name__


def _now() -> float:
    return asyncio.get_running_loop().time()

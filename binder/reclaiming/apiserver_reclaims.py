"""The preemption cycle: one cycle for all pods that wait for guaranteed quota.

    waiting pods ─► order ─► targets of each (scheduler_plugin.reclaiming) ─► carried out
        └───────────────── again after a change, or after a while ◄──────────────┘

A cycle is computed in small steps, so that kube-scheduler is answered in between. Each decision is
checked again right before it is carried out (`apiserver_targets`). `apiserver_holds` keeps and ends
the holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from binder.reclaiming.apiserver_context import ReclaimContext
from binder.reclaiming.apiserver_holds import HoldKeeper
from binder.reclaiming.apiserver_misses import MissKeeper
from binder.reclaiming.apiserver_placements import PlacementSource
from binder.reclaiming.apiserver_targets import TargetEvictor
from kube.reconciling.api import After, Reconciler, Result
from kube.shapes.times import time_of
from scheduler_plugin.accounting.api import Hold, PodChanged, WorldChange
from scheduler_plugin.objects.api import PodView
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.reclaiming.api import (
    Cycle,
    Decision,
    InProgress,
    Inventory,
    MissedNodes,
    NoCandidates,
    QueueOrder,
    Targets,
    may_want_device,
)

logger = logging.getLogger(__name__)

CYCLE = "cycle"
"""The only key: the targets of one pod depend on all waiting pods."""

TICK_SECONDS = 0.2
"""How long changes are gathered."""

REST = 5
"""The pause after a cycle, as a multiple of its duration."""

RECHECK_SECONDS = 5.0
"""The time to the next cycle without a change."""

SLICE_SECONDS = 0.001
"""How long a cycle computes before it sleeps for the same time."""

MOST_TARGET_SETS = 256
"""The largest number of heads with targets in a cycle; the next cycle serves the rest."""

MOST_EVICTIONS = 600
"""The largest number of evictions for one queue within a minute."""

STUCK = timedelta(seconds=60)
"""How long after its grace period a pod counts as terminating; then it counts as stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimConfig:
    """The inputs and limits of preemption.

    Attributes:
        short_of_room: Returns the pods that lack room below a limit.
        inventory: Nodes and devices.
        is_off: Whether preemption for quota is off.
        most_in_a_minute: The largest number of pods to evict for one queue within a minute.
    """

    short_of_room: Callable[[], Sequence[PodUid]]
    inventory: Inventory
    is_off: bool = False
    most_in_a_minute: int = MOST_EVICTIONS


class Reclaimer:
    """Evicts pods for guaranteed quota while `run` runs; to be run once the world is in sync."""

    def __init__(self, context: ReclaimContext, config: ReclaimConfig) -> None:
        self.on_unmet_changed: Callable[[], None] = lambda: None
        """Called when the condition `QuotaUnmet` of a Queue changed."""
        self._context = context
        self._world = context.world
        self._config = config
        missed = MissedNodes()
        self._placement_source = PlacementSource(context, config.inventory, missed)
        self._misses = MissKeeper(context, missed, self._placement_source.free_nodes)
        self.holds = HoldKeeper(context, missed, self._misses, self._now_stuck)
        self._evictor = TargetEvictor(context, self.holds, self._now_stuck, config.most_in_a_minute)
        # Pods that were tried and not bound; and the end of the grace period of terminating pods.
        self._tried: dict[PodUid, None] = {}
        self._leaving: dict[PodUid, datetime] = {}
        self._not_before = 0.0
        self._queue: Reconciler[str] = Reconciler(
            "reclaim", self._reconcile, why_not=self._context.why_not
        )

    # Events.

    def begin(self) -> None:
        """Restore the holds of all pods, before other pods may get what is held."""
        for pod in list(self._world.facts.pods()):
            self._follow(pod.uid)
        self._look_in(0.0)

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
        if isinstance(change, PodChanged):
            self._follow(change.uid)
        self._look_in(self._tick())

    def _look_in(self, seconds: float) -> None:
        if not self._config.is_off:
            self._queue.add_after(CYCLE, seconds)

    def _tick(self) -> float:
        return max(TICK_SECONDS, self._not_before - self._context.monotonic())

    def _follow(self, uid: PodUid) -> None:
        pod = self._world.facts.pod(uid)
        self._leaving.pop(uid, None)
        if pod is not None and pod.grace_ends_at and not pod.ended:
            self._leaving[uid] = time_of(pod.grace_ends_at)
        self._tried.pop(uid, None)
        if pod is not None and may_want_device(pod):
            self._tried[uid] = None
        self.holds.follow(uid)

    def _now_stuck(self) -> frozenset[PodUid]:
        """Terminating pods whose grace period ended more than `STUCK` ago."""
        last = self._context.clock() - STUCK
        return frozenset(uid for uid, moment in self._leaving.items() if moment < last)

    # The cycle.

    async def run(self) -> NoReturn:
        """Run cycles until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.holds.run())
            if not self._config.is_off:
                tasks.create_task(self._placement_source.run())
                tasks.create_task(self._misses.run())
                tasks.create_task(self._queue.run())
        raise AssertionError("reconcilers never end")

    async def _reconcile(self, _: str) -> Result:
        began = self._context.monotonic()
        waiting = self._waiting()
        excluded, eviction_limits = self._evictor.excluded(), self._evictor.eviction_limits()
        placements = self._placement_source.placements(excluded)
        cycle = Cycle(self._world, self._context.clock(), excluded, placements, eviction_limits)
        await self._run_steps(cycle.prepare(waiting))
        target_sets, unmet = await self._decided(
            cycle, iter(QueueOrder(waiting, cycle.queue_shares))
        )
        self._not_before = self._context.monotonic() + REST * (self._context.monotonic() - began)
        self._report_unmet(unmet)
        await self._evictor.carry_out(target_sets, cycle.queue_shares)
        # A waiting pod may become known without a change.
        return After(self._tick() if target_sets else RECHECK_SECONDS)

    def _waiting(self) -> list[PodView]:
        """The pods that lack room, and those that were tried and not bound."""
        uids = dict.fromkeys((*self._config.short_of_room(), *self._tried))
        found = (self._world.facts.pod(uid) for uid in uids)
        return [pod for pod in found if pod is not None and pod.may_be_bound]

    async def _decided(
        self, cycle: Cycle, order: Iterator[PodView]
    ) -> tuple[list[Targets], dict[QueueName, str]]:
        """The targets, and for queues with unmet quota the reason."""
        target_sets: list[Targets] = []
        free: list[Hold] = []
        guaranteed: list[Hold] = []
        unmet: dict[QueueName, str] = {}
        served: set[PodUid] = set()
        for pod in order:
            if pod.uid in served:
                continue
            found = await self._found(cycle, pod)
            if isinstance(found, Targets):
                served |= {hold.pod for hold in found.holds}
                target_sets.append(found)
            elif isinstance(found, InProgress):
                tried = [hold for hold in found.holds if hold.pod in self._tried]
                free += tried
                guaranteed += tried if found.is_guaranteed else ()
            elif found.unmet is not None:
                unmet.setdefault(found.unmet, found.sentence)
            if len(target_sets) >= MOST_TARGET_SETS:
                unmet |= self._still_unmet(order, unmet)
                break
        self._misses.note_free(free, self._now_stuck())
        self.holds.keep_free(guaranteed)
        return target_sets, unmet

    def _still_unmet(
        self, left: Iterable[PodView], unmet: Mapping[QueueName, str]
    ) -> dict[QueueName, str]:
        """The earlier reasons of queues whose pods the next cycle looks at."""
        queues = {self._world.facts.queue_of(pod) for pod in left}
        before = self._world.unmet.items()
        return {queue: why for queue, why in before if queue in queues and queue not in unmet}

    async def _found(self, cycle: Cycle, pod: PodView) -> Decision:
        """Decide about a pod; an unexpected error must not stop the cycle for other pods."""
        try:
            return await self._run_steps(self._steps(cycle, pod))
        except Exception as error:
            logger.exception("reclaim failed pod=%s", pod)
            return NoCandidates(f"{pod} waits: the decision about it failed: {error!r}.")

    def _steps(self, cycle: Cycle, pod: PodView) -> Iterator[Decision | None]:
        queue = self._world.facts.queue_of(pod)
        if self._evictor.backs_off(pod.uid):
            failed = "the API server failed at evictions for it a moment ago"
            return iter([NoCandidates(f"{pod} waits: {failed}; they are tried again.", queue)])
        if (why := self._placement_source.why_not_known(pod)) is not None:
            return iter([NoCandidates(why, queue if why else None)])
        return cycle.steps(pod)

    async def _run_steps(self, steps: Iterator[Decision | None]) -> Decision:
        """Run steps that yield, and sleep in between for the time that they took."""
        began = self._context.monotonic()
        for step in steps:
            if step is not None:
                return step
            if (took := self._context.monotonic() - began) > SLICE_SECONDS:
                await asyncio.sleep(took)
                began = self._context.monotonic()
        return InProgress()

    def _report_unmet(self, unmet: dict[QueueName, str]) -> None:
        if unmet != self._world.unmet:
            self._world.report_unmet(unmet)
            self.on_unmet_changed()

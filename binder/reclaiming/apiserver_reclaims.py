"""The preemption cycle: one cycle for all pods that wait for guaranteed quota.

    waiting pods ─► order ─► targets of each (scheduler_plugin.reclaiming) ─► carried out
        └───────────────── again after a change, or after a while ◄──────────────┘

A cycle is computed in small steps, so that kube-scheduler is answered in between. Each decision is
checked again right before it is carried out (`apiserver_takes`). `apiserver_holds` keeps and ends
the holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from binder.reclaiming.apiserver_holds import HoldKeeper
from binder.reclaiming.apiserver_misses import MissKeeper
from binder.reclaiming.apiserver_supplies import StockSupplies
from binder.reclaiming.apiserver_surroundings import Surroundings
from binder.reclaiming.apiserver_takes import Taker
from kube.api import After, Reconciler, Result
from kube.shapes.times import time_of
from scheduler_plugin.api import (
    Cycle,
    Decision,
    Hold,
    MissedNodes,
    Nobody,
    OnItsWay,
    PodChanged,
    PodUid,
    PodView,
    QueueName,
    QueueOrder,
    Stock,
    Take,
    WorldChange,
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

MOST_TAKES = 256
"""The largest number of heads with targets in a cycle; the next cycle serves the rest."""

MOST_EVICTIONS = 600
"""The largest number of evictions for one queue within a minute."""

STUCK = timedelta(seconds=60)
"""How long after its grace period a pod counts as terminating; then it counts as stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimConfig:
    """The inputs and limits of preemption.

    Attributes:
        lacking: Returns the pods that lack room below a limit.
        stock: Nodes and devices.
        is_off: Whether preemption for quota is off.
        most_in_a_minute: The largest number of pods to evict for one queue within a minute.
    """

    lacking: Callable[[], Sequence[PodUid]]
    stock: Stock
    is_off: bool = False
    most_in_a_minute: int = MOST_EVICTIONS


class Reclaimer:
    """Evicts pods for guaranteed quota while `run` runs; to be run once the world is in sync."""

    def __init__(self, around: Surroundings, config: ReclaimConfig) -> None:
        self.told: Callable[[], None] = lambda: None
        """Called when the condition `QuotaUnmet` of a Queue changed."""
        self._around = around
        self._world = around.world
        self._config = config
        missed = MissedNodes()
        self._supplies = StockSupplies(around, config.stock, missed)
        self._misses = MissKeeper(around, missed, self._supplies.free_nodes)
        self.holds = HoldKeeper(around, missed, self._misses, self._now_stuck)
        self._taker = Taker(around, self.holds, self._now_stuck, config.most_in_a_minute)
        # Pods that were tried and not bound; and the end of the grace period of terminating pods.
        self._tried: dict[PodUid, None] = {}
        self._leaving: dict[PodUid, datetime] = {}
        self._not_before = 0.0
        self._queue: Reconciler[str] = Reconciler(
            "reclaim", self._reconcile, why_not=self._around.why_not
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
        return max(TICK_SECONDS, self._not_before - self._around.monotonic())

    def _follow(self, uid: PodUid) -> None:
        pod = self._world.facts.pod(uid)
        self._leaving.pop(uid, None)
        if pod is not None and pod.leaves_at and not pod.ended:
            self._leaving[uid] = time_of(pod.leaves_at)
        self._tried.pop(uid, None)
        if pod is not None and may_want_device(pod):
            self._tried[uid] = None
        self.holds.follow(uid)

    def _now_stuck(self) -> frozenset[PodUid]:
        """Terminating pods whose grace period ended more than `STUCK` ago."""
        last = self._around.clock() - STUCK
        return frozenset(uid for uid, moment in self._leaving.items() if moment < last)

    # The cycle.

    async def run(self) -> NoReturn:
        """Run cycles until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.holds.run())
            if not self._config.is_off:
                tasks.create_task(self._supplies.run())
                tasks.create_task(self._misses.run())
                tasks.create_task(self._queue.run())
        raise AssertionError("reconcilers never end")

    async def _reconcile(self, _: str) -> Result:
        began = self._around.monotonic()
        waiting = self._waiting()
        away, rations = self._taker.away(), self._taker.rations()
        supply = self._supplies.supply(away)
        cycle = Cycle(self._world, self._around.clock(), away, supply, rations)
        await self._stepped(cycle.prepare(waiting))
        takes, unmet = await self._decided(cycle, iter(QueueOrder(waiting, cycle.standings)))
        self._not_before = self._around.monotonic() + REST * (self._around.monotonic() - began)
        self._tell_unmet(unmet)
        await self._taker.carry_out(takes, cycle.standings)
        # A waiting pod may become known without a change.
        return After(self._tick() if takes else RECHECK_SECONDS)

    def _waiting(self) -> list[PodView]:
        """The pods that lack room, and those that were tried and not bound."""
        uids = dict.fromkeys((*self._config.lacking(), *self._tried))
        found = (self._world.facts.pod(uid) for uid in uids)
        return [pod for pod in found if pod is not None and pod.may_be_bound]

    async def _decided(
        self, cycle: Cycle, order: Iterator[PodView]
    ) -> tuple[list[Take], dict[QueueName, str]]:
        """The targets, and for queues with unmet quota the reason."""
        takes: list[Take] = []
        free: list[Hold] = []
        guaranteed: list[Hold] = []
        unmet: dict[QueueName, str] = {}
        served: set[PodUid] = set()
        for pod in order:
            if pod.uid in served:
                continue
            found = await self._found(cycle, pod)
            if isinstance(found, Take):
                served |= {hold.pod for hold in found.holds}
                takes.append(found)
            elif isinstance(found, OnItsWay):
                tried = [hold for hold in found.holds if hold.pod in self._tried]
                free += tried
                guaranteed += tried if found.is_guaranteed else ()
            elif found.unmet is not None:
                unmet.setdefault(found.unmet, found.sentence)
            if len(takes) >= MOST_TAKES:
                unmet |= self._still_unmet(order, unmet)
                break
        self._misses.note_free(free, self._now_stuck())
        self.holds.keep_free(guaranteed)
        return takes, unmet

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
            return await self._stepped(self._steps(cycle, pod))
        except Exception as error:
            logger.exception("reclaim failed pod=%s", pod)
            return Nobody(f"{pod} waits: the decision about it failed: {error!r}.")

    def _steps(self, cycle: Cycle, pod: PodView) -> Iterator[Decision | None]:
        queue = self._world.facts.queue_of(pod)
        if self._taker.backs_off(pod.uid):
            failed = "the API server failed at evictions for it a moment ago"
            return iter([Nobody(f"{pod} waits: {failed}; they are tried again.", queue)])
        if (why := self._supplies.why_not_known(pod)) is not None:
            return iter([Nobody(why, queue if why else None)])
        return cycle.steps(pod)

    async def _stepped(self, steps: Iterator[Decision | None]) -> Decision:
        """Run steps that yield, and sleep in between for the time that they took."""
        began = self._around.monotonic()
        for step in steps:
            if step is not None:
                return step
            if (took := self._around.monotonic() - began) > SLICE_SECONDS:
                await asyncio.sleep(took)
                began = self._around.monotonic()
        return OnItsWay()

    def _tell_unmet(self, unmet: dict[QueueName, str]) -> None:
        if unmet != self._world.unmet:
            self._world.tell_unmet(unmet)
            self.told()

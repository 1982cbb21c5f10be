"""The controller of stale PodGroups: their pods are marked, and evicted after a grace period.

    changed pod, group ──► key: namespace and name of a group ──► next step
           ▲                                                      (scheduler_plugin.cleanup)
           └── requeued ◄────────────────────────────────────── none, or one step ──► API server

The begin of the grace period is written on the remaining pods, so the next leader continues it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from binder import apiserver_events
from binder.cleanup.periods import Periods
from binder.evictions.apiserver_evictions import EVICTED_SECONDS, Evictor, HeldBackError
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from kube.events.api import Event
from kube.reconciling.api import After, Done, Failed, Reconciler, Result
from scheduler_plugin.accounting.api import GroupChanged, PodChanged, World, WorldChange
from scheduler_plugin.cleanup.api import (
    EvictGang,
    GroupKey,
    MarkStale,
    MarkWhole,
    PodToEvict,
    RequeueAt,
    gang_step,
)
from scheduler_plugin.objects.api import FencedError
from scheduler_plugin.objects.names import PodUid

logger = logging.getLogger(__name__)

PERIODS = Periods(gather=0.5, retry=5.0)


@dataclass(eq=False)
class GangController:
    """Reconciles PodGroups while `run` runs; start it once the world is in sync.

    Attributes:
        grace: How long a group that sets no grace period may have too few pods; None for no limit.
        record: Takes Events without blocking.
        clock: Returns the current time.
        periods: How often groups are reconciled. If a disruption budget holds an eviction back, the
            group is retried after `retry`.
    """

    writes: ReclaimWrites
    world: World
    _: KW_ONLY
    grace: timedelta | None
    record: Callable[[Event], None]
    clock: Callable[[], datetime]
    periods: Periods = PERIODS

    def __post_init__(self) -> None:
        self._queue: Reconciler[GroupKey] = Reconciler("pod-groups", self._reconcile)
        # When a group whose pods were evicted may be evicted again.
        self._evicted: dict[GroupKey, float] = {}
        # A deleted pod no longer says which group it was in.
        self._group_of: dict[PodUid, GroupKey] = {}

    def begin(self) -> None:
        """Add the groups of all known pods."""
        for pod in list(self.world.facts.pods()):
            self.changed(PodChanged(pod.uid))

    def changed(self, change: WorldChange) -> None:
        """Add the groups that a change concerns; subscribe this to the world."""
        if isinstance(change, GroupChanged):
            self._add((change.namespace, change.name))
        elif isinstance(change, PodChanged):
            self._follow(change.uid)

    def _follow(self, uid: PodUid) -> None:
        pod, before = self.world.facts.pod(uid), self._group_of.pop(uid, None)
        if before is not None:
            self._add(before)
        if pod is not None and pod.group:
            key = self._group_of[uid] = pod.namespace, pod.group
            self._add(key)

    def _add(self, key: GroupKey) -> None:
        self._queue.add_after(key, self.periods.gather)

    async def run(self) -> NoReturn:
        """Reconcile until cancelled."""
        await self._queue.run()

    async def _reconcile(self, key: GroupKey) -> Result:
        now = self.clock()
        step = gang_step(key, self.world, now, self.grace)
        if not isinstance(step, EvictGang):
            self._evicted.pop(key, None)
        if step is None:
            return Done()
        if isinstance(step, RequeueAt):
            return After((step.at - now).total_seconds())
        if (seconds := self._wait_seconds(key)) > 0:
            return After(seconds)
        try:
            return await self._carry_out(key, step)
        except HeldBackError as error:
            logger.warning("pod group held back group=%s/%s: %s", *key, error)
            return After(self.periods.retry)
        except FencedError as error:
            return Failed(error)

    def _wait_seconds(self, key: GroupKey) -> float:
        """How long the next step must wait; 0 if it may begin now."""
        if (seconds := self._evicted.get(key, 0.0) - _now()) > 0:
            return seconds
        return self.periods.retry if self.writes.fence.why_not(self.writes.write_seconds) else 0.0

    async def _carry_out(self, key: GroupKey, step: MarkStale | MarkWhole | EvictGang) -> Result:
        match step:
            case MarkStale(pods, since, sentence, event_targets):
                for pod in pods:
                    await self.writes.write_stale(pod, since, sentence)
                self._record(
                    apiserver_events.gang_stale(event_targets, sentence, self.world.facts.tree)
                )
            case MarkWhole(pods, sentence):
                for pod in pods:
                    await self.writes.write_stale(pod, None, sentence)
            case EvictGang():
                await self._evict(key, step)
        return After(self.periods.gather)

    async def _evict(self, key: GroupKey, step: EvictGang) -> None:
        """Evict all or none. If the process is killed in between, the next evicts the rest."""
        evictor: Evictor = self.writes.evictor
        pods = [PodToEvict.of(pod) for pod in step.pods]
        await evictor.dry_run(pods)
        self.world.assumptions.group_backoffs.evicted(key, self.clock())
        self._record(apiserver_events.gang_given_up(step, self.world.facts.tree))
        for pod in pods:
            if await evictor.evict(pod):
                self._record([apiserver_events.pod_given_up(pod, step.sentence)])
        self._evicted[key] = _now() + EVICTED_SECONDS

    def _record(self, events: Iterable[Event]) -> None:
        for event in events:
            apiserver_events.report(event, self.record)


def _now() -> float:
    return asyncio.get_running_loop().time()

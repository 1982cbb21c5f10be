"""The controller of PodGroups that lost pods: marked, and after a grace period evicted as one.

    changed pod, group ──► key: namespace and name of a group ──► what is next?
           ▲                                                      (scheduler_plugin.keeping)
           └── later, or again after a failure ◄────────────── none, or one step ──► API server

When it began stands on the pods that are left, so the process that leads next goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from binder import apiserver_events
from binder.evictions.apiserver_evictions import EVICTED_SECONDS, Evictor, HeldBackError
from binder.keeping.periods import Periods
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from kube.api import After, Done, Event, Failed, Reconciler, Result
from scheduler_plugin.api import (
    EvictGang,
    FencedError,
    GroupChanged,
    GroupKey,
    MarkStale,
    MarkWhole,
    PodChanged,
    PodToEvict,
    PodUid,
    RequeueAt,
    World,
    WorldChange,
    gang_step,
)

logger = logging.getLogger(__name__)

PERIODS = Periods(gather=0.5, retry=5.0)


@dataclass(eq=False)
class GangController:
    """Looks after PodGroups while `run` runs; to be run once the world is in sync.

    Attributes:
        grace: How long a group may have too few pods that does not say so itself; None for no end.
        record: Takes Events and returns at once.
        clock: The time now.
        periods: How often groups are looked at. Held back by a budget, they are again after
            `retry`.
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
        # When groups whose pods were evicted may be evicted again.
        self._evicted: dict[GroupKey, float] = {}
        # Of a pod that is gone nothing else says which group it was of.
        self._group_of: dict[PodUid, GroupKey] = {}

    def begin(self) -> None:
        """Look at all that are there."""
        for pod in list(self.world.facts.pods()):
            self.changed(PodChanged(pod.uid))

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
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
        """For how long no step may begin; 0 where one may."""
        if (seconds := self._evicted.get(key, 0.0) - _now()) > 0:
            return seconds
        return self.periods.retry if self.writes.fence.why_not(self.writes.write_seconds) else 0.0

    async def _carry_out(self, key: GroupKey, step: MarkStale | MarkWhole | EvictGang) -> Result:
        match step:
            case MarkStale(pods, since, sentence, sides):
                for pod in pods:
                    await self.writes.tell_stale(pod, since, sentence)
                self._record(apiserver_events.gang_stale(sides, sentence, self.world.facts.tree))
            case MarkWhole(pods, sentence):
                for pod in pods:
                    await self.writes.tell_stale(pod, None, sentence)
            case EvictGang():
                await self._evict(key, step)
        return After(self.periods.gather)

    async def _evict(self, key: GroupKey, step: EvictGang) -> None:
        """Evict all or none; killed in between, the next process evicts those that are left."""
        evictor: Evictor = self.writes.evictor
        pods = [PodToEvict.of(pod) for pod in step.pods]
        await evictor.ask(pods)
        self.world.assumptions.group_backoffs.evicted(key, self.clock())
        self._record(apiserver_events.gang_given_up(step, self.world.facts.tree))
        for pod in pods:
            if await evictor.evict(pod):
                self._record([apiserver_events.pod_given_up(pod, step.sentence)])
        self._evicted[key] = _now() + EVICTED_SECONDS

    def _record(self, events: Iterable[Event]) -> None:
        for event in events:
            apiserver_events.tell(event, self.record)


def _now() -> float:
    return asyncio.get_running_loop().time()

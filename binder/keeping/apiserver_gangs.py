"""PodGroups that lost pods, on the API server: told, and after a grace evicted as one.

    changed pod, group ─┐
    alarm ──────────────┴─► asked ─► what is next? (scheduler_plugin.keeping) ─► API server

When it began stands on the pods that are left, so whoever leads next goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from binder import apiserver_events
from binder.apiserver_evictions import EVICTED_SECONDS, Evictor, HeldBackError
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from kube.api import ApiError, Event
from scheduler_plugin.api import (
    Due,
    FencedError,
    GangStep,
    GiveUp,
    GroupChanged,
    GroupKey,
    LookAgain,
    PodChanged,
    PodToEvict,
    PodUid,
    TellStale,
    TellWhole,
    World,
    WorldChange,
    gang_step,
)

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.5
"""How long changes are gathered."""

AGAIN_SECONDS = 5.0
"""How soon something is tried again that failed, or that a budget holds back."""


@dataclass(eq=False)
class GangKeeper:
    """Looks after PodGroups while `run` runs; to be run once the world is in sync.

    Attributes:
        grace: How long a group may have too few pods that does not say so itself; None for ever.
        record: Takes Events and returns at once.
        clock: The time now.
        monotonic: The seconds of a clock that nobody sets.
    """

    writes: ReclaimWrites
    world: World
    _: KW_ONLY
    grace: timedelta | None
    record: Callable[[Event], None]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]

    def __post_init__(self) -> None:
        self._asked: dict[GroupKey, None] = {}
        self._alarms: Due[GroupKey] = Due()
        self._resting: Due[GroupKey] = Due()
        # Of a pod that is gone nobody else says which group it was of.
        self._group_of: dict[PodUid, GroupKey] = {}

    def begin(self) -> None:
        """Look at all that are there."""
        for pod in list(self.world.facts.pods()):
            self.changed(PodChanged(pod.uid))

    def changed(self, change: WorldChange) -> None:
        """The world took a change; fit to be subscribed to it."""
        if isinstance(change, GroupChanged):
            self._asked[change.namespace, change.name] = None
        elif isinstance(change, PodChanged):
            self._follow(change.uid)

    def _follow(self, uid: PodUid) -> None:
        pod, before = self.world.facts.pod(uid), self._group_of.pop(uid, None)
        if before is not None:
            self._asked[before] = None
        if pod is not None and pod.group:
            key = self._group_of[uid] = pod.namespace, pod.group
            self._asked[key] = None

    async def run(self) -> NoReturn:
        """Keep until cancelled."""
        while True:
            if not self.writes.fence.why_not(self.writes.write_seconds):
                await self._round()
            await asyncio.sleep(TICK_SECONDS)

    async def _round(self) -> None:
        keys = dict.fromkeys((*self._asked, *self._alarms.take(self.monotonic())))
        self._asked.clear()
        self._resting.take(self.monotonic())
        for key in keys:
            if key in self._resting:
                self._look_again(key, EVICTED_SECONDS)
                continue
            try:
                step = gang_step(key, self.world, self.clock(), self.grace)
                await self._carry_out(key, step)
            except (ApiError, FencedError, HeldBackError) as error:
                logger.warning("pod group not kept yet group=%s/%s: %s", *key, error)
                self._look_again(key, AGAIN_SECONDS)
            except Exception:  # An odd object must not cost the others their keeper.
                logger.exception("pod group not kept group=%s/%s", *key)

    def _tell(self, events: Iterable[Event]) -> None:
        for event in events:
            apiserver_events.tell(event, self.record)

    def _look_again(self, key: GroupKey, seconds: float) -> None:
        self._alarms.set(key, self.monotonic() + seconds)

    async def _carry_out(self, key: GroupKey, step: GangStep | None) -> None:
        match step:
            case TellStale(pods, since, sentence, sides):
                for pod in pods:
                    await self.writes.tell_stale(pod, since, sentence)
                self._tell(apiserver_events.gang_stale(sides, sentence, self.world.facts.tree))
                self._asked[key] = None
            case TellWhole(pods, sentence):
                for pod in pods:
                    await self.writes.tell_stale(pod, None, sentence)
            case LookAgain(at):
                self._look_again(key, (at - self.clock()).total_seconds())
            case GiveUp():
                await self._evict(key, step)
            case None:
                self._alarms.drop(key)

    async def _evict(self, key: GroupKey, step: GiveUp) -> None:
        """Evict all, or nobody; whoever is killed in between leaves the rest for the next."""
        evictor: Evictor = self.writes.evictor
        pods = [PodToEvict.of(pod) for pod in step.pods]
        await evictor.ask(pods)
        self.world.assumptions.group_backoffs.evicted(key, self.clock())
        self._tell(apiserver_events.gang_given_up(step, self.world.facts.tree))
        for pod in pods:
            if await evictor.evict(pod):
                self._tell([apiserver_events.pod_given_up(pod, step.sentence)])
        self._resting.set(key, self.monotonic() + EVICTED_SECONDS)
        self._look_again(key, EVICTED_SECONDS)

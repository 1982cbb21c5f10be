"""Carries out targets: checked, held, condition written, and evicted pod by pod.

    dry run and budgets ─► still due? ─► hold, condition ─► evict each ─► Events

The process may be killed at any step: no pod is evicted before the condition names the preemptor,
so the next leader restores the hold, and decides anew about the rest.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence

from binder import apiserver_events
from binder.evictions.apiserver_evictions import EVICTED_SECONDS, HELD_BACK, HeldBackError
from binder.reclaiming.apiserver_holds import HoldKeeper
from binder.reclaiming.apiserver_surroundings import Surroundings
from binder.reclaiming.prometheus_reclaims import PUT_OFF
from kube.api import ApiError, Backoff, KeyedBackoff
from scheduler_plugin.api import (
    DEVICE_RECLAIMED,
    Away,
    FencedError,
    PodToEvict,
    PodUid,
    PutOff,
    QueueName,
    Standings,
    Take,
    equivalence_class,
    held_text,
    is_due,
)

logger = logging.getLogger(__name__)

AT_ONE_TIME = 8
"""How many sets of targets are checked and evicted concurrently."""

MINUTE = 60.0

_FAILED = Backoff(first_seconds=2.0, cap_seconds=60.0)


class Taker:
    """Carries out targets, and remembers for a while which pods may not be evicted."""

    def __init__(
        self,
        around: Surroundings,
        holds: HoldKeeper,
        stuck: Callable[[], Collection[PodUid]],
        most_in_a_minute: int,
    ) -> None:
        """Create.

        Args:
            around: The shared context.
            holds: Keeps the holds.
            stuck: Returns the pods that are terminating and do not end.
            most_in_a_minute: The largest number of pods to evict for one queue within a minute.
        """
        self._stuck = stuck
        self._around = around
        self._writes = around.writes
        self._world = around.world
        self._holds = holds
        self._most = most_in_a_minute
        # Evicted pods, each with the time by which the watch has to show it.
        self._evicted: dict[PodUid, float] = {}
        self._held_back: KeyedBackoff[PodUid] = KeyedBackoff(HELD_BACK, random.random)
        self._said: dict[PodUid, str] = {}
        self._failed: KeyedBackoff[PodUid] = KeyedBackoff(_FAILED, random.random)
        self._for_queue: dict[QueueName, deque[float]] = {}

    def away(self) -> Away:
        """The pods that are no candidates now."""
        now = self._around.monotonic()
        self._evicted = {uid: until for uid, until in self._evicted.items() if until > now}
        said = self._said.items()
        self._said = {uid: why for uid, why in said if self._held_back.left(uid, now)}
        return Away(frozenset(self._evicted), dict(self._said), frozenset(self._stuck()))

    def backs_off(self, uid: PodUid) -> bool:
        """Whether the API server failed at evictions for a pod a moment ago."""
        return self._failed.left(uid, self._around.monotonic()) > 0

    def rations(self) -> PutOff:
        """The eviction limit of one cycle; it counts the targets of the cycle as well."""
        planned: Counter[QueueName] = Counter()

        def put_off(queue: QueueName, pods: int) -> str:
            if self._evicted_for(queue) + planned[queue] >= self._most:
                PUT_OFF.labels(queue).inc()
                most = f"{self._most} pods were evicted for its queue within a minute"
                return f"{most}, the largest number (accounting.evictionsPerMinute)."
            planned[queue] += pods
            return ""

        return put_off

    def _evicted_for(self, queue: QueueName) -> int:
        """The number of pods evicted for a queue within the last minute."""
        evicted = self._for_queue.get(queue, deque())
        while evicted and evicted[0] <= self._around.monotonic() - MINUTE:
            evicted.popleft()
        if not evicted:
            self._for_queue.pop(queue, None)
        return len(evicted)

    async def carry_out(self, takes: Sequence[Take], standings: Standings) -> None:
        """Evict the targets, each set on its own; a later cycle decides again about failed sets."""
        free = asyncio.Semaphore(AT_ONE_TIME)

        async def in_turn(group: list[Take]) -> None:
            async with free:
                for take in group:
                    await self._carry_out(take, standings)

        async with asyncio.TaskGroup() as tasks:
            for group in await self._in_groups(takes):
                tasks.create_task(in_turn(group))

    async def _in_groups(self, takes: Sequence[Take]) -> list[list[Take]]:
        """Groups of sets to evict one after another, since one budget may concern several."""
        found: list[list[Take]] = []
        for namespaces, group in by_namespaces(takes):
            is_free = len(group) > 1 and not await self._have_budgets(namespaces)
            found += [[take] for take in group] if is_free else [group]
        return found

    async def _have_budgets(self, namespaces: Iterable[str]) -> bool:
        """Whether there may be budgets in these namespaces; True where it is not known."""
        try:
            found = [await self._writes.evictor.has_budgets(name) for name in namespaces]
        except ApiError:
            return True
        return any(found)

    async def _carry_out(self, take: Take, standings: Standings) -> None:
        pods = [PodToEvict.of(pod) for pod in take.pods]
        try:
            await self._writes.evictor.ask(pods)
            if is_due(take, self._world, self._around.clock(), self.away(), standings):
                await self._take(take, pods)
        except HeldBackError as error:
            self._hold_back(take, pods, error)
        except (ApiError, FencedError) as error:
            self._failed.failed(take.pod.uid, self._around.monotonic())
            logger.warning("targets not evicted pod=%s: %s", take.pod, error)
        else:
            self._failed.forget(take.pod.uid)

    def _hold_back(self, take: Take, pods: Sequence[PodToEvict], error: HeldBackError) -> None:
        for pod in pods if error.pod is None else [error.pod]:
            self._held_back.failed(pod.uid, self._around.monotonic())
            self._said[pod.uid] = str(error)
        logger.info("targets may not be evicted now pod=%s: %s", take.pod, error)
        self._around.tell(apiserver_events.reclaim_held_back(take, str(error)))

    async def _take(self, take: Take, pods: Sequence[PodToEvict]) -> None:
        """Begin the holds, write the conditions, and evict. The conditions survive a restart."""
        self._holds.begin(take.holds)
        try:
            await self._tell_held(take)
            await self._evict(take, pods)
        finally:
            self._holds.told(take.holds)

    async def _tell_held(self, take: Take) -> None:
        for hold in take.holds:
            pod = self._world.facts.pod(hold.pod)
            if pod is None:
                continue
            reason = DEVICE_RECLAIMED if take.is_device else "Reclaimed"
            message = f"{take.sentence} {held_text(hold.held)}".strip()
            await self._writes.tell(pod, holds=True, reason=reason, message=message)

    async def _evict(self, take: Take, pods: Sequence[PodToEvict]) -> None:
        """Evict pod by pod while the holds last; a later cycle decides again about the rest."""
        for number, (pod, view) in enumerate(zip(pods, take.pods, strict=True)):
            if not all(hold.pod in self._world.assumptions.holds for hold in take.holds):
                return
            kind = equivalence_class(view, self._world.facts)
            is_evicted = await self._writes.evictor.evict(pod)
            self._evicted[pod.uid] = self._around.monotonic() + EVICTED_SECONDS
            self._world.assumptions.backoffs.evicted(kind, self._around.clock())
            if is_evicted:
                self._for_queue.setdefault(take.hold.queue, deque()).append(
                    self._around.monotonic()
                )
                self._tell_evicted(take, pod, is_first=not number)

    def _tell_evicted(self, take: Take, pod: PodToEvict, *, is_first: bool) -> None:
        if is_first:
            for event in apiserver_events.reclaimed(take, self._world.facts.tree):
                self._around.tell(event)
        self._around.tell(apiserver_events.pod_reclaimed(pod, take))


def by_namespaces(takes: Iterable[Take]) -> list[tuple[frozenset[str], list[Take]]]:
    """Groups of sets that have a namespace in common, with their namespaces."""
    groups: list[tuple[frozenset[str], list[Take]]] = []
    for take in takes:
        of = frozenset(pod.namespace for pod in take.pods)
        joined = [group for group in groups if group[0] & of]
        groups = [group for group in groups if not group[0] & of]
        before = [each for _, group in joined for each in group]
        groups.append((of.union(*(names for names, _ in joined)), [*before, take]))
    return groups

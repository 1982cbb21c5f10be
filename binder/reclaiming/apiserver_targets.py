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
from binder.reclaiming.apiserver_context import ReclaimContext
from binder.reclaiming.apiserver_holds import HoldKeeper
from binder.reclaiming.prometheus_reclaims import PUT_OFF
from kube.backoff import Backoff
from kube.calls.api import ApiError
from kube.reconciling.api import KeyedBackoff
from scheduler_plugin.cleanup.api import PodToEvict
from scheduler_plugin.judging.api import equivalence_class
from scheduler_plugin.objects.api import FencedError, held_text
from scheduler_plugin.objects.names import DEVICE_RECLAIMED, PodUid, QueueName
from scheduler_plugin.reclaiming.api import (
    EvictionLimit,
    ExcludedPods,
    QueueShares,
    Targets,
    is_due,
)

logger = logging.getLogger(__name__)

CONCURRENT_SETS = 8
"""How many sets of targets are checked and evicted concurrently."""

MINUTE = 60.0

_FAILED = Backoff(first_seconds=2.0, cap_seconds=60.0)


class TargetEvictor:
    """Carries out targets, and remembers for a while which pods may not be evicted."""

    def __init__(
        self,
        context: ReclaimContext,
        holds: HoldKeeper,
        stuck: Callable[[], Collection[PodUid]],
        most_in_a_minute: int,
    ) -> None:
        """Create.

        Args:
            context: The shared context.
            holds: Keeps the holds.
            stuck: Returns the pods that are terminating and do not end.
            most_in_a_minute: The largest number of pods to evict for one queue within a minute.
        """
        self._stuck = stuck
        self._context = context
        self._writes = context.writes
        self._world = context.world
        self._holds = holds
        self._most = most_in_a_minute
        # Evicted pods, each with the time by which the watch has to show it.
        self._evicted: dict[PodUid, float] = {}
        self._held_back: KeyedBackoff[PodUid] = KeyedBackoff(HELD_BACK, random.random)
        self._reasons: dict[PodUid, str] = {}
        self._failed: KeyedBackoff[PodUid] = KeyedBackoff(_FAILED, random.random)
        self._for_queue: dict[QueueName, deque[float]] = {}

    def excluded(self) -> ExcludedPods:
        """The pods that are no candidates now."""
        now = self._context.monotonic()
        self._evicted = {uid: until for uid, until in self._evicted.items() if until > now}
        reasons = self._reasons.items()
        self._reasons = {uid: why for uid, why in reasons if self._held_back.left(uid, now)}
        return ExcludedPods(frozenset(self._evicted), dict(self._reasons), frozenset(self._stuck()))

    def backs_off(self, uid: PodUid) -> bool:
        """Whether the API server failed at evictions for a pod a moment ago."""
        return self._failed.left(uid, self._context.monotonic()) > 0

    def eviction_limits(self) -> EvictionLimit:
        """The eviction limit of one cycle; it counts the targets of the cycle as well."""
        planned: Counter[QueueName] = Counter()

        def limit(queue: QueueName, pods: int) -> str:
            if self._evicted_for(queue) + planned[queue] >= self._most:
                PUT_OFF.labels(queue).inc()
                most = f"{self._most} pods were evicted for its queue within a minute"
                return f"{most}, the largest number (accounting.evictionsPerMinute)."
            planned[queue] += pods
            return ""

        return limit

    def _evicted_for(self, queue: QueueName) -> int:
        """The number of pods evicted for a queue within the last minute."""
        evicted = self._for_queue.get(queue, deque())
        while evicted and evicted[0] <= self._context.monotonic() - MINUTE:
            evicted.popleft()
        if not evicted:
            self._for_queue.pop(queue, None)
        return len(evicted)

    async def carry_out(self, target_sets: Sequence[Targets], queue_shares: QueueShares) -> None:
        """Evict the targets, each set on its own; a later cycle decides again about failed sets."""
        free = asyncio.Semaphore(CONCURRENT_SETS)

        async def in_turn(group: list[Targets]) -> None:
            async with free:
                for targets in group:
                    await self._carry_out(targets, queue_shares)

        async with asyncio.TaskGroup() as tasks:
            for group in await self._in_groups(target_sets):
                tasks.create_task(in_turn(group))

    async def _in_groups(self, target_sets: Sequence[Targets]) -> list[list[Targets]]:
        """Groups of sets to evict one after another, since one budget may concern several."""
        found: list[list[Targets]] = []
        for namespaces, group in by_namespaces(target_sets):
            is_free = len(group) > 1 and not await self._have_budgets(namespaces)
            found += [[targets] for targets in group] if is_free else [group]
        return found

    async def _have_budgets(self, namespaces: Iterable[str]) -> bool:
        """Whether there may be budgets in these namespaces; True where it is not known."""
        try:
            found = [await self._writes.evictor.has_budgets(name) for name in namespaces]
        except ApiError:
            return True
        return any(found)

    async def _carry_out(self, targets: Targets, queue_shares: QueueShares) -> None:
        pods = [PodToEvict.of(pod) for pod in targets.pods]
        try:
            await self._writes.evictor.dry_run(pods)
            if is_due(targets, self._world, self._context.clock(), self.excluded(), queue_shares):
                await self._hold_and_evict(targets, pods)
        except HeldBackError as error:
            self._hold_back(targets, pods, error)
        except (ApiError, FencedError) as error:
            self._failed.failed(targets.pod.uid, self._context.monotonic())
            logger.warning("targets not evicted pod=%s: %s", targets.pod, error)
        else:
            self._failed.forget(targets.pod.uid)

    def _hold_back(
        self, targets: Targets, pods: Sequence[PodToEvict], error: HeldBackError
    ) -> None:
        for pod in pods if error.pod is None else [error.pod]:
            self._held_back.failed(pod.uid, self._context.monotonic())
            self._reasons[pod.uid] = str(error)
        logger.info("targets may not be evicted now pod=%s: %s", targets.pod, error)
        self._context.report(apiserver_events.reclaim_held_back(targets, str(error)))

    async def _hold_and_evict(self, targets: Targets, pods: Sequence[PodToEvict]) -> None:
        """Begin the holds, write the conditions, and evict. The conditions survive a restart."""
        self._holds.begin(targets.holds)
        try:
            await self._write_held(targets)
            await self._evict(targets, pods)
        finally:
            self._holds.conditions_written(targets.holds)

    async def _write_held(self, targets: Targets) -> None:
        for hold in targets.holds:
            pod = self._world.facts.pod(hold.pod)
            if pod is None:
                continue
            reason = DEVICE_RECLAIMED if targets.is_device else "Reclaimed"
            message = f"{targets.sentence} {held_text(hold.held)}".strip()
            await self._writes.write_reclaiming(pod, holds=True, reason=reason, message=message)

    async def _evict(self, targets: Targets, pods: Sequence[PodToEvict]) -> None:
        """Evict pod by pod while the holds last; a later cycle decides again about the rest."""
        for number, (pod, view) in enumerate(zip(pods, targets.pods, strict=True)):
            if not all(hold.pod in self._world.assumptions.holds for hold in targets.holds):
                return
            kind = equivalence_class(view, self._world.facts)
            is_evicted = await self._writes.evictor.evict(pod)
            self._evicted[pod.uid] = self._context.monotonic() + EVICTED_SECONDS
            self._world.assumptions.backoffs.evicted(kind, self._context.clock())
            if is_evicted:
                self._for_queue.setdefault(targets.hold.queue, deque()).append(
                    self._context.monotonic()
                )
                self._report_evicted(targets, pod, is_first=not number)

    def _report_evicted(self, targets: Targets, pod: PodToEvict, *, is_first: bool) -> None:
        if is_first:
            for event in apiserver_events.reclaimed(targets, self._world.facts.tree):
                self._context.report(event)
        self._context.report(apiserver_events.pod_reclaimed(pod, targets))


def by_namespaces(target_sets: Iterable[Targets]) -> list[tuple[frozenset[str], list[Targets]]]:
    """Groups of sets that have a namespace in common, with their namespaces."""
    groups: list[tuple[frozenset[str], list[Targets]]] = []
    for targets in target_sets:
        of = frozenset(pod.namespace for pod in targets.pods)
        joined = [group for group in groups if group[0] & of]
        groups = [group for group in groups if not group[0] & of]
        before = [each for _, group in joined for each in group]
        groups.append((of.union(*(names for names, _ in joined)), [*before, targets]))
    return groups

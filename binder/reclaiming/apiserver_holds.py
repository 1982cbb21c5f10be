"""Holds for pods, as the pods' conditions state them: restored, and ended.

    condition of a pod ──► hold ──► bound ─────────────► condition written, hold ended
                                ├─► deleted ───────────► hold ended
                                └─► deadline passed ─┬─► still in use ─► condition written, ended
                                                     └─► free all the time ─► missed, condition
                                                                              written, ended

A hold follows the condition in every process and after every restart, so the next leader finds
what was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import NoReturn

from binder.reclaiming.apiserver_context import ReclaimContext
from binder.reclaiming.apiserver_misses import FREE_SECONDS, MissKeeper
from kube.reconciling.api import After, Done, Reconciler, Result
from scheduler_plugin.accounting.api import Hold
from scheduler_plugin.judging.api import placement_class
from scheduler_plugin.objects.api import PodView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.api import MissedNodes, Outlook, hold_of, outlook

LOOK_SECONDS = 5.0
"""How often the outlook of a hold is checked."""


class HoldKeeper:
    """Keeps the holds of the world equal to the pods' conditions; `run` ends holds."""

    def __init__(
        self,
        context: ReclaimContext,
        missed: MissedNodes,
        misses: MissKeeper,
        stuck: Callable[[], Collection[PodUid]],
    ) -> None:
        """`stuck` returns the pods that are terminating and do not end."""
        self._context = context
        self._world = context.world
        self._missed = missed
        self._misses = misses
        self._stuck = stuck
        # The deadline of each hold, and the time of the last check.
        self._deadlines: dict[PodUid, tuple[float, float]] = {}
        # The placement classes of pods with holds: a bound pod does not show its class any more.
        self._kinds: dict[PodUid, Hashable] = {}
        self._being_written: frozenset[PodUid] = frozenset()
        # Pods with a hold on what is free, which no condition states.
        self._unstated: set[PodUid] = set()
        self._queue: Reconciler[PodUid] = Reconciler(
            "holds", self._reconcile, why_not=context.why_not
        )

    async def run(self) -> NoReturn:
        """End holds until cancelled."""
        await self._queue.run()

    def begin(self, holds: Collection[Hold]) -> None:
        """Begin these holds; their conditions are written before `conditions_written` is called."""
        self._being_written |= frozenset(hold.pod for hold in holds)
        for hold in holds:
            self._unstated.discard(hold.pod)
            self._hold(hold)

    def keep_free(self, holds: Iterable[Hold]) -> None:
        """Hold what is free for these pods, before borrowing pods get it.

        No condition states these holds. They last for `FREE_SECONDS`; a pod that is not bound by
        then misses its node. A pod may have gone, or been bound, since the cycle looked at it.
        """
        stuck = self._stuck()
        for hold in holds:
            is_there = outlook(hold, self._world, stuck) is Outlook.IS_FREE
            waits = self._waits(hold.pod) and hold.pod not in self._world.assumptions.holds
            if hold.is_device and is_there and waits:
                self._unstated.add(hold.pod)
                self._hold(hold)

    def _waits(self, uid: PodUid) -> bool:
        pod = self._world.facts.pod(uid)
        return pod is not None and pod.may_be_bound

    def conditions_written(self, holds: Collection[Hold]) -> None:
        """The writes of the conditions have ended: holds follow the conditions from now on."""
        self._being_written -= frozenset(hold.pod for hold in holds)
        for hold in holds:
            self.follow(hold.pod)

    def follow(self, uid: PodUid) -> None:
        """A pod was created, changed or deleted."""
        pod = self._world.facts.pod(uid)
        if pod is not None and pod.missed:
            self._misses.read(pod)
        if pod is None or not pod.may_be_bound:
            self._end(uid, pod)
        elif uid in self._being_written or uid in self._unstated:
            return
        elif not pod.reclaiming:
            self._end(uid, pod)
        elif uid not in self._world.assumptions.holds and (hold := hold_of(pod, self._world)):
            self._hold(hold)

    def _end(self, uid: PodUid, pod: PodView | None) -> None:
        """End a pod's hold. The node of a bound pod proves that pods of its class fit there."""
        self._unstated.discard(uid)
        kind = self._kinds.pop(uid, None)
        if pod is not None and pod.is_bound and kind is not None:
            self._missed.bound(kind, pod.node)
        if uid in self._world.assumptions.holds:
            self._world.end_hold(uid)
        if pod is not None and pod.reclaiming and pod.is_bound:
            self._queue.add(uid)

    def _hold(self, hold: Hold) -> None:
        self._world.hold(hold)
        if (pod := self._world.facts.pod(hold.pod)) is not None and pod.may_be_bound:
            self._kinds[hold.pod] = placement_class(pod, self._world.facts)
        self._deadlines.pop(hold.pod, None)
        self._queue.add(hold.pod)

    # The end of holds.

    async def _reconcile(self, uid: PodUid) -> Result:
        pod, hold = self._world.facts.pod(uid), self._world.assumptions.holds.get(uid)
        if pod is not None and pod.reclaiming and pod.is_bound:
            await self._write_ended(pod, "Bound", "The pod is bound.")
        if pod is None:
            self._end(uid, None)
        if pod is None or hold is None:
            self._deadlines.pop(uid, None)
            return Done()
        found = outlook(hold, self._world, self._stuck())
        if (seconds_left := self._seconds_left(uid, found)) > 0:
            return After(min(seconds_left, LOOK_SECONDS))
        await self._end_expired(pod, hold, found)
        return Done()

    def _seconds_left(self, uid: PodUid, found: Outlook) -> float:
        """The seconds until the deadline of a hold.

        The time begins when what is held is free, and anew in each leading process: without a
        leader no pod is bound.
        """
        now = self._context.monotonic()
        deadline, looked = self._deadlines.get(uid, (now, float("-inf")))
        if found is Outlook.BEING_RELEASED or now - looked > 3 * LOOK_SECONDS:
            deadline = now + FREE_SECONDS
        self._deadlines[uid] = deadline, now
        return deadline - now

    async def _end_expired(self, pod: PodView, hold: Hold, found: Outlook) -> None:
        if pod.uid in self._unstated:
            self._unstated.remove(pod.uid)
            self._world.end_hold(pod.uid)
            return
        why = "What is held for it is still in use: its users were not evicted, or do not end."
        if found is Outlook.IS_FREE:
            why = f"It was held for {FREE_SECONDS:.0f} s, and the pod was not bound."
            await self._misses.miss(pod, [hold.node])
        # The condition first: if its write fails, it would restore an ended hold.
        await self._write_ended(pod, "TimeOver", why)
        self._world.end_hold(pod.uid)

    async def _write_ended(self, pod: PodView, reason: str, message: str) -> None:
        await self._context.writes.write_reclaiming(
            pod, holds=False, reason=reason, message=message
        )

"""What is held for pods, as their conditions say it: taken up, ended, and where it was in vain.

    condition of a pod ──► hold ──► bound ────────────► told, over
                                ├─► gone ─────────────► over
                                └─► its time is over ─► whoever has it does not end ─► told, over
                                                    └─► it was free all the time ──┐
    free without anybody's leaving, and the pod is not bound in that time ─────────┴─► told; that
                                                        node is left out for pods that are alike

A hold follows the condition in every process and after every restart, so whoever leads next finds
what was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

from binder import apiserver_events
from binder.reclaiming.apiserver_reclaim_writes import ReclaimWrites
from kube.api import After, Done, Event, Reconciler, Result
from scheduler_plugin.api import (
    Hold,
    MissedNodes,
    Outlook,
    PodUid,
    PodView,
    World,
    hold_of,
    outlook,
    placement_class,
    read_missed,
)

HOLD_SECONDS = 60.0
"""How long a pod has to take what is free for it, held or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What those need who take something back.

    Attributes:
        record: Takes Events and returns at once.
        clock: The time now.
        monotonic: The seconds of a clock that nobody sets.
    """

    writes: ReclaimWrites
    world: World
    record: Callable[[Event], None]
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]

    def tell(self, event: Event) -> None:
        """Log an Event, and have it written."""
        apiserver_events.tell(event, self.record)

    def why_not(self) -> str:
        """Why nothing may be written now; "" where it may."""
        return self.writes.fence.why_not(self.writes.write_seconds)


class HoldKeeper:
    """Keeps the world's holds at what the pods' conditions say; `run` ends those that are over."""

    def __init__(self, around: Surroundings, stuck: Callable[[], Collection[PodUid]]) -> None:
        """`stuck` tells which pods are being deleted and do not end."""
        self.missed = MissedNodes()
        self._around = around
        self._world = around.world
        self._stuck = stuck
        self._deadlines: dict[PodUid, float] = {}
        # Of pods for which something is held, which are alike: once they are bound it is not seen.
        self._kinds: dict[PodUid, Hashable] = {}
        # Where something is free for a pod for which nothing is held, and since when.
        self._free: dict[PodUid, tuple[str, float]] = {}
        self._being_told: frozenset[PodUid] = frozenset()
        self._queue: Reconciler[PodUid] = Reconciler(
            "holds", self._reconcile, why_not=around.why_not
        )

    async def run(self) -> NoReturn:
        """End what is over until cancelled."""
        await self._queue.run()

    def begin(self, holds: Collection[Hold]) -> None:
        """Hold this from now on; until `told` no condition has to say so."""
        self._being_told |= frozenset(hold.pod for hold in holds)
        for hold in holds:
            self._hold(hold)

    def told(self, holds: Collection[Hold]) -> None:
        """The conditions were written, or could not be: they say from now on what is held."""
        self._being_told -= frozenset(hold.pod for hold in holds)
        for hold in holds:
            self.follow(hold.pod)

    def follow(self, uid: PodUid) -> None:
        """A pod came, changed or went."""
        pod, is_held = self._world.facts.pod(uid), uid in self._world.assumptions.holds
        if pod is not None and pod.missed:
            self._note_missed(pod)
        if pod is None or not pod.reclaiming or not pod.may_be_bound:
            kind = self._kinds.pop(uid, None)
            if pod is not None and pod.is_bound and kind is not None:
                self.missed.bound(kind, pod.node)
            if is_held and uid not in self._being_told:
                self._world.end_hold(uid)
            if pod is not None and pod.reclaiming and pod.is_bound:
                self._queue.add(uid)
        elif not is_held and (hold := hold_of(pod, self._world)) is not None:
            self._hold(hold)

    def note_free(self, holds: Iterable[Hold]) -> None:
        """All that pods could have now although kube-scheduler tried them in vain.

        What others hold on that node may be what keeps a pod from it.
        """
        before, self._free = self._free, {}
        kept = {hold.node for hold in self._world.assumptions.holds.of_devices()}
        stuck = self._stuck()
        for hold in holds:
            is_there = outlook(hold, self._world, stuck) is Outlook.IS_THERE
            if not hold.node or hold.node in kept or not is_there:
                continue
            node, since = before.get(hold.pod, ("", 0.0))
            is_new = node != hold.node
            self._free[hold.pod] = hold.node, self._around.monotonic() if is_new else since
            self._queue.add(hold.pod)

    def _hold(self, hold: Hold) -> None:
        self._world.hold(hold)
        if (pod := self._world.facts.pod(hold.pod)) is not None and pod.may_be_bound:
            self._kinds[hold.pod] = placement_class(pod, self._world.facts)
        self._deadlines[hold.pod] = self._around.monotonic() + HOLD_SECONDS
        self._queue.add_after(hold.pod, HOLD_SECONDS)

    def _note_missed(self, pod: PodView) -> None:
        kind = placement_class(pod, self._world.facts)
        for node, until in read_missed(pod.missed):
            self.missed.note(kind, node, until)

    # How it ends.

    async def _reconcile(self, uid: PodUid) -> Result:
        pod, hold = self._world.facts.pod(uid), self._world.assumptions.holds.get(uid)
        if pod is not None and pod.reclaiming and pod.is_bound:
            await self._tell_over(pod, "Bound", "The pod is bound.")
        if hold is None:
            self._deadlines.pop(uid, None)
            await self._miss_free(uid)
        if pod is None or hold is None:
            return Done()
        if (left := self._deadlines.get(uid, 0.0) - self._around.monotonic()) > 0:
            return After(left)
        return await self._late(pod, hold)

    async def _late(self, pod: PodView, hold: Hold) -> Result:
        found = outlook(hold, self._world, self._stuck())
        if found is Outlook.COMES:  # Pods that were evicted may take their time.
            self._deadlines[pod.uid] = self._around.monotonic() + HOLD_SECONDS
            return After(HOLD_SECONDS)
        why = "What was to be free for it is not: who has it does not leave."
        if found is Outlook.IS_THERE:
            why = f"It was held for {HOLD_SECONDS:.0f} s, and the pod was not bound."
            await self._miss(pod, hold.node)
        # Ended first, the condition would have it taken up again where the write fails.
        await self._tell_over(pod, "TimeOver", why)
        self._world.end_hold(pod.uid)
        return Done()

    async def _miss_free(self, uid: PodUid) -> None:
        """Where nothing was held, a pod misses what it might have had all the same."""
        pod, (node, since) = self._world.facts.pod(uid), self._free.get(uid, ("", 0.0))
        is_over = self._around.monotonic() >= since + HOLD_SECONDS
        if pod is not None and pod.may_be_bound and node and is_over:
            await self._miss(pod, node)
            self._free.pop(uid, None)

    async def _miss(self, pod: PodView, node: str) -> None:
        kind = placement_class(pod, self._world.facts)
        nodes = self.missed.miss(kind, node, self._around.clock())
        await self._around.writes.tell_missed(pod, nodes)
        self._around.tell(apiserver_events.reclaim_missed(pod, node))

    async def _tell_over(self, pod: PodView, reason: str, message: str) -> None:
        await self._around.writes.tell(pod, holds=False, reason=reason, message=message)

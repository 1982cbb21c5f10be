"""What is held for pods, as their conditions say it: taken up, and ended.

    condition of a pod ──► hold ──► bound ────────────► told, over
                                ├─► gone ─────────────► over
                                └─► its time is over ─► whoever has it does not leave ─► told, over
                                                    └─► it was there all the time ─► missed, told,
                                                                                     over
A hold follows the condition in every process and after every restart, so whoever leads next finds
what was begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import NoReturn

from binder.reclaiming.apiserver_misses import FREE_SECONDS, MissKeeper
from binder.reclaiming.apiserver_surroundings import Surroundings
from kube.api import After, Done, Reconciler, Result
from scheduler_plugin.api import (
    Hold,
    MissedNodes,
    Outlook,
    PodUid,
    PodView,
    hold_of,
    outlook,
    placement_class,
)

LOOK_SECONDS = 5.0
"""How often it is looked at whether what is held is there to be taken."""


class HoldKeeper:
    """Keeps the world's holds at what the pods' conditions say; `run` ends those that are over."""

    def __init__(
        self,
        around: Surroundings,
        missed: MissedNodes,
        misses: MissKeeper,
        stuck: Callable[[], Collection[PodUid]],
    ) -> None:
        """`stuck` tells which pods are being deleted and do not end."""
        self._around = around
        self._world = around.world
        self._missed = missed
        self._misses = misses
        self._stuck = stuck
        # When the time of a hold is over, and when it was looked at last.
        self._deadlines: dict[PodUid, tuple[float, float]] = {}
        # Of pods for which something is held, which are alike: once they are bound it is not seen.
        self._kinds: dict[PodUid, Hashable] = {}
        self._being_told: frozenset[PodUid] = frozenset()
        # Those for which what is free is kept, and of which no condition says so.
        self._untold: set[PodUid] = set()
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
            self._untold.discard(hold.pod)
            self._hold(hold)

    def keep_free(self, holds: Iterable[Hold]) -> None:
        """What is free as it is goes to these first, before those that borrow.

        No condition says so: a pod has it for a minute, and if it is not bound it misses it.
        """
        stuck = self._stuck()
        for hold in holds:
            is_there = outlook(hold, self._world, stuck) is Outlook.IS_THERE
            if hold.is_device and is_there and hold.pod not in self._world.assumptions.holds:
                self._untold.add(hold.pod)
                self._hold(hold)

    def told(self, holds: Collection[Hold]) -> None:
        """The conditions were written, or could not be: they say from now on what is held."""
        self._being_told -= frozenset(hold.pod for hold in holds)
        for hold in holds:
            self.follow(hold.pod)

    def follow(self, uid: PodUid) -> None:
        """A pod came, changed or went."""
        pod = self._world.facts.pod(uid)
        if pod is not None and pod.missed:
            self._misses.read(pod)
        if pod is None or not pod.may_be_bound:
            self._over(uid, pod)
        elif uid in self._being_told or uid in self._untold:
            return
        elif not pod.reclaiming:
            self._over(uid, pod)
        elif uid not in self._world.assumptions.holds and (hold := hold_of(pod, self._world)):
            self._hold(hold)

    def _over(self, uid: PodUid, pod: PodView | None) -> None:
        """Nothing is held for a pod any more; one that was bound tells where such pods are."""
        self._untold.discard(uid)
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

    # How it ends.

    async def _reconcile(self, uid: PodUid) -> Result:
        pod, hold = self._world.facts.pod(uid), self._world.assumptions.holds.get(uid)
        if pod is not None and pod.reclaiming and pod.is_bound:
            await self._tell_over(pod, "Bound", "The pod is bound.")
        if pod is None or hold is None:
            self._deadlines.pop(uid, None)
            return Done()
        found = outlook(hold, self._world, self._stuck())
        if (left := self._left(uid, found)) > 0:
            return After(min(left, LOOK_SECONDS))
        await self._late(pod, hold, found)
        return Done()

    def _left(self, uid: PodUid, found: Outlook) -> float:
        """How much time a pod has left to take what is held for it.

        It begins when that is there, and with each process that leads: nobody could be bound
        before.
        """
        now = self._around.monotonic()
        deadline, looked = self._deadlines.get(uid, (now, float("-inf")))
        if found is Outlook.COMES or now - looked > 3 * LOOK_SECONDS:
            deadline = now + FREE_SECONDS
        self._deadlines[uid] = deadline, now
        return deadline - now

    async def _late(self, pod: PodView, hold: Hold, found: Outlook) -> None:
        if pod.uid in self._untold:
            self._untold.remove(pod.uid)
            self._world.end_hold(pod.uid)
            return
        why = "What was to be free for it is not: who has it does not leave."
        if found is Outlook.IS_THERE:
            why = f"It was held for {FREE_SECONDS:.0f} s, and the pod was not bound."
            await self._misses.miss(pod, [hold.node])
        # Ended first, the condition would have it taken up again where the write fails.
        await self._tell_over(pod, "TimeOver", why)
        self._world.end_hold(pod.uid)

    async def _tell_over(self, pod: PodView, reason: str, message: str) -> None:
        await self._around.writes.tell(pod, holds=False, reason=reason, message=message)

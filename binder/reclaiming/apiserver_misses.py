"""Where room was free in vain, as pods' conditions say it: found out, told, and read back.

a pod that was tried could go to a node as things are ──a minute──► told; all such nodes are
what was held for a pod was there, and it was not bound ──────────►  left out for ten minutes
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import NoReturn

from binder import apiserver_events
from binder.reclaiming.apiserver_surroundings import Surroundings
from kube.api import Done, PermanentError, Reconciler, Result
from scheduler_plugin.api import (
    Hold,
    MissedNodes,
    Outlook,
    PodUid,
    PodView,
    outlook,
    placement_class,
    read_missed,
)

logger = logging.getLogger(__name__)

FREE_SECONDS = 60.0
"""How long a pod has to take what is free for it, held or not."""

MOST_NAMED = 300
"""How many nodes a condition names; whoever leads next finds out about the others anew."""

FreeNodes = Callable[[PodView], Awaitable[Collection[str]]]
"""The nodes where a pod would fit as things are."""


class MissKeeper:
    """Tells where pods miss what is free; `run` finds those for which nothing is held."""

    def __init__(self, around: Surroundings, missed: MissedNodes, free_nodes: FreeNodes) -> None:
        self._around = around
        self._world = around.world
        self._missed = missed
        self._free_nodes = free_nodes
        # Since when there is something free for a pod for which nothing is held.
        self._free: dict[PodUid, float] = {}
        self._queue: Reconciler[PodUid] = Reconciler(
            "misses", self._reconcile, why_not=around.why_not
        )

    async def run(self) -> NoReturn:
        """Look at those for which something is free until cancelled."""
        await self._queue.run()

    def read(self, pod: PodView) -> None:
        """Take up what a pod's condition says."""
        kind = placement_class(pod, self._world.facts)
        for node, until in read_missed(pod.missed):
            self._missed.note(kind, node, until)

    def note_free(self, holds: Iterable[Hold], stuck: Collection[PodUid]) -> None:
        """All that pods could have now although kube-scheduler tried them in vain."""
        before, self._free = self._free, {}
        self._missed.forget_old(self._around.clock())
        kept, now = self._kept_nodes(), self._around.monotonic()
        for hold in holds:
            is_there = outlook(hold, self._world, stuck) is Outlook.IS_THERE
            if hold.node and is_there and kept.get(hold.node, {hold.pod}) <= {hold.pod}:
                since = self._free[hold.pod] = before.get(hold.pod, now)
                self._queue.add_after(hold.pod, since + FREE_SECONDS - now)

    def _kept_nodes(self) -> dict[str, set[PodUid]]:
        """For whom something is held on nodes: for another that may be what keeps a pod off."""
        found: dict[str, set[PodUid]] = {}
        for hold in self._world.assumptions.holds.of_devices():
            found.setdefault(hold.node, set()).add(hold.pod)
        return found

    async def _reconcile(self, uid: PodUid) -> Result:
        """Where nothing was held, a pod misses all that it might have had all the same.

        kube-scheduler tries a pod on all nodes at one time: so none of them does.
        """
        pod, since = self._world.facts.pod(uid), self._free.get(uid)
        if pod is None or since is None or self._around.monotonic() < since + FREE_SECONDS:
            return Done()
        if pod.may_be_bound:
            kept, free = self._kept_nodes(), await self._free_nodes(pod)
            await self.miss(pod, [node for node in free if kept.get(node, {uid}) <= {uid}])
        self._free.pop(uid, None)
        return Done()

    async def miss(self, pod: PodView, nodes: Collection[str]) -> None:
        """Leave nodes out for all pods like this one, and tell it. Raises ApiError, FencedError.

        Where the API server does not take the condition, whoever leads next does not know of it.
        """
        now = self._around.clock()
        told = {node for node, until in read_missed(pod.missed) if now < until}
        if told.issuperset(nodes):
            return
        found = self._missed.miss(placement_class(pod, self._world.facts), nodes, now)
        try:
            await self._around.writes.tell_missed(pod, dict([*found.items()][-MOST_NAMED:]))
        except PermanentError as error:
            logger.warning("missed nodes are not written pod=%s: %s", pod, error)
        self._around.tell(apiserver_events.reclaim_missed(pod, sorted(nodes)))

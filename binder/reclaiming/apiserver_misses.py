"""Missed nodes, as the pods' conditions state them: found, written, and read back.

a tried pod fits a node as it is, and is not bound ──a minute──► condition written; all such
what is held for a pod is free, and it is not bound ───────────► nodes are left out for 10 min
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import NoReturn

from binder import apiserver_events
from binder.reclaiming.apiserver_context import ReclaimContext
from kube.calls.api import PermanentError
from kube.reconciling.api import Done, Reconciler, Result
from scheduler_plugin.accounting.api import Hold
from scheduler_plugin.judging.api import placement_class
from scheduler_plugin.objects.api import PodView, read_missed
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.api import MissedNodes, Outlook, outlook

logger = logging.getLogger(__name__)

FREE_SECONDS = 60.0
"""How long a pod has to be bound to what is free for it, held or not."""

MOST_NAMED = 300
"""The largest number of nodes in a condition; the next leader finds the others anew."""

FreeNodes = Callable[[PodView], Awaitable[Collection[str]]]
"""Returns the nodes that a pod fits now."""


class MissKeeper:
    """Writes the missed nodes of pods; `run` finds missed nodes of pods without holds."""

    def __init__(self, context: ReclaimContext, missed: MissedNodes, free_nodes: FreeNodes) -> None:
        self._context = context
        self._world = context.world
        self._missed = missed
        self._free_nodes = free_nodes
        # For pods without holds, since when something is free for them.
        self._free: dict[PodUid, float] = {}
        self._queue: Reconciler[PodUid] = Reconciler(
            "misses", self._reconcile, why_not=context.why_not
        )

    async def run(self) -> NoReturn:
        """Find missed nodes until cancelled."""
        await self._queue.run()

    def read(self, pod: PodView) -> None:
        """Read a pod's condition."""
        kind = placement_class(pod, self._world.facts)
        for node, until in read_missed(pod.missed):
            self._missed.note(kind, node, until)

    def note_free(self, holds: Iterable[Hold], stuck: Collection[PodUid]) -> None:
        """Take what is free for pods that kube-scheduler tried and did not bind."""
        before, self._free = self._free, {}
        self._missed.forget_old(self._context.clock())
        kept, now = self._kept_nodes(), self._context.monotonic()
        for hold in holds:
            is_there = outlook(hold, self._world, stuck) is Outlook.IS_FREE
            if hold.node and is_there and kept.get(hold.node, {hold.pod}) <= {hold.pod}:
                since = self._free[hold.pod] = before.get(hold.pod, now)
                self._queue.add_after(hold.pod, since + FREE_SECONDS - now)

    def _kept_nodes(self) -> dict[str, set[PodUid]]:
        """The pods with holds, by node: a hold of another pod may keep a pod off its node."""
        found: dict[str, set[PodUid]] = {}
        for hold in self._world.assumptions.holds.of_devices():
            found.setdefault(hold.node, set()).add(hold.pod)
        return found

    async def _reconcile(self, uid: PodUid) -> Result:
        """A pod without a hold misses all nodes that it fits.

        kube-scheduler tries a pod on all nodes in one attempt: so it fits none of them.
        """
        pod, since = self._world.facts.pod(uid), self._free.get(uid)
        if pod is None or since is None or self._context.monotonic() < since + FREE_SECONDS:
            return Done()
        if pod.may_be_bound:
            kept, free = self._kept_nodes(), await self._free_nodes(pod)
            await self.miss(pod, [node for node in free if kept.get(node, {uid}) <= {uid}])
        self._free.pop(uid, None)
        return Done()

    async def miss(self, pod: PodView, nodes: Collection[str]) -> None:
        """Leave nodes out for all pods of the class, and write the pod's condition.

        If the API server refuses the condition, the next leader does not know of it.

        Raises:
            ApiError, FencedError: The condition was not written.
        """
        now = self._context.clock()
        written = {node for node, until in read_missed(pod.missed) if now < until}
        if written.issuperset(nodes):
            return
        found = self._missed.miss(placement_class(pod, self._world.facts), nodes, now)
        try:
            await self._context.writes.write_missed(pod, dict([*found.items()][-MOST_NAMED:]))
        except PermanentError as error:
            logger.warning("condition of missed nodes not written pod=%s: %s", pod, error)
        self._context.report(apiserver_events.reclaim_missed(pod, sorted(nodes)))

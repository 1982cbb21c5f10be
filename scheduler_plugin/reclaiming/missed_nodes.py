"""Missed nodes: room was free there, and the pod was not bound, for a reason that is not modelled.

For a while nothing is evicted on such a node for pods of the same placement class. Where no pod of
a class with requests that are not modelled was bound yet, one pod of the class is tried first. So
the cost is one eviction for each class and node, and not one for each pod and minute.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from datetime import datetime, timedelta

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.equivalence_classes import placement_class
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

LEFT_OUT = timedelta(minutes=10)
"""How long a missed node is left out."""

MOST_KINDS = 10_000
"""The largest number of placement classes for which the nodes of bound pods are kept."""


class MissedNodes:
    """For each placement class the nodes that are left out, and until when."""

    def __init__(self) -> None:
        self._until: dict[Hashable, dict[str, datetime]] = {}
        self._bound: dict[Hashable, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._until)

    def miss(self, kind: Hashable, nodes: Iterable[str], now: datetime) -> Mapping[str, datetime]:
        """A pod of the class missed these nodes; returns all nodes that are left out now."""
        for node in nodes:
            self._bound.get(kind, {}).pop(node, None)
            self.note(kind, node, now + LEFT_OUT)
        return {name: self._until[kind][name] for name in self.of(kind, now)}

    def note(self, kind: Hashable, node: str, until: datetime) -> None:
        """Leave a node out until a moment, as a condition says."""
        nodes = self._until.setdefault(kind, {})
        nodes[node] = max(until, nodes.get(node, until))

    def bound(self, kind: Hashable, node: str) -> None:
        """A pod of the class was bound on a node: so can others be."""
        self._until.get(kind, {}).pop(node, None)
        self._bound.setdefault(kind, {})[node] = None
        if len(self._bound) > MOST_KINDS:
            del self._bound[next(iter(self._bound))]

    def is_proven(self, kind: Hashable, node: str) -> bool:
        """Whether a pod of the class was bound there, and none missed the node since."""
        return node in self._bound.get(kind, {})

    def of(self, kind: Hashable, now: datetime) -> Collection[str]:
        """The nodes that are left out for pods of this class.

        After a clock was set back, no node is left out for longer than `LEFT_OUT` from now.
        """
        nodes = self._until.get(kind, {})
        return tuple(n for n, until in nodes.items() if now < until <= now + LEFT_OUT)

    def forget_old(self, now: datetime) -> None:
        """Drop entries that have ended."""
        for kind in list(self._until):
            if not self.of(kind, now):
                del self._until[kind]


class LeftOut:
    """The nodes that one cycle leaves out, for each pod."""

    def __init__(self, world: WorldView, missed: MissedNodes, now: datetime) -> None:
        self._world = world
        self._missed = missed
        self._now = now
        # By class and node, the pods that are to be bound there.
        self._tried: dict[Hashable, dict[str, set[PodUid]]] = {}
        for hold in world.assumptions.holds.of_devices():
            pod = world.facts.pod(hold.pod)
            if pod is not None and hold.node:
                self.tries(pod, hold.node)

    def missed(self, pod: PodView) -> Collection[str]:
        """The nodes that pods of its class missed."""
        return self._missed.of(self._kind(pod), self._now)

    def tried(self, pod: PodView, own: Collection[PodUid]) -> Collection[str]:
        """The nodes where another pod of its class is tried first; `own` is its gang."""
        tried = self._tried.get(self._kind(pod), {})
        return tuple(node for node, pods in tried.items() if not pods <= set(own))

    def tries(self, pod: PodView, node: str) -> None:
        """The pod is to be bound there."""
        kind = self._kind(pod)
        in_doubt = pod.needs is not None and pod.needs.has_more
        if in_doubt and not self._missed.is_proven(kind, node):
            self._tried.setdefault(kind, {}).setdefault(node, set()).add(pod.uid)

    def _kind(self, pod: PodView) -> Hashable:
        return placement_class(pod, self._world.facts)

"""Where room was free in vain: what is not looked at kept the pod from it.

Of pods that are alike none has anything evicted on such a node for a while. One that asks for what
is not looked at goes first, alone, where none of its kind was bound: so that costs one eviction for
each kind of pods and each node, and not one for each pod of a line, in every minute.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from datetime import datetime, timedelta

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.equivalence_classes import placement_class
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

LEFT_OUT = timedelta(minutes=10)
"""How long."""


MOST_KINDS = 10_000
"""Of how many kinds it is remembered where they were bound."""


class MissedNodes:
    """By the placement class of pods, the nodes that are left out, each until when."""

    def __init__(self) -> None:
        self._until: dict[Hashable, dict[str, datetime]] = {}
        self._bound: dict[Hashable, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._until)

    def miss(self, kind: Hashable, nodes: Iterable[str], now: datetime) -> Mapping[str, datetime]:
        """Room on nodes was free for such a pod in vain; returns all that are left out now."""
        for node in nodes:
            self._bound.get(kind, {}).pop(node, None)
            self.note(kind, node, now + LEFT_OUT)
        return {name: self._until[kind][name] for name in self.of(kind, now)}

    def note(self, kind: Hashable, node: str, until: datetime) -> None:
        """The same, as somebody said it before."""
        nodes = self._until.setdefault(kind, {})
        nodes[node] = max(until, nodes.get(node, until))

    def bound(self, kind: Hashable, node: str) -> None:
        """Such a pod got what was held for it on a node: others will."""
        self._until.get(kind, {}).pop(node, None)
        self._bound.setdefault(kind, {})[node] = None
        if len(self._bound) > MOST_KINDS:
            del self._bound[next(iter(self._bound))]

    def is_proven(self, kind: Hashable, node: str) -> bool:
        """Whether such a pod was bound there, and none missed it since."""
        return node in self._bound.get(kind, {})

    def of(self, kind: Hashable, now: datetime) -> Collection[str]:
        """The nodes that are left out for pods of this class.

        A clock that was set back leaves none out for longer than once more the time.
        """
        nodes = self._until.get(kind, {})
        return tuple(n for n, until in nodes.items() if now < until <= now + LEFT_OUT)

    def forget_old(self, now: datetime) -> None:
        """Drop what is over."""
        for kind in list(self._until):
            if not self.of(kind, now):
                del self._until[kind]


class LeftOut:
    """Where no room is looked for, by one cycle."""

    def __init__(self, world: WorldView, missed: MissedNodes, now: datetime) -> None:
        self._world = world
        self._missed = missed
        self._now = now
        # By kind and node, those that are to be bound there.
        self._tried: dict[Hashable, dict[str, set[PodUid]]] = {}
        for hold in world.assumptions.holds.of_devices():
            pod = world.facts.pod(hold.pod)
            if pod is not None and hold.node:
                self.tries(pod, hold.node)

    def missed(self, pod: PodView) -> Collection[str]:
        """Where pods like it were not bound."""
        return self._missed.of(self._kind(pod), self._now)

    def tried(self, pod: PodView, own: Collection[PodUid]) -> Collection[str]:
        """Where another pod like it is to be bound first; `own` are those that go with it."""
        tried = self._tried.get(self._kind(pod), {})
        return tuple(node for node, pods in tried.items() if not pods <= set(own))

    def tries(self, pod: PodView, node: str) -> None:
        """It is to be bound there."""
        kind = self._kind(pod)
        in_doubt = pod.needs is not None and pod.needs.has_more
        if in_doubt and not self._missed.is_proven(kind, node):
            self._tried.setdefault(kind, {}).setdefault(node, set()).add(pod.uid)

    def _kind(self, pod: PodView) -> Hashable:
        return placement_class(pod, self._world.facts)

"""The nodes, and what all pods that are bound to them take of them.

    Node ──► put_node, delete_node ─┐
                                    ├─► get, pods_on, leaving, lacks
    Pod  ──► put_pod, delete_pod ───┘

Facts come in any order: a pod may be known before its node is, and longer. Sums are kept, so no
answer costs more with more pods on the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.node_requests import NOTHING, Thousandths
from scheduler_plugin.objects.nodes import NodeView
from scheduler_plugin.objects.pod_needs import PodOnNode
from scheduler_plugin.objects.tables import count

_NO_PODS: frozenset[PodUid] = frozenset()


@dataclass(slots=True)
class _Place:
    """What is known of one node.

    Attributes:
        view: None while the node itself is not known, or is gone.
        used: The sum of what its pods ask for.
    """

    view: NodeView | None = None
    pods: dict[PodUid, None] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    leaving: frozenset[PodUid] = _NO_PODS


class Nodes:
    """All nodes, by name; iterating yields the names of those that exist.

    Attributes:
        changes: How often a node itself changed: equal numbers mean that all are the same.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._places: dict[str, _Place] = {}
        self._pods: dict[PodUid, PodOnNode] = {}

    # What happened.

    def put_node(self, view: NodeView) -> None:
        """Enter a node, or what it has become."""
        place = self._places.setdefault(view.name, _Place())
        if place.view != view:
            place.view = view
            self.changes += 1

    def delete_node(self, name: str) -> None:
        """Take a node out; its pods stay until each of them is gone."""
        place = self._places.get(name)
        if place is not None:
            place.view = None
            self.changes += 1
            self._drop_empty(name, place)

    def put_pod(self, pod: PodOnNode) -> None:
        """Enter a pod that is bound, or what it has become."""
        before = self._pods.get(pod.uid)
        if before == pod:
            return
        if before is not None:
            self._remove(before)
        self._enter(pod)

    def delete_pod(self, uid: PodUid) -> None:
        """Take a pod out that is gone, or has ended; one that is not known changes nothing."""
        before = self._pods.get(uid)
        if before is not None:
            self._remove(before)

    def _enter(self, pod: PodOnNode) -> None:
        place = self._places.setdefault(pod.node, _Place())
        self._pods[pod.uid] = pod
        place.pods[pod.uid] = None
        for name, amount in pod.asked.items():
            count(place.used, name, amount)
        if pod.is_leaving:
            place.leaving |= {pod.uid}

    def _remove(self, pod: PodOnNode) -> None:
        place = self._places[pod.node]
        del self._pods[pod.uid]
        del place.pods[pod.uid]
        for name, amount in pod.asked.items():
            count(place.used, name, -amount)
        place.leaving -= {pod.uid}
        self._drop_empty(pod.node, place)

    def _drop_empty(self, name: str, place: _Place) -> None:
        if place.view is None and not place.pods:
            del self._places[name]

    # What follows.

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if place.view is not None)

    def get(self, name: str) -> NodeView | None:
        """A node; None for one that does not exist."""
        place = self._places.get(name)
        return place.view if place is not None else None

    def pods_on(self, name: str) -> Collection[PodUid]:
        """The pods that take of a node, those that are leaving too."""
        place = self._places.get(name)
        return place.pods.keys() if place is not None else ()

    def leaving(self, name: str) -> frozenset[PodUid]:
        """Those of them that are being deleted."""
        place = self._places.get(name)
        return place.leaving if place is not None else _NO_PODS

    def used(self, name: str) -> Thousandths:
        """What the pods of a node ask for together."""
        place = self._places.get(name)
        return dict(place.used) if place is not None else NOTHING

    def lacks(
        self,
        name: str,
        asked: Thousandths,
        gone: Collection[PodUid] = (),
        beside: Sequence[Thousandths] = (),
    ) -> str:
        """Of what a node has too little; "" for nothing.

        Args:
            name: The node.
            asked: What more is asked of it.
            gone: Pods that count as gone; those that are not on it change nothing. Best a set.
            beside: What is asked of it by others that come.
        """
        place = self._places.get(name, _Place())
        left = [self._pods[uid].asked for uid in place.pods.keys() & gone]
        has = place.view.allocatable if place.view is not None else NOTHING
        for resource, more in asked.items():
            if not more:
                continue
            used = place.used.get(resource, 0) - _sum(left, resource) + _sum(beside, resource)
            if used + more > has.get(resource, 0):
                return resource
        return ""


def _sum(parts: Sequence[Mapping[str, int]], resource: str) -> int:
    return sum(part.get(resource, 0) for part in parts)

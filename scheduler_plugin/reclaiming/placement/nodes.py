"""The nodes, and the sums of the requests of the pods that are bound to them.

    Node ──► put_node, delete_node ─┐
                                    ├─► get, pods_on, leaving, lacks
    Pod  ──► put_pod, delete_pod ───┘

Events come in any order: a pod may be known before its node, and after its node is deleted. Sums
are kept, so the cost of an answer does not grow with the number of pods.
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
    """The state of one node.

    Attributes:
        view: None before the node is known, and after it is deleted.
        used: The sum of its pods' requests.
        leaving: Its terminating pods.
    """

    view: NodeView | None = None
    pods: dict[PodUid, None] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    terminating: frozenset[PodUid] = _NO_PODS


class Nodes:
    """All nodes, by name; iterating yields the names of the nodes that exist.

    Attributes:
        changes: The number of changes of Nodes; equal numbers mean equal nodes.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._places: dict[str, _Place] = {}
        self._pods: dict[PodUid, PodOnNode] = {}

    # Events.

    def put_node(self, view: NodeView) -> None:
        """Enter or replace a node."""
        place = self._places.setdefault(view.name, _Place())
        if place.view != view:
            place.view = view
            self.changes += 1

    def delete_node(self, name: str) -> None:
        """Remove a node; its pods stay until each of them is removed."""
        place = self._places.get(name)
        if place is not None:
            place.view = None
            self.changes += 1
            self._drop_empty(name, place)

    def put_pod(self, pod: PodOnNode) -> None:
        """Enter or replace a bound pod."""
        before = self._pods.get(pod.uid)
        if before == pod:
            return
        if before is not None:
            self._remove(before)
        self._enter(pod)

    def delete_pod(self, uid: PodUid) -> None:
        """Remove a pod that is gone or has ended; no effect on an unknown one."""
        before = self._pods.get(uid)
        if before is not None:
            self._remove(before)

    def _enter(self, pod: PodOnNode) -> None:
        place = self._places.setdefault(pod.node, _Place())
        self._pods[pod.uid] = pod
        place.pods[pod.uid] = None
        for name, amount in pod.asked.items():
            count(place.used, name, amount)
        if pod.is_terminating:
            place.terminating |= {pod.uid}

    def _remove(self, pod: PodOnNode) -> None:
        place = self._places[pod.node]
        del self._pods[pod.uid]
        del place.pods[pod.uid]
        for name, amount in pod.asked.items():
            count(place.used, name, -amount)
        place.terminating -= {pod.uid}
        self._drop_empty(pod.node, place)

    def _drop_empty(self, name: str, place: _Place) -> None:
        if place.view is None and not place.pods:
            del self._places[name]

    # Queries.

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if place.view is not None)

    def get(self, name: str) -> NodeView | None:
        """A node; None where it does not exist."""
        place = self._places.get(name)
        return place.view if place is not None else None

    def pods_on(self, name: str) -> Collection[PodUid]:
        """The pods that use a node, terminating ones included."""
        place = self._places.get(name)
        return place.pods.keys() if place is not None else ()

    def terminating(self, name: str) -> frozenset[PodUid]:
        """The terminating pods of a node."""
        place = self._places.get(name)
        return place.terminating if place is not None else _NO_PODS

    def used(self, name: str) -> Thousandths:
        """The sum of the requests of a node's pods."""
        place = self._places.get(name)
        return dict(place.used) if place is not None else NOTHING

    def lacks(
        self,
        name: str,
        asked: Thousandths,
        gone: Collection[PodUid] = (),
        beside: Sequence[Thousandths] = (),
    ) -> str:
        """The resource of which a node has too little; "" for none.

        Args:
            name: The node.
            asked: The additional requests.
            gone: Pods that count as gone, best a set; pods of other nodes have no effect.
            beside: The requests of other pods to place there.
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

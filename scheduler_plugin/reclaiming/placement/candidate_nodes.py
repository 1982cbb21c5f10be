"""Candidate nodes for a pod: nodes where something that it needs may be free.

A node that did not fit is looked at again only after a pod leaves it. So for equal pods each costs
only what it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, TypeVar

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.steps import STRIDE
from scheduler_plugin.reclaiming.missed_nodes import LeftOut
from scheduler_plugin.reclaiming.placement.demands import PodDemand, nodes_of_resources
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_fit import Placement

T = TypeVar("T")

Nodes: TypeAlias = Iterator[str | None]
"""Yields nodes, and None at each pause."""


@dataclass(slots=True)
class _OfKind:
    """The nodes found for a kind so far, and the iterator of the others."""

    found: list[str]
    more: Nodes

    def __iter__(self) -> Nodes:
        number = 0
        while True:
            yield from self.found[number:]
            number = len(self.found)
            node = next(self.more, "")
            if node == "":
                return
            if node is None:
                yield None
            else:
                self.found.append(node)


class Candidates:
    """The candidate nodes of one cycle. A kind is a number for pods that fit the same nodes."""

    def __init__(self, world: WorldView, inventory: Inventory, left_out: LeftOut) -> None:
        self._world = world
        self._inventory = inventory
        self._left_out = left_out
        self._kinds: dict[int, _OfKind] = {}
        self._failed: dict[int, dict[str, None]] = {}
        self._seen: dict[int, frozenset[PodUid]] = {}
        self._left: dict[PodUid, tuple[str, ...]] = {}

    def of(
        self, kind: int, demand: PodDemand, own: Sequence[Placement], gone: Collection[PodUid]
    ) -> Nodes:
        """Nodes where something may be free with these pods gone; nodes that the pod names first.

        `own` are the placements of its gang.
        """
        if demand.beside:
            yield from [place.node for place in own if place.pod == demand.beside]
            return
        if kind not in self._kinds:
            self._kinds[kind] = _OfKind([], self.free_for(demand))
        yield from self._kinds[kind]
        missed = frozenset(self._left_out.missed(demand.pod))
        left = dict.fromkeys(node for uid in gone for node in self._left_by(uid))
        yield from (node for node in left if node not in missed)

    def failed(self, kind: int, gone: Collection[PodUid]) -> dict[str, None]:
        """The nodes that did not fit, without those that a pod left since; callers add to it."""
        failed, now = self._failed.setdefault(kind, {}), frozenset(gone)
        for uid in now - self._seen.get(kind, frozenset()):
            for node in self._left_by(uid):
                failed.pop(node, None)
        self._seen[kind] = now
        return failed

    def free_for(self, demand: PodDemand) -> Nodes:
        """Nodes with something that is free now, held for the pod, or being released."""
        seen = dict.fromkeys(self._left_out.missed(demand.pod))
        for nodes in self._sources(demand):
            yield None
            yield from (node for node in nodes if node not in seen)
            seen |= dict.fromkeys(nodes)

    def _sources(self, demand: PodDemand) -> Iterator[Collection[str]]:
        """The groups of nodes to look at, in order."""
        if not demand.choices:
            return
        needs = demand.pod.needs
        yield [
            n for n in (needs.names if needs else ()) if self._inventory.nodes.get(n) is not None
        ]
        if not demand.device_requests and not demand.resources:
            yield from _parts([*self._inventory.nodes])
            return
        held = self._world.assumptions.holds.get(demand.pod.uid)
        yield [held.node] if held is not None and held.node else []
        yield from _parts([*nodes_of_resources(demand, self._world)])
        used = self._world.facts.devices_in_use()
        for part in _parts(self._inventory.devices.whole() if demand.device_requests else ()):
            yield self._inventory.nodes_of(
                d for d in part if d not in used and self._may(demand, d)
            )
        for part in _parts(self._inventory.devices.shared() if demand.device_requests else ()):
            yield self._inventory.nodes_of(device for device in part if self._may(demand, device))
        yield self._being_left

    def _may(self, demand: PodDemand, device: DeviceId) -> bool:
        return any(self._inventory.accepts(request, device) for request in demand.device_requests)

    @cached_property
    def _being_left(self) -> tuple[str, ...]:
        terminating = self._world.facts.terminating_pods()
        return tuple(dict.fromkeys(node for uid in terminating for node in self._left_by(uid)))

    def _left_by(self, uid: PodUid) -> tuple[str, ...]:
        if uid not in self._left:
            self._left[uid] = tuple(self._leaves(uid))
        return self._left[uid]

    def _leaves(self, uid: PodUid) -> Iterator[str]:
        """The nodes where a pod releases something: its own, and those that reach its devices."""
        pod = self._world.facts.pod(uid)
        if pod is not None and pod.node:
            yield pod.node
        for name in self._world.facts.claims_consumed_by(uid):
            claim = self._world.facts.claim(name)
            yield from self._inventory.nodes_of(claim.devices if claim is not None else ())


def _parts(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(things), STRIDE):
        yield things[begin : begin + STRIDE]

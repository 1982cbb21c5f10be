"""Placements for the heads of one cycle, with the targets of the cycle gone.

What one head finds is reserved for it, and the next head looks for something else. A node that did
not fit is looked at again only after a pod leaves it. So for equal pods each costs only what it
changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import NO_POD, PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.missed_nodes import LeftOut
from scheduler_plugin.reclaiming.placement.candidate_nodes import Candidates
from scheduler_plugin.reclaiming.placement.demands import PodDemand, demands_of
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_fit import NodeFit, NotModelledError, Placement
from scheduler_plugin.reclaiming.placement.offered_devices import SEVERAL
from scheduler_plugin.reclaiming.victims.victims import ExcludedPods, Victim

FEW = 16
"""The number of nodes between two pauses."""

ANYWHERE = ""
"""The node under which reservations are kept for devices that several nodes can use, and for pods
whose placement is not modelled."""


@dataclass(frozen=True, slots=True)
class _CurrentHead:
    """What was computed once for the present head.

    Attributes:
        revision: How often holds had changed at that time.
        demands: The demands of its pods, or why they are not modelled.
        node_fit: The search, with the holds of that time.
    """

    head: Head
    revision: int
    demands: tuple[PodDemand, ...] | str
    node_fit: NodeFit

    @property
    def why_not_modelled(self) -> str:
        return self.demands.removesuffix(".") if isinstance(self.demands, str) else ""


class NodePlacements:
    """The nodes and devices of one cycle."""

    def __init__(
        self, world: WorldView, inventory: Inventory, excluded: ExcludedPods, left_out: LeftOut
    ) -> None:
        self._world = world
        self._inventory = inventory
        self._excluded = excluded
        self._left_out = left_out
        self._reserved: dict[str, list[Placement]] = {}
        self._kinds: dict[object, int] = {}
        self._candidates = Candidates(world, inventory, left_out)
        self._current: _CurrentHead | None = None
        self._never_fit: dict[tuple[int, str], str | None] = {}

    def look(self, head: Head, gone: Collection[PodUid]) -> Steps[None]:
        """Find the nodes that do not fit the first pod of the head, in steps."""
        for demand in self._demands(head)[:1]:
            with suppress(NotModelledError):
                yield from self._look(head, demand, gone)

    def _look(self, head: Head, demand: PodDemand, gone: Collection[PodUid]) -> Steps[None]:
        kind, node_fit = self._kind(demand), self._of(head).node_fit
        failed = self._candidates.failed(kind, gone)
        for number, node in enumerate(self._candidates.of(kind, demand, (), gone), start=1):
            if node is not None and node not in failed:
                place = node_fit.fit(demand, node, gone, [*self._reserved_at(node)])
                if isinstance(place, Placement):
                    return
                failed[node] = None
            if node is None or not number % FEW:
                yield

    def used(
        self, head: Head, gone: Collection[PodUid]
    ) -> tuple[frozenset[DeviceId], frozenset[str]]:
        """The devices that the head finds, and the nodes of its placements."""
        places = self.places(head, gone) or ()
        devices = frozenset(device for place in places for device, _ in place.devices)
        return devices, frozenset(place.node for place in places)

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        """The resources of which a head finds too little with these pods gone."""
        found = self.places(head, gone)
        return tuple(key for key, _ in head.adds) if found is None else ()

    def places(self, head: Head, gone: Collection[PodUid]) -> list[Placement] | None:
        """The placement of each pod of a head; None where one of them has none.

        A head whose demand is not modelled is assumed to fit: its list is empty.
        """
        try:
            return self._places(head, gone)
        except NotModelledError:
            return []

    def _places(self, head: Head, gone: Collection[PodUid]) -> list[Placement] | None:
        places: list[Placement] = []
        for demand in self._demands(head):
            place = self._place(head, demand, gone, places)
            if place is None:
                return None
            places.append(place)
        return places

    def why_not_modelled(self, head: Head, gone: Collection[PodUid]) -> str:
        """Why nothing is evicted for it, for the end of a sentence; "" where it may be.

        For a head that lacks only room below a limit, eviction is tried once in a while although
        its demand is not modelled.
        """
        is_left_out = ANYWHERE in self._left_out.missed(head.pods[0])
        if head.lacks_room and not is_left_out:
            return ""
        if why := self._of(head).why_not_modelled:
            return why
        try:
            self._places(head, gone)
        except NotModelledError as error:
            return str(error)
        return ""

    def free_nodes(self, pod: PodView) -> Iterator[str | None]:
        """The nodes that a pod fits now; it yields None before each, for a pause."""
        demands = demands_of([pod], self._world)
        others = (h for h in self._world.assumptions.holds.of_devices() if h.pod != pod.uid)
        places = NodeFit(self._inventory, DeviceUse(self._world, others, ()), ())
        for demand in demands if not isinstance(demands, str) else ():
            for node in self._candidates.free_for(demand):
                yield None
                if node is None:
                    continue
                try:
                    place = places.fit(demand, node, None, ())
                except NotModelledError:
                    return
                if isinstance(place, Placement):
                    yield node

    def keep(self, head: Head, gone: Collection[PodUid]) -> Sequence[Placement]:
        """Reserve for the head what it finds, so that later heads do not; returns the places."""
        places = self.places(head, gone) or ()
        for place in places:
            is_anywhere = any(self._is_of_several(device) for device, _ in place.devices)
            at = ANYWHERE if is_anywhere else place.node
            self._reserved.setdefault(at, []).append(place)
        for pod, place in zip(head.pods, places, strict=False):
            self._left_out.tries(pod, place.node)
        return places

    def _is_of_several(self, device: DeviceId) -> bool:
        """Whether several nodes can use a device."""
        offer = self._inventory.devices.offer(device)
        return offer is not None and not offer.node

    def _reserved_at(self, node: str) -> Iterator[Placement]:
        """The reservations that count at a node, with those of devices of several nodes."""
        return chain(self._reserved.get(node, ()), self._reserved.get(ANYWHERE, ()))

    def helps(self, head: Head, victim: Victim) -> bool:
        """Whether the head could use anything that the victim uses."""
        return any(
            self._why_never_fit(head, demand, node) is None
            for demand in self._demands(head)
            for node in self._left_by(head, demand, victim)
        )

    def why_not(self, head: Head) -> str:
        """Why nodes with matching devices do not fit it, for the end of a sentence."""
        kinds = {self._kind(demand) for demand in self._demands(head)}
        whys = Counter(
            why.removeprefix(f'node "{node}" ')
            for (kind, node), why in self._never_fit.items()
            if why and kind in kinds
        )
        counted = (
            f"{count} nodes: each {why}" if count > 1 else f"1 node {why}"
            for why, count in whys.most_common(3)
        )
        return "; ".join((*counted, *self._why_left_out(head)))

    def _why_left_out(self, head: Head) -> Iterator[str]:
        pod = head.pods[0]
        missed, tried = self._left_out.missed(pod), self._left_out.tried(pod, head.uids)
        if missed:
            are = "1 node is" if len(missed) == 1 else f"{len(missed)} nodes are"
            yield f"{are} left out, where such pods were not bound"
        if tried:
            on = "1 node" if len(tried) == 1 else f"{len(tried)} nodes"
            yield f"on {on} an equal pod is to be bound first"

    # Places.

    def _of(self, head: Head) -> _CurrentHead:
        """What is computed once for a head, while the holds do not change."""
        holds = self._world.assumptions.holds
        found = self._current
        if found is None or found.head is not head or found.revision != holds.revision:
            found = self._current = self._begun(head)
        return found

    def _begun(self, head: Head) -> _CurrentHead:
        holds = self._world.assumptions.holds
        others = [hold for hold in holds.of_devices() if hold.pod not in head.uids]
        own = [hold for hold in holds.of_devices() if hold.pod in head.uids]
        use = DeviceUse(self._world, others, self._excluded.stuck, own)
        node_fit = NodeFit(self._inventory, use, self._excluded.stuck)
        return _CurrentHead(head, holds.revision, demands_of(head.pods, self._world), node_fit)

    def _demands(self, head: Head) -> tuple[PodDemand, ...]:
        found = self._of(head).demands
        return () if isinstance(found, str) else found

    def _kind(self, demand: PodDemand) -> int:
        """A number that is equal for pods that fit the same devices and nodes, in any queue."""
        own = demand.pod.uid if demand.pod.uid in self._world.assumptions.holds else NO_POD
        kind = demand.kind, frozenset(self._left_out.missed(demand.pod)), own
        return self._kinds.setdefault(kind, len(self._kinds))

    def _place(
        self, head: Head, demand: PodDemand, gone: Collection[PodUid], own: Sequence[Placement]
    ) -> Placement | None:
        kind, node_fit = self._kind(demand), self._of(head).node_fit
        # A node that the pod does not fit alone does not fit it with its gang.
        failed = self._candidates.failed(kind, gone)
        tried = self._left_out.tried(demand.pod, head.uids)
        for node in self._candidates.of(kind, demand, own, gone):
            if node is None or node in failed or node in tried:
                continue
            place = node_fit.fit(demand, node, gone, [*self._reserved_at(node), *own])
            if isinstance(place, Placement):
                return place
            if not own:
                failed[node] = None
        return None

    def _preemptible(self, pods: Iterable[PodUid]) -> set[PodUid]:
        found = map(self._world.facts.pod, pods)
        return {pod.uid for pod in found if pod is not None and not pod.non_preemptible}

    @cached_property
    def _users_elsewhere(self) -> set[PodUid]:
        """The preemptible users of devices that several nodes can use."""
        facts = self._world.facts
        claims = (c for d in self._inventory.devices.on(SEVERAL) for c in facts.claims_with(d))
        return self._preemptible(uid for claim in claims for uid in claim.reserved_for)

    # The effect of a victim.

    def _left_by(self, head: Head, demand: PodDemand, victim: Victim) -> Iterator[str]:
        """The nodes where the victim releases something that matches the demand."""
        node_fit, own = self._of(head).node_fit, dict.fromkeys(pod.node for pod in victim.users)
        for device in victim.devices:
            if node_fit.would_release(demand, device):
                yield from self._inventory.nodes_of([device])
        names = {request.alternative.name for request in demand.resources}
        if any(name in names for pod in victim.users for name, _ in pod.requests):
            yield from own

    def _why_never_fit(self, head: Head, demand: PodDemand, node: str) -> str | None:
        """Why a node does not fit even without all preemptible pods; None where it does."""
        key = self._kind(demand), node
        if key not in self._never_fit:
            gone = self._preemptible(self._inventory.nodes.pods_on(node)) | self._users_elsewhere
            why = self._why_unfit(head, demand, node, gone)
            self._never_fit[key] = "" if node in self._left_out.missed(demand.pod) else why
        return "" if node in self._left_out.tried(demand.pod, head.uids) else self._never_fit[key]

    def _why_unfit(
        self, head: Head, demand: PodDemand, node: str, gone: Collection[PodUid]
    ) -> str | None:
        try:
            place = self._of(head).node_fit.fit(demand, node, gone, [*self._reserved_at(node)])
        except NotModelledError:
            return None
        return place if isinstance(place, str) else None

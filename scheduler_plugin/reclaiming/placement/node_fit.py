"""Whether a pod fits a node, with its devices and other resources, once other pods are gone.

As in kube-scheduler: any devices of the node that satisfy the requests, one for each, with equal
attribute values where a claim's constraints say so (`matchAttribute`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.held_texts import HeldParts, HeldResources, Part
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.node_requests import NOTHING, Thousandths
from scheduler_plugin.reclaiming.placement.demands import MOST_DEVICES, DeviceRequest, PodDemand
from scheduler_plugin.reclaiming.placement.device_parts import part_of, taken_by
from scheduler_plugin.reclaiming.placement.device_room import DeviceRoom, released_with
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.offers import Constraint, Offer

MOST_VARIANTS = 256
"""The largest number of combinations of constrained attribute values to look at."""

Value = tuple[str, object] | None

Gone = Collection[PodUid] | None
"""Pods that count as gone, in addition to terminating ones; None for what is free now."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement of a pod.

    Attributes:
        node: The node; "" for any node that can use the devices.
        devices: The devices, with the number of slots of each.
        own: The extended resources from the node's device plugin.
        asked: The requests of the pod on the node.
        parts: The parts of the devices that several claims divide.
    """

    pod: PodUid
    node: str
    devices: tuple[tuple[DeviceId, int], ...]
    own: HeldResources
    asked: Thousandths
    parts: HeldParts = ()

    def __str__(self) -> str:
        own = (f"{count} {name}" for name, count in self.own)
        what = ", ".join([*(str(device) for device, _ in self.devices), *own])
        return f'{what or "a place"} on node "{self.node}"'


class NotModelledError(Exception):
    """Raised inside a search where the pod's request is not modelled; the message says why."""


class NodeFit:
    """The nodes and devices of one moment."""

    def __init__(self, inventory: Inventory, use: DeviceUse, stuck: Collection[PodUid]) -> None:
        self._inventory = inventory
        self._stuck = frozenset(stuck)
        self._use = use

    def fit(
        self, demand: PodDemand, node: str, gone: Gone, before: Sequence[Placement]
    ) -> Placement | str:
        """The pod's placement on a node, in addition to the placements of others; else why not.

        The reason is "" where devices are lacking. Raises `NotModelledError`.
        """
        if demand.beside and all((p.pod, p.node) != (demand.beside, node) for p in before):
            return f'node "{node}" is not the node of the pods that share its claims'
        if why := self._why_not(demand, node):
            return f'node "{node}" {why}'
        why = ""
        for choice in demand.choices:
            place = self._fit(demand, choice, node, gone, before)
            if isinstance(place, Placement):
                return place
            why = why or place
        return why

    def has_devices(
        self, demand: PodDemand, node: str, gone: Gone, before: Sequence[Placement]
    ) -> bool:
        """Whether a node has the devices for a pod, and only these. Raises `NotModelledError`."""
        by_class, _ = self._divided(demand, node)
        return any(
            self._matched([*choice, *by_class], node, gone, before) is not None
            for choice in demand.choices
        )

    def _why_not(self, demand: PodDemand, node: str) -> str:
        """Why the pod does not fit a node even if that is empty; "" where it does."""
        view, needs = self._inventory.nodes.get(node), demand.pod.needs
        if view is None:
            return "is not known"
        return view.why_not(needs, demand.selections) if needs is not None else ""

    def _fit(
        self,
        demand: PodDemand,
        choice: Sequence[DeviceRequest],
        node: str,
        gone: Gone,
        before: Sequence[Placement],
    ) -> Placement | str:
        by_class, asked = self._divided(demand, node)
        if any(not request.alternative.device_class for request in by_class):
            return ""
        devices = self._matched([*choice, *by_class], node, gone, before)
        if devices is None:
            return ""
        own = [request.alternative for request in demand.resources if request not in by_class]
        lacks = self._lacks(node, asked, gone, before)
        if lacks in {a.name for a in own}:
            return ""
        if lacks:
            return f'node "{node}" has too little {lacks} for it'
        slots = tuple((a.name, a.count or 0) for a in own)
        return Placement(
            demand.pod.uid,
            node,
            tuple((device, request.alternative.slots) for device, request in devices),
            slots,
            asked,
            tuple(self._parts(devices)),
        )

    def _parts(
        self, devices: Iterable[tuple[DeviceId, DeviceRequest]]
    ) -> Iterator[tuple[DeviceId, Part]]:
        for device, request in devices:
            if (facts := self._offer(device).divided) is not None:
                yield device, part_of(facts, request.criteria.capacity)

    def _lacks(self, node: str, asked: Thousandths, gone: Gone, before: Sequence[Placement]) -> str:
        """The resource of which the node itself has too little; "" for none."""
        nodes = self._inventory.nodes
        there = () if gone is None else {*gone, *(nodes.terminating(node) - self._stuck)}
        beside = [other.asked for other in before if other.node == node]
        return nodes.lacks(node, asked, there, beside)

    def _divided(self, demand: PodDemand, node: str) -> tuple[list[DeviceRequest], Thousandths]:
        """The extended resources that devices provide, and the requests of the node itself."""
        view, needs = self._inventory.nodes.get(node), demand.pod.needs
        has = view.allocatable if view is not None else NOTHING
        by_class = [
            request for request in demand.resources if not has.get(request.alternative.name)
        ]
        names = {request.alternative.name for request in by_class}
        asked = needs.requests if needs is not None else NOTHING
        return by_class, {name: n for name, n in asked.items() if name not in names}

    # Devices.

    def _matched(
        self,
        device_requests: Sequence[DeviceRequest],
        node: str,
        gone: Gone,
        before: Sequence[Placement],
    ) -> tuple[tuple[DeviceId, DeviceRequest], ...] | None:
        """A device for each requested one; None where some are lacking."""
        taken = taken_by((place.devices, place.parts) for place in before)
        room = DeviceRoom(self._use, self._inventory.devices, gone, taken)
        reachable = list(self._inventory.reachable(node)) if device_requests else []
        wanted = [self._wanted(request, reachable, room) for request in device_requests]
        asking = [
            request for request, units in zip(device_requests, wanted, strict=True) for _ in units
        ]
        if any(n > MOST_DEVICES for n in Counter(request.claim for request in asking).values()):
            return None
        for variant in self._variants(device_requests, wanted):
            units = [unit for found in variant for unit in found]
            holder: dict[DeviceId, int] = {}
            if all(_assign(n, units, holder, set()) for n in range(len(units))):
                return tuple((device, asking[n]) for device, n in holder.items())
        return None

    def _wanted(
        self, request: DeviceRequest, reachable: Sequence[DeviceId], room: DeviceRoom
    ) -> list[Sequence[DeviceId]]:
        """For each requested device, the devices that may be it."""
        if request.alternative.count is not None:
            return [self._options(request, reachable, room)] * request.alternative.count
        # As in kube-scheduler: all devices that match, and of shared devices those with room.
        fits = [device for device in reachable if self._inventory.accepts(request, device)]
        free = frozenset(self._options(request, fits, room))
        units = [
            (device,) if device in free else ()
            for device in fits
            if device in free or not self._offer(device).published.is_shared
        ]
        return list(units) or [()]

    def _variants(
        self, device_requests: Sequence[DeviceRequest], wanted: list[list[Sequence[DeviceId]]]
    ) -> list[list[list[Sequence[DeviceId]]]]:
        """The requested devices, once for each combination of constrained attribute values."""
        agreeing: dict[tuple[str, Constraint], list[int]] = {}
        for number, request in enumerate(device_requests):
            for constraint in request.criteria.constraints:
                agreeing.setdefault((request.claim, constraint), []).append(number)
        variants = [wanted]
        for (_, constraint), members in agreeing.items():
            variants = [
                variant
                for before in variants
                for variant in self._of_each_value(before, members, constraint.attribute)
            ]
            if len(variants) > MOST_VARIANTS:
                raise NotModelledError(
                    f"its constraints allow more than {MOST_VARIANTS} combinations of values,"
                    " which are not looked at"
                )
        return variants

    def _of_each_value(
        self, wanted: list[list[Sequence[DeviceId]]], members: Sequence[int], attribute: str
    ) -> Iterator[list[list[Sequence[DeviceId]]]]:
        """The same for each value of an attribute; without any value the devices are lacking."""
        found = {n: self._by_value(wanted[n], attribute) for n in members}
        if sum(len(wanted[n]) for n in members) == 1:  # One device agrees with itself.
            found = {n: {None: [*chain(*each.values())]} for n, each in found.items()}
        for value in dict.fromkeys(v for each in found.values() for v in each) or [None]:
            yield [
                [found[n].get(value, [])] * len(units) if n in members else units
                for n, units in enumerate(wanted)
            ]

    def _by_value(
        self, units: list[Sequence[DeviceId]], attribute: str
    ) -> dict[Value, list[DeviceId]]:
        """The devices by their value; each unit may be any of the same devices."""
        found: dict[Value, list[DeviceId]] = {}
        for device in units[0] if units else ():
            if (value := self._offer(device).value_of(attribute)) is not None:
                found.setdefault(value, []).append(device)
        return found

    def _offer(self, device: DeviceId) -> Offer:
        """An offered device; the inventory does not change during a search."""
        offer = self._inventory.devices.offer(device)
        assert offer is not None, "it was offered a moment ago"
        return offer

    def _options(
        self, request: DeviceRequest, reachable: Sequence[DeviceId], room: DeviceRoom
    ) -> list[DeviceId]:
        return [
            device
            for device in reachable
            if self._inventory.accepts(request, device)
            and room.fits(self._offer(device), request.criteria)
        ]

    def matches(self, demand: PodDemand, device: DeviceId) -> bool:
        """Whether a device matches any request of the pod, free or not."""
        offer = self._inventory.devices.offer(device)
        return offer is not None and any(
            self._inventory.accepts(request, device)
            and not self._use.is_reserved(offer, request.criteria)
            for request in demand.device_requests
        )

    def would_release(self, demand: PodDemand, device: DeviceId) -> bool:
        """Whether a device, once free, may leave the pod a device, itself or by its counters."""
        released = released_with(device, self._inventory.devices)
        return any(self.matches(demand, each) for each in released)


def _assign(
    unit: int,
    units: Sequence[Sequence[DeviceId]],
    holder: dict[DeviceId, int],
    tried: set[DeviceId],
) -> bool:
    """Find a device for one more unit; other units may change theirs."""
    for device in units[unit]:
        if device in tried:
            continue
        tried.add(device)
        if device not in holder or _assign(holder[device], units, holder, tried):
            holder[device] = unit
            return True
    return False

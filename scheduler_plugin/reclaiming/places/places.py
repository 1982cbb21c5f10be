"""Whether a pod fits a node, with its devices and other resources, once other pods are gone.

As in kube-scheduler: any devices of the node that satisfy the requests, one for each, with equal
attribute values where a claim's constraints say so (`matchAttribute`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.held_texts import HeldResources
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.node_requests import NOTHING, Thousandths
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.offers import Constraint, Offer
from scheduler_plugin.reclaiming.places.seekers import MOST_DEVICES, Ask, Seeker
from scheduler_plugin.reclaiming.places.stock import Stock

MOST_VARIANTS = 256
"""The largest number of combinations of constrained attribute values to look at."""

Value = tuple[str, object] | None

Gone = Collection[PodUid] | None
"""Pods that count as gone, in addition to terminating ones; None for what is free now."""


@dataclass(frozen=True, slots=True)
class Place:
    """A placement of a pod.

    Attributes:
        node: The node; "" for any node that can use the devices.
        devices: The devices, with the number of slots of each.
        own: The extended resources from the node's device plugin.
        asked: The requests of the pod on the node.
    """

    pod: PodUid
    node: str
    devices: tuple[tuple[DeviceId, int], ...]
    own: HeldResources
    asked: Thousandths

    def __str__(self) -> str:
        own = (f"{count} {name}" for name, count in self.own)
        what = ", ".join([*(str(device) for device, _ in self.devices), *own])
        return f'{what or "a place"} on node "{self.node}"'


class InDoubtError(Exception):
    """Raised inside a search where the pod's request is not modelled; the message says why."""


class Places:
    """The nodes and devices of one moment."""

    def __init__(self, stock: Stock, use: DeviceUse, stuck: Collection[PodUid]) -> None:
        self._stock = stock
        self._stuck = frozenset(stuck)
        self._use = use

    def fit(self, seeker: Seeker, node: str, gone: Gone, before: Sequence[Place]) -> Place | str:
        """The pod's placement on a node, in addition to the placements of others; else why not.

        The reason is "" where devices are lacking. Raises `InDoubtError`.
        """
        if seeker.beside and all((p.pod, p.node) != (seeker.beside, node) for p in before):
            return f'node "{node}" is not the node of the pods that share its claims'
        if why := self._why_not(seeker, node):
            return f'node "{node}" {why}'
        why = ""
        for choice in seeker.choices:
            place = self._fit(seeker, choice, node, gone, before)
            if isinstance(place, Place):
                return place
            why = why or place
        return why

    def has_devices(self, seeker: Seeker, node: str, gone: Gone, before: Sequence[Place]) -> bool:
        """Whether a node has the devices for a pod, and only these. Raises `InDoubtError`."""
        by_class, _ = self._divided(seeker, node)
        return any(
            self._matched([*choice, *by_class], node, gone, before) is not None
            for choice in seeker.choices
        )

    def _why_not(self, seeker: Seeker, node: str) -> str:
        """Why the pod does not fit a node even if that is empty; "" where it does."""
        view, needs = self._stock.nodes.get(node), seeker.pod.needs
        if view is None:
            return "is not known"
        return view.why_not(needs, seeker.selections) if needs is not None else ""

    def _fit(
        self,
        seeker: Seeker,
        choice: Sequence[Ask],
        node: str,
        gone: Gone,
        before: Sequence[Place],
    ) -> Place | str:
        by_class, asked = self._divided(seeker, node)
        if any(not ask.alternative.device_class for ask in by_class):
            return ""
        devices = self._matched([*choice, *by_class], node, gone, before)
        if devices is None:
            return ""
        own = [ask.alternative for ask in seeker.resources if ask not in by_class]
        lacks = self._lacks(node, asked, gone, before)
        if lacks in {a.name for a in own}:
            return ""
        if lacks:
            return f'node "{node}" has too little {lacks} for it'
        slots = tuple((a.name, a.count or 0) for a in own)
        return Place(seeker.pod.uid, node, devices, slots, asked)

    def _lacks(self, node: str, asked: Thousandths, gone: Gone, before: Sequence[Place]) -> str:
        """The resource of which the node itself has too little; "" for none."""
        nodes = self._stock.nodes
        there = () if gone is None else {*gone, *(nodes.leaving(node) - self._stuck)}
        beside = [other.asked for other in before if other.node == node]
        return nodes.lacks(node, asked, there, beside)

    def _divided(self, seeker: Seeker, node: str) -> tuple[list[Ask], Thousandths]:
        """The extended resources that devices provide, and the requests of the node itself."""
        view, needs = self._stock.nodes.get(node), seeker.pod.needs
        has = view.allocatable if view is not None else NOTHING
        by_class = [ask for ask in seeker.resources if not has.get(ask.alternative.name)]
        names = {ask.alternative.name for ask in by_class}
        asked = needs.requests if needs is not None else NOTHING
        return by_class, {name: n for name, n in asked.items() if name not in names}

    # Devices.

    def _matched(
        self,
        asks: Sequence[Ask],
        node: str,
        gone: Gone,
        before: Sequence[Place],
    ) -> tuple[tuple[DeviceId, int], ...] | None:
        """A device for each requested one; None where some are lacking."""
        taken = _taken(before)
        reachable = list(self._stock.reachable(node)) if asks else []
        wanted = [self._wanted(ask, reachable, gone, taken) for ask in asks]
        asking = [ask for ask, units in zip(asks, wanted, strict=True) for _ in units]
        if any(n > MOST_DEVICES for n in Counter(ask.claim for ask in asking).values()):
            return None
        for variant in self._variants(asks, wanted):
            units = [unit for found in variant for unit in found]
            holder: dict[DeviceId, int] = {}
            if all(_assign(n, units, holder, set()) for n in range(len(units))):
                return tuple((d, asking[n].alternative.slots) for d, n in holder.items())
        return None

    def _wanted(
        self, ask: Ask, reachable: Sequence[DeviceId], gone: Gone, taken: Counter[DeviceId]
    ) -> list[Sequence[DeviceId]]:
        """For each requested device, the devices that may be it."""
        if ask.alternative.count is not None:
            return [self._options(ask, reachable, gone, taken)] * ask.alternative.count
        # As in kube-scheduler: all devices that match, and of shared devices those with room.
        fits = [device for device in reachable if self._stock.accepts(ask, device)]
        free = frozenset(self._options(ask, fits, gone, taken))
        units = [
            (device,) if device in free else ()
            for device in fits
            if device in free or self._offer(device).slots is None
        ]
        return list(units) or [()]

    def _variants(
        self, asks: Sequence[Ask], wanted: list[list[Sequence[DeviceId]]]
    ) -> list[list[list[Sequence[DeviceId]]]]:
        """The requested devices, once for each combination of constrained attribute values."""
        agreeing: dict[tuple[str, Constraint], list[int]] = {}
        for number, ask in enumerate(asks):
            for constraint in ask.request.constraints:
                agreeing.setdefault((ask.claim, constraint), []).append(number)
        variants = [wanted]
        for (_, constraint), members in agreeing.items():
            variants = [
                variant
                for before in variants
                for variant in self._of_each_value(before, members, constraint.attribute)
            ]
            if len(variants) > MOST_VARIANTS:
                raise InDoubtError(
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
        offer = self._stock.devices.offer(device)
        assert offer is not None, "it was offered a moment ago"
        return offer

    def _options(
        self, ask: Ask, reachable: Sequence[DeviceId], gone: Gone, taken: Counter[DeviceId]
    ) -> list[DeviceId]:
        return [
            device
            for device in reachable
            if self._stock.accepts(ask, device)
            and self._use.has_room(self._offer(device), ask.request.slots, gone, taken[device])
        ]

    def would_do(self, seeker: Seeker, device: DeviceId) -> bool:
        """Whether a device matches any request of the pod, free or not."""
        offer = self._stock.devices.offer(device)
        return offer is not None and any(
            self._stock.accepts(ask, device)
            and not self._use.is_promised(offer, ask.alternative.slots)
            for ask in seeker.asks
        )


def _taken(places: Sequence[Place]) -> Counter[DeviceId]:
    taken = Counter[DeviceId]()
    for place in places:
        taken.update(dict(place.devices))
    return taken


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

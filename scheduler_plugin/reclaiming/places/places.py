"""Whether pods would find a node with devices and room once others are gone.

As kube-scheduler looks: any devices of the node will do that satisfy the requests, each for one,
and have the same value where a claim's constraints say so (`matchAttribute`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import ClaimUid, PodUid
from scheduler_plugin.reclaiming.device_wants import MOST_DEVICES, Ask, Seeker
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.evidence import Evidence, InDoubtError
from scheduler_plugin.reclaiming.places.node_room import NodeRoom, Thousandths
from scheduler_plugin.reclaiming.places.offers import Constraint, Offer

MOST_VARIANTS = 256
"""How many combinations of values are looked at that devices have to agree about."""

Value = tuple[str, object] | None

Gone = Collection[PodUid] | None
"""Pods that are gone, and all that are on their way out; None for what is there as it is."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod would be.

    Attributes:
        node: "" for any of those that can use the devices.
        devices: With how many slots of each.
        own: The resources that the node has for it.
        asked: What of the node would be its.
    """

    pod: PodUid
    node: str
    devices: tuple[tuple[DeviceId, int], ...]
    own: tuple[str, ...]
    asked: Thousandths

    def __str__(self) -> str:
        what = ", ".join([*(str(device) for device, _ in self.devices), *self.own])
        return f'{what or "a place"} on node "{self.node}"'


class Places:
    """The nodes and devices of one moment."""

    def __init__(self, evidence: Evidence, use: DeviceUse, stuck: Collection[PodUid]) -> None:
        self._evidence = evidence
        self._stuck = frozenset(stuck)
        self._use = use

    def fit(self, seeker: Seeker, node: str, gone: Gone, before: Sequence[Place]) -> Place | str:
        """A pod's place on a node beside the places of others; else why there is none.

        That is "" where it lacks devices. What is not read yet of the node is not looked at.
        """
        if seeker.beside and all((p.pod, p.node) != (seeker.beside, node) for p in before):
            return f'node "{node}" is not where those are that share its claims'
        why = ""
        for choice in seeker.choices:
            place = self._fit(seeker, choice, node, gone, before)
            if isinstance(place, Place):
                return place
            why = why or place
        return why

    def _fit(
        self,
        seeker: Seeker,
        choice: Sequence[Ask],
        node: str,
        gone: Gone,
        before: Sequence[Place],
    ) -> Place | str:
        room = self._evidence.nodes.get(node)
        if room is None and node in self._evidence.nodes:
            return f'node "{node}" is not known'
        by_class, asked = self._divided(seeker, room)
        if any(not ask.alternative.device_class for ask in by_class):
            return ""
        devices = self._matched([*choice, *by_class], node, room, gone, before)
        if isinstance(devices, int):
            return ""
        needs = self._evidence.needs[seeker.pod.uid]
        own = [ask.alternative for ask in seeker.resources if ask not in by_class]
        place = Place(
            seeker.pod.uid, node, devices, tuple(f"{a.count} {a.name}" for a in own), asked
        )
        if room is None:
            return place
        beside = [other.asked for other in before if other.node == node]
        there = () if gone is None else {*gone, *(room.leaving - self._stuck)}
        if room.lacks({a.name: asked.get(a.name, 0) for a in own}, there, beside):
            return ""
        why = room.why_not(needs, there, asked, beside)
        return f'node "{node}" {why}' if why else place

    def _divided(self, seeker: Seeker, room: NodeRoom | None) -> tuple[list[Ask], Thousandths]:
        """What devices of a class stand for, and what the node itself has to have."""
        by_class = [ask for ask in seeker.resources if _stands_for(ask, room)]
        names = {ask.alternative.name for ask in by_class}
        asked = self._evidence.needs[seeker.pod.uid].requests
        return by_class, {name: n for name, n in asked.items() if name not in names}

    # What is lacking, and who brings it.

    def lacking(
        self, seeker: Seeker, node: str, gone: Gone, before: Sequence[Place]
    ) -> dict[str, int]:
        """What has to be freed there at least: devices (under ""), and of the node's resources."""
        room = self._evidence.nodes.get(node)
        by_class, asked = self._divided(seeker, room)
        found = [
            self._matched([*choice, *by_class], node, room, gone, before)
            for choice in seeker.choices
        ]
        lacks = {"": min(n if isinstance(n, int) else 0 for n in found)}
        if room is not None:
            beside = [other.asked for other in before if other.node == node]
            there = () if gone is None else {*gone, *(room.leaving - self._stuck)}
            lacks |= room.missing(asked, there, beside)
        return {name: amount for name, amount in lacks.items() if amount}

    def brought(
        self,
        seeker: Seeker,
        node: str,
        devices: Collection[DeviceId],
        gone: tuple[Gone, Gone],
        before: Sequence[Place],
    ) -> float:
        """How many of these become free at most when the second are gone and not the first.

        Of a device with slots it is the part of those that are missing.
        """
        offers, taken = self._evidence.offers, _taken(before)
        there = (d for d in set(devices) if d in offers and offers[d].node in ("", node))
        return sum(self._part(seeker, offers[device], gone, taken[device]) for device in there)

    def _part(self, seeker: Seeker, offer: Offer, gone: tuple[Gone, Gone], taken: int) -> float:
        parts = [0.0]
        for ask in seeker.asks:
            slots = self._evidence.requests[ask].slots
            if self._evidence.accepts(ask, offer.device):
                lacks, then = (self._use.lacks(offer, slots, each, taken) for each in gone)
                parts.append(1 - then / lacks if lacks else 0.0)
        return max(parts)

    # Who leaves it anyway.

    def claims_leaving(self, place: Place) -> Iterator[ClaimUid]:
        """Those whose users are on their way out, and have the devices of a place."""
        for device, _ in place.devices:
            yield from self._use.claims_leaving(device)

    def pods_leaving(self, place: Place) -> Collection[PodUid]:
        """Those that are on their way out of a place's node."""
        room = self._evidence.nodes.get(place.node)
        return room.leaving - self._stuck if room is not None else ()

    # Devices.

    def _matched(
        self,
        asks: Sequence[Ask],
        node: str,
        room: NodeRoom | None,
        gone: Gone,
        before: Sequence[Place],
    ) -> tuple[tuple[DeviceId, int], ...] | int:
        """A device for each that is asked for; else how many are lacking at least."""
        taken = _taken(before)
        reachable = list(self._reachable(node, room)) if asks else []
        wanted = [self._wanted(ask, reachable, gone, taken) for ask in asks]
        asking = [ask for ask, units in zip(asks, wanted, strict=True) for _ in units]
        least = len(asking)
        if any(n > MOST_DEVICES for n in Counter(ask.claim for ask in asking).values()):
            return least
        for variant in self._variants(asks, wanted):
            units = [unit for found in variant for unit in found]
            holder: dict[DeviceId, int] = {}
            lacking = sum(not _assign(n, units, holder, set()) for n in range(len(units)))
            if not lacking:
                return tuple((d, asking[n].alternative.slots) for d, n in holder.items())
            least = min(least, lacking)
        return least

    def _wanted(
        self, ask: Ask, reachable: Sequence[DeviceId], gone: Gone, taken: Counter[DeviceId]
    ) -> list[Sequence[DeviceId]]:
        """Each device that is asked for, as those that it may be."""
        if ask.alternative.count is not None:
            return [self._options(ask, reachable, gone, taken)] * ask.alternative.count
        # As kube-scheduler means it: all that match, of shared ones those that have room.
        answers = {device: self._evidence.answer(ask, device) for device in reachable}
        free = frozenset(self._options(ask, reachable, gone, taken))
        offers = self._evidence.offers
        units = [
            (device,) if device in free else ()
            for device, answer in answers.items()
            if answer is not False
            and (device in free or not answer or offers[device].slots is None)
        ]
        return list(units) or [()]

    def _variants(
        self, asks: Sequence[Ask], wanted: list[list[Sequence[DeviceId]]]
    ) -> list[list[list[Sequence[DeviceId]]]]:
        """What is asked for, once for each value that those may have that have to agree."""
        agreeing: dict[tuple[str, Constraint], list[int]] = {}
        for number, ask in enumerate(asks):
            for constraint in self._evidence.requests[ask].constraints:
                agreeing.setdefault((ask.claim, constraint), []).append(number)
        variants = [wanted]
        for (_, constraint), members in agreeing.items():
            variants = [
                [self._of_value(u, constraint, value) if n in members else u for n, u in each]
                for before in variants
                for each in [list(enumerate(before))]
                for value in self._values(constraint, [before[n] for n in members])
            ]
            if len(variants) > MOST_VARIANTS:
                raise InDoubtError("so many values of what has to agree are not looked at")
        return variants

    def _values(
        self, constraint: Constraint, wanted: Sequence[Sequence[Sequence[DeviceId]]]
    ) -> list[Value]:
        """Those of the devices that are there; None for none, so that they are lacking."""
        offers, name = self._evidence.offers, constraint.attribute
        devices = dict.fromkeys(d for units in wanted for unit in units[:1] for d in unit)
        return list(dict.fromkeys(filter(None, (offers[d].value_of(name) for d in devices)))) or [
            None
        ]

    def _of_value(
        self, units: list[Sequence[DeviceId]], constraint: Constraint, value: Value
    ) -> list[Sequence[DeviceId]]:
        if not units or value is None:
            return [()] * len(units)
        offers, name = self._evidence.offers, constraint.attribute
        return [[d for d in units[0] if offers[d].value_of(name) == value]] * len(units)

    def _reachable(self, node: str, room: NodeRoom | None) -> Iterator[DeviceId]:
        yield from self._evidence.on.get(node, ()) if node else ()
        for device in self._evidence.on.get("", ()):
            nodes = self._evidence.offers[device].nodes
            if room is None or nodes.match(room.name, room.labels):
                yield device

    def _options(
        self, ask: Ask, reachable: Sequence[DeviceId], gone: Gone, taken: Counter[DeviceId]
    ) -> list[DeviceId]:
        slots = self._evidence.requests[ask].slots
        return [
            device
            for device in reachable
            if self._evidence.accepts(ask, device)
            and self._use.has_room(self._evidence.offers[device], slots, gone, taken[device])
        ]

    def has_device(self, asks: Sequence[Ask], device: DeviceId, gone: Gone) -> bool:
        """Whether a device would do for something that is asked for, and has room."""
        offer = self._evidence.offers[device]
        return any(
            self._evidence.accepts(ask, device)
            and self._use.has_room(offer, self._evidence.requests[ask].slots, gone)
            for ask in asks
        )

    def would_do(self, seeker: Seeker, device: DeviceId) -> bool:
        """Whether a device would do for something that is asked for, were it free."""
        if self._use.is_promised(device):
            return False
        return any(self._evidence.accepts(ask, device) for ask in seeker.asks)


def _taken(places: Sequence[Place]) -> Counter[DeviceId]:
    taken = Counter[DeviceId]()
    for place in places:
        taken.update(dict(place.devices))
    return taken


def _stands_for(ask: Ask, room: NodeRoom | None) -> bool:
    """Whether devices of a class stand for a resource: where the node has none of it itself."""
    return room is not None and not room.allocatable.get(ask.alternative.name)


def _assign(
    unit: int,
    units: Sequence[Sequence[DeviceId]],
    holder: dict[DeviceId, int],
    tried: set[DeviceId],
) -> bool:
    """Find a device for one more unit; those that have one may change to another."""
    for device in units[unit]:
        if device in tried:
            continue
        tried.add(device)
        if device not in holder or _assign(holder[device], units, holder, tried):
            holder[device] = unit
            return True
    return False


def result_of(steps: Generator[None, None, list[Place] | None]) -> list[Place] | None:
    """What a look ends with, for who does not pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[Place] | None = end.value
            return found

"""Parts of devices that several claims divide, by capacity, as kube-scheduler counts them.

An allocation of such a device consumes a part of each capacity that the device has. Amounts are
thousandths of a unit: nothing here counts up to one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple, TypeAlias

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.device_facts import DeviceFacts
from scheduler_plugin.objects.devices.request_policies import consumed
from scheduler_plugin.objects.held_texts import HeldDevices, HeldParts, Part


class Taking(NamedTuple):
    """What a placement or a hold takes of a device.

    Attributes:
        slots: The slots; 1 for a device without slots.
        part: The part of a divided device; None for a device of another kind, or if it is unknown.
    """

    slots: int
    part: Part | None = None


Taken: TypeAlias = dict[DeviceId, list[Taking]]
"""What placements or holds take of each device."""


def taken_by(found: Iterable[tuple[HeldDevices, HeldParts]]) -> Taken:
    """What is taken of each device by placements or holds, given their devices and parts."""
    taken: Taken = {}
    for devices, parts in found:
        known = dict(parts)
        for device, slots in devices:
            taken.setdefault(device, []).append(Taking(slots, known.get(device)))
    return taken


def part_of(facts: DeviceFacts, asked: Iterable[tuple[str, int]]) -> Part:
    """The part of a divided device that a request consumes."""
    amounts = dict(asked)
    return tuple(
        (each.name, consumed(amounts.get(each.name), each.has, each.policy))
        for each in facts.capacities
    )


def allocated_part(facts: DeviceFacts, amounts: Iterable[tuple[str, int]]) -> Part:
    """The part that an allocation consumes; all of a capacity that it does not name."""
    known = dict(amounts)
    return tuple((each.name, known.get(each.name, each.has)) for each in facts.capacities)


def times(facts: DeviceFacts, part: Part, used: Sequence[Part]) -> float:
    """How often a part is free beside the used ones."""
    wanted, found = dict(part), inf
    for capacity in facts.capacities:
        free = capacity.has - sum(dict(each).get(capacity.name, 0) for each in used)
        if free < 0:
            return 0
        if each := wanted.get(capacity.name):
            found = min(found, free // each)
    return found


def may_satisfy(facts: DeviceFacts, asked: Iterable[tuple[str, int]]) -> bool:
    """Whether a device, free as a whole, has what a request asks for of each capacity."""
    found = ((facts.capacity(name), amount) for name, amount in asked)
    return all(capacity is not None and amount <= capacity.has for capacity, amount in found)

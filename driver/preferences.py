"""Preferences among devices that the kubelet could give: spread over Instances.

A container that asks for two cameras wants two cameras.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from driver.api import InstanceName
from driver.device_ids import parse_slot_id
from driver.slots import InstanceSlots


def preferred_devices(
    available: Iterable[str],
    must_include: Iterable[str],
    size: int,
    instances: Mapping[InstanceName, InstanceSlots],
) -> tuple[str, ...]:
    """The answer to GetPreferredAllocation for one container.

    The next device is one of the Instance that has given least to this container, among those of
    the one with most slots left, among those of the first by name, and there of the lowest slot.

    Args:
        available: Ids to choose from.
        must_include: Ids that are in the answer whatever else is.
        size: How many are wanted; with too few available the answer is shorter.
        instances: Those of the resource.
    """
    chosen = list(dict.fromkeys(must_include))
    rest = set(available).difference(chosen)
    given = Counter(_instance(device, instances) for device in chosen)
    while rest and len(chosen) < size:
        device = min(rest, key=lambda d: _order(d, given, instances))
        rest.remove(device)
        chosen.append(device)
        given[_instance(device, instances)] += 1
    return tuple(chosen)


def _order(
    device: str, given: Counter[str], instances: Mapping[InstanceName, InstanceSlots]
) -> tuple[int, int, str, int, str]:
    name = _instance(device, instances)
    slots = instances.get(InstanceName(name))
    left = len(slots.available) if slots else 0
    slot = parse_slot_id(device)
    return given[name], -left, name, slot[1] if slot else 0, device


def _instance(device: str, known: Collection[str]) -> str:
    """The Instance of an id; an id of unknown making is one of its own."""
    slot = parse_slot_id(device)
    return slot[0] if slot and device not in known and slot[0] in known else device

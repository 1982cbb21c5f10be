"""Preferences among devices that the kubelet could give: spread over Instances.

A container that asks for two cameras wants two cameras.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush

from driver.api import InstanceName
from driver.device_ids import parse_slot_id
from driver.instances.slots.slots import InstanceSlots


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
    given = Counter(_instance(device, instances) for device in chosen)
    queues = _queues(set(available).difference(chosen), instances)
    # The next turn of each Instance; `given` is part of it and changes only with its own turns.
    turns = [(given[name], -_left(name, instances), name) for name in queues]
    heapify(turns)
    while turns and len(chosen) < size:
        turn, left, name = heappop(turns)
        chosen.append(queues[name].pop())
        if queues[name]:
            heappush(turns, (turn + 1, left, name))
    return tuple(chosen)


def _queues(
    devices: Iterable[str], instances: Mapping[InstanceName, InstanceSlots]
) -> dict[str, list[str]]:
    """Devices by Instance, each with the lowest slot last."""
    queues: dict[str, list[str]] = {}
    for device in sorted(devices, key=_rank, reverse=True):
        queues.setdefault(_instance(device, instances), []).append(device)
    return queues


def _rank(device: str) -> tuple[int, str]:
    slot = parse_slot_id(device)
    return (slot[1] if slot else 0), device


def _left(name: str, instances: Mapping[InstanceName, InstanceSlots]) -> int:
    slots = instances.get(InstanceName(name))
    return len(slots.available) if slots else 0


def _instance(device: str, known: Collection[str]) -> str:
    """The Instance of an id; an id of unknown making is one of its own."""
    slot = parse_slot_id(device)
    return slot[0] if slot and device not in known and slot[0] in known else device

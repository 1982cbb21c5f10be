"""Preferences among the devices that the kubelet may allocate: spread over Instances.

A container that requests two cameras should get two different cameras.
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

    The next device belongs to the Instance with the fewest devices in this container; among these
    to the one with the most free slots; among these to the first by name. Its slot is the lowest.

    Args:
        available: Ids to choose from.
        must_include: Ids that the answer must include.
        size: Number of wanted ids; with too few available the answer is shorter.
        instances: The Instances of the resource.
    """
    chosen = list(dict.fromkeys(must_include))
    given = Counter(_instance(device, instances) for device in chosen)
    queues = _queues(set(available).difference(chosen), instances)
    # The heap has one entry for each Instance, with its number of chosen devices first.
    heap = [(given[name], -_free(name, instances), name) for name in queues]
    heapify(heap)
    while heap and len(chosen) < size:
        count, free, name = heappop(heap)
        chosen.append(queues[name].pop())
        if queues[name]:
            heappush(heap, (count + 1, free, name))
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


def _free(name: str, instances: Mapping[InstanceName, InstanceSlots]) -> int:
    slots = instances.get(InstanceName(name))
    return len(slots.available) if slots else 0


def _instance(device: str, known: Collection[str]) -> str:
    """The Instance of an id; an id of unknown form counts as an Instance of its own."""
    slot = parse_slot_id(device)
    return slot[0] if slot and device not in known and slot[0] in known else device

"""Hardware of vendors that do not exist, as slices of the shapes that well-known drivers publish.

Quantities are written as the API server writes them: what is published compares equal to this.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Slice = dict[str, Any]
"""The fields of a ResourceSlice's spec that a profile gives: `sharedCounters` or `devices`."""

UNITS = {"": 1, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}

GPUS = "gpu.example.com"
NICS = "nic.example.com"

MODEL = "H200"
GIBIBYTES = 80
MULTIPROCESSORS = 98


@dataclass(frozen=True)
class Partition:
    """A kind of partition of a GPU, by its name in the attribute `profile`, and what it takes."""

    profile: str
    gibibytes: int
    multiprocessors: int
    places: int
    """On how many places of a GPU it may be made; not all kinds at once, which counters say."""


PARTITIONS = (Partition("3g.40gb", 40, 42, 2), Partition("1g.10gb", 10, 14, 7))


def partitionable_gpus(*names: str) -> list[Slice]:
    """At most 8 GPUs that are used whole or by partitions, of 80 GiB and 98 multiprocessors each.

    Their counter sets stand in one slice, and the devices of each in one more: a slice holds 8
    sets, or 64 devices that consume of them.
    """
    counters = [{"name": name, "counters": _counters(GIBIBYTES, MULTIPROCESSORS)} for name in names]
    devices = [{"devices": [_whole(name), *_partitions(name)]} for name in names]
    return [{"sharedCounters": counters}, *devices]


def divisible_gpus(*names: str) -> list[Slice]:
    """GPUs that several claims divide by memory, by steps of 5 GiB; 20 GiB unless asked for."""
    policy = _policy("20Gi", least="5Gi", most=f"{GIBIBYTES}Gi", step="5Gi")
    memory = {"value": f"{GIBIBYTES}Gi", "requestPolicy": policy}
    return [{"devices": [_shared(name, _gpu(name), {"memory": memory}) for name in names]}]


def divisible_nics(*names: str) -> list[Slice]:
    """NICs of 100 Gbit/s that several claims divide by bandwidth, by steps of 1 Gbit/s."""
    policy = _policy("10G", least="1G", most="100G", step="1G")
    capacity = {"bandwidth": {"value": "100G", "requestPolicy": policy}}
    return [{"devices": [_shared(name, _identity(name, "NIC-100"), capacity) for name in names]}]


def amounts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Quantities as numbers: kube-scheduler of 1.36 writes 2G, once rounded, as 1953125Ki."""
    return {name: _amount(quantity) for name, quantity in quantities.items()}


def _amount(quantity: str) -> int:
    digits = quantity.rstrip("MGKi")
    return int(digits) * UNITS[quantity.removeprefix(digits)]


def _whole(name: str) -> dict[str, Any]:
    return _counted(name, name, _gpu(name), _counters(GIBIBYTES, MULTIPROCESSORS))


def _partitions(gpu: str) -> Iterator[dict[str, Any]]:
    for kind in PARTITIONS:
        for place in range(kind.places):
            name = f"{gpu}-{kind.profile.replace('.', '-')}-{place}"
            attributes = {
                "type": {"string": "partition"},
                "profile": {"string": kind.profile},
                "parentUUID": _gpu(gpu)["uuid"],
                **_identity(name, MODEL),
            }
            yield _counted(name, gpu, attributes, _counters(kind.gibibytes, kind.multiprocessors))


def _counted(name: str, counter_set: str, attributes: Any, counters: Any) -> dict[str, Any]:
    """A device whose capacity is what it consumes of its GPU's counters."""
    consumed = {"counterSet": counter_set, "counters": counters}
    return {
        "name": name,
        "attributes": attributes,
        "capacity": counters,
        "consumesCounters": [consumed],
    }


def _shared(name: str, attributes: Any, capacity: Any) -> dict[str, Any]:
    return {
        "name": name,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": True,
    }


def _gpu(name: str) -> dict[str, Any]:
    return {"type": {"string": "gpu"}, **_identity(name, MODEL)}


def _identity(name: str, model: str) -> dict[str, Any]:
    unique = uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.example.com")
    return {"model": {"string": model}, "uuid": {"string": str(unique)}}


def _counters(gibibytes: int, multiprocessors: int) -> dict[str, Any]:
    return {
        "memory": {"value": f"{gibibytes}Gi"},
        "multiprocessors": {"value": str(multiprocessors)},
    }


def _policy(default: str, *, least: str, most: str, step: str) -> dict[str, Any]:
    return {"default": default, "validRange": {"min": least, "max": most, "step": step}}

"""What a pod's conditions say of what is held for it, and of nodes where it was held in vain.

Whoever leads next has nothing else to go by. So it is written as text that people read, and read
back as it was written; text of any other form says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from kube.shapes.times import read_time, timestamp
from scheduler_plugin.objects.claims import DeviceId

HeldDevices: TypeAlias = tuple[tuple[DeviceId, int], ...]
"""Devices, each with how many slots of it; 1 for one that is used as a whole."""

HeldResources: TypeAlias = tuple[tuple[str, int], ...]
"""Resources of a device plugin, each with how many slots of it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is held where; of neither devices nor resources it is room alone."""

    devices: HeldDevices = ()
    resources: HeldResources = ()
    node: str = ""


_HELD = r'Held: (?P<what>[^"]*?) on node "(?P<node>[^"]*)"\.$'
_DEVICE = r"(?P<driver>[^/ ]+)/(?P<pool>[^ ]+)/(?P<name>[^/ ]+) \((?P<slots>\d+)\)"
_RESOURCE = r"(?P<name>[^/ ]+/[^/ ]+) \((?P<slots>\d+)\)"
_MISSED = r'"(?P<node>[^"]*)" until (?P<until>[0-9TZ:+-]+)'


def held_text(held: Held) -> str:
    """Which devices are held where, as the last sentence of a condition; "" for none."""
    if held == Held():
        return ""
    devices = [f"{d.driver}/{d.pool}/{d.name} ({slots})" for d, slots in held.devices]
    resources = [f"{name} ({slots})" for name, slots in held.resources]
    return f'Held: {", ".join([*devices, *resources]) or "room"} on node "{held.node}".'


def read_held(message: str) -> Held | None:
    """What `held_text` said at the end of a message; None where it says none of that."""
    found = re.search(_HELD, message)
    if found is None:
        return None
    named = found["what"].split(", ")
    devices = tuple(
        (DeviceId(each["driver"], each["pool"], each["name"]), int(each["slots"]))
        for each in filter(None, (re.fullmatch(_DEVICE, one) for one in named))
    )
    resources = filter(None, (re.fullmatch(_RESOURCE, one) for one in named))
    own = tuple((each["name"], int(each["slots"])) for each in resources)
    return Held(devices, own, found["node"])


def missed_text(nodes: Mapping[str, datetime]) -> str:
    """Where nothing is taken for a pod until when; "" names those that several nodes could be."""
    named = ", ".join(f'"{name}" until {timestamp(until)}' for name, until in nodes.items())
    return f"Room was held for the pod, and it was not bound. Left out: {named}."


def read_missed(message: str) -> Iterator[tuple[str, datetime]]:
    """What `missed_text` said; a time that cannot be read says nothing."""
    for found in re.finditer(_MISSED, message):
        if until := read_time(found["until"]):
            yield found["node"], until


def names_of(devices: Iterable[tuple[DeviceId, int]]) -> frozenset[DeviceId]:
    """The devices alone."""
    return frozenset(device for device, _ in devices)

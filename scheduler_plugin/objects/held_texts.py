"""The messages of a pod's conditions about what is held for it, and about nodes to omit.

The next leader restores holds from these messages. They are readable for users and parsed in
exactly this form; any other text is ignored.
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
"""Devices, each with a number of slots; 1 for a device that is used as a whole."""

Part: TypeAlias = tuple[tuple[str, int], ...]
"""A part of a device that several claims divide: of each capacity, in thousandths."""

HeldParts: TypeAlias = tuple[tuple[DeviceId, Part], ...]
"""The parts of held devices that several claims divide. No message states them."""

HeldResources: TypeAlias = tuple[tuple[str, int], ...]
"""Resources of a device plugin, each with a number of slots."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is held on a node; without devices and resources, it is room below limits only."""

    devices: HeldDevices = ()
    resources: HeldResources = ()
    node: str = ""


_HELD = r'Held: (?P<what>[^"]*?) on node "(?P<node>[^"]*)"\.$'
_DEVICE = r"(?P<driver>[^/ ]+)/(?P<pool>[^ ]+)/(?P<name>[^/ ]+) \((?P<slots>\d+)\)"
_RESOURCE = r"(?P<name>[^/ ]+/[^/ ]+) \((?P<slots>\d+)\)"
_MISSED = r'"(?P<node>[^"]*)" until (?P<until>[0-9TZ:+-]+)'


def held_text(held: Held) -> str:
    """What is held on which node, as the last sentence of a message; "" for nothing."""
    if held == Held():
        return ""
    devices = [f"{d.driver}/{d.pool}/{d.name} ({slots})" for d, slots in held.devices]
    resources = [f"{name} ({slots})" for name, slots in held.resources]
    return f'Held: {", ".join([*devices, *resources]) or "room"} on node "{held.node}".'


def read_held(message: str) -> Held | None:
    """Parse `held_text` at the end of a message; None if there is none."""
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
    """The nodes that are omitted for a pod, each until when; "" stands for shared devices."""
    named = ", ".join(f'"{name}" until {timestamp(until)}' for name, until in nodes.items())
    return f"Room was held for the pod, and it was not bound. Left out: {named}."


def read_missed(message: str) -> Iterator[tuple[str, datetime]]:
    """Parse `missed_text`; nodes with an invalid time are ignored."""
    for found in re.finditer(_MISSED, message):
        if until := read_time(found["until"]):
            yield found["node"], until


def names_of(devices: Iterable[tuple[DeviceId, int]]) -> frozenset[DeviceId]:
    """The devices, without their numbers of slots."""
    return frozenset(device for device, _ in devices)

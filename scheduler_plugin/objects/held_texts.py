"""What a pod's conditions say of what is held for it, and of nodes where it was held in vain.

Whoever leads next has nothing else to go by. So it is written as text that people read, and read
back as it was written; text of any other form says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeAlias

from driver.api import timestamp
from scheduler_plugin.objects.claims import DeviceId

HeldDevices: TypeAlias = tuple[tuple[DeviceId, int], ...]
"""Devices, each with how many slots of it; 1 for one that is used as a whole."""

_HELD = re.compile(r'Held: (?P<devices>[^"]*?) on node "(?P<node>[^"]*)"\.$')
_DEVICE = re.compile(r"(?P<driver>[^/ ,]+)/(?P<pool>[^ ,]+)/(?P<name>[^/ ,]+) \((?P<slots>\d+)\)")
_MISSED = re.compile(r'"(?P<node>[^"]*)" until (?P<until>[0-9TZ:+-]+)')


def held_text(devices: HeldDevices, node: str) -> str:
    """Which devices are held where, as the last sentence of a condition; "" for none."""
    if not devices and not node:
        return ""
    named = ", ".join(f"{d.driver}/{d.pool}/{d.name} ({slots})" for d, slots in devices)
    return f'Held: {named or "room"} on node "{node}".'


def read_held(message: str) -> tuple[HeldDevices, str]:
    """What `held_text` said at the end of a message; nothing where it says none of that."""
    found = _HELD.search(message)
    if found is None:
        return (), ""
    devices = tuple(
        (DeviceId(each["driver"], each["pool"], each["name"]), int(each["slots"]))
        for each in _DEVICE.finditer(found["devices"])
    )
    return devices, found["node"]


def missed_text(nodes: Mapping[str, datetime]) -> str:
    """Where nothing is taken for a pod until when; "" names those that several nodes could be."""
    named = ", ".join(f'"{name}" until {timestamp(until)}' for name, until in nodes.items())
    return f"Room was held for the pod, and it was not bound. Left out: {named}."


def read_missed(message: str) -> Iterator[tuple[str, datetime]]:
    """What `missed_text` said; a time that cannot be read says nothing."""
    for found in _MISSED.finditer(message):
        try:
            until = datetime.fromisoformat(found["until"])
        except ValueError:
            continue
        if until.tzinfo is not None:
            yield found["node"], until


def names_of(devices: Iterable[tuple[DeviceId, int]]) -> frozenset[DeviceId]:
    """The devices alone."""
    return frozenset(device for device, _ in devices)

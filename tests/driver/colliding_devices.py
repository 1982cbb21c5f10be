"""Ids of devices whose hashes are equal: of 24 bits, a few thousand ids are enough to find some."""

from __future__ import annotations

from itertools import count

from driver.api import NodeName
from driver.devices import device_hash


def colliding(*nodes: NodeName | None) -> tuple[str, str]:
    """Ids of two devices of one hash, the first on the first of these nodes, and so on."""
    first, second = nodes
    seen: dict[str, str] = {}
    for number in count():
        id_ = f"device-{number:05}"
        if number % 2:
            if rival := seen.get(device_hash(id_, second)):
                return rival, id_
        else:
            seen[device_hash(id_, first)] = id_
    raise AssertionError("some are found")


COLLIDING = colliding(None, None)

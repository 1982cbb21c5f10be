"""The annotation `moorage.dev/charged` of a claim: what its devices cost when they were listed.

    {"gpu.example.com/node-a/gpu-0": {"gpu-memory": "80Gi", "h200": "1"}}

A slice may go while its devices are in use. Then the annotation says what they cost: for each
device, by the names of the entries of the owner and its ancestors. It is written again when a
device changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from kube.shapes.quantities import thousandths, whole
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.measures import amount_text, is_measured

Costs = Mapping[str, str]
"""Amounts of a device by the names of entries."""

_NOTE = dict[str, dict[str, str]]


def path_of(device: DeviceId) -> str:
    """Driver, pool and name, as the annotation has them."""
    return f"{device.driver}/{device.pool}/{device.name}"


def charge_note(devices: Mapping[DeviceId, Mapping[ResourceKey, int]]) -> str:
    """The annotation for these devices; "" for none."""
    found = {
        path_of(device): {str(key): amount_text(key, amount) for key, amount in costs.items()}
        for device, costs in devices.items()
    }
    return msgspec.json.encode(found, order="deterministic").decode() if found else ""


def noted_amounts(note: str, device: DeviceId) -> Costs | None:
    """What a note says of a device; None if it says nothing."""
    return _read(note).get(path_of(device)) if note else None


def noted_amount(costs: Costs, key: ResourceKey) -> int:
    """What an entry is charged by a note; 0 for an entry that did not count the device."""
    text = costs.get(str(key), "0")
    return (thousandths(text) if is_measured(key) else whole(text)) or 0


@lru_cache(maxsize=1_024)
def _read(note: str) -> Mapping[str, Costs]:
    """Only the binder writes the annotation; what it did not write says nothing."""
    try:
        return msgspec.json.decode(note, type=_NOTE)
    except msgspec.MsgspecError:
        return {}

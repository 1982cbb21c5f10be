"""Adoption: what to make of slices that the API server did not store as they were written.

An API server drops the fields of features that are off. Its answer then differs from what was
asked for, and so would every later comparison: an endless loop of updates. So what came back is
adopted: a stored slice is up to date if it holds what is wanted, or what became of exactly that.

Comparing "but for dropped fields" would need no memory. But a field that an old version of the
driver never wrote looks like one that was dropped, and the new version's would never get there.
The price of memory is one write too many of each such slice after a restart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from driver.publishing.written.resource_slices import SliceContent, SliceDevice, scope_fields

_GATES = {
    "taints": "DRADeviceTaints",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "capacity": "DRAConsumableCapacity",
    "bindingConditions": "DRADeviceBindingConditions",
    "bindingFailureConditions": "DRADeviceBindingConditions",
    "bindsToNode": "DRADeviceBindingConditions",
    "consumesCounters": "DRAPartitionableDevices",
    "nodeName": "DRAPartitionableDevices",
    "nodeSelector": "DRAPartitionableDevices",
    "allNodes": "DRAPartitionableDevices",
    "sharedCounters": "DRAPartitionableDevices",
    "perDeviceNodeSelection": "DRAPartitionableDevices",
    "nodeAllocatableResourceMappings": "DRANodeAllocatableResources",
}
"""Which feature gate keeps a field of a slice or of a device."""


class _Stored(NamedTuple):
    wanted: str
    became: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """What one pool remembers of its last writes; losing it costs a write, nothing more.

    Attributes:
        slices: By index: digests of what was wanted and of what it became.
        dropped: The fields that did not survive, as `devices[].taints`.
    """

    slices: Mapping[int, _Stored] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    def holds(self, index: int, wanted: SliceContent, stored: SliceContent) -> bool:
        """Whether a stored slice holds what is wanted, or what became of it."""
        if stored.equals(wanted):
            return True
        known = self.slices.get(index)
        return known is not None and known == (_digest(wanted), _digest(stored))


def adopt(adopted: Adopted, index: int, wanted: SliceContent, stored: SliceContent) -> Adopted:
    """Take note of the API server's answer to a create or update."""
    others = {other: entry for other, entry in adopted.slices.items() if other != index}
    if stored.equals(wanted):
        return Adopted(others, adopted.dropped)
    entry = _Stored(_digest(wanted), _digest(stored))
    return Adopted({**others, index: entry}, adopted.dropped | set(_dropped(wanted, stored)))


def feature_gates(dropped: frozenset[str]) -> tuple[str, ...]:
    """The features that are probably off; empty if something else changes our slices."""
    names = (path.rpartition(".")[2] for path in dropped)
    return tuple(sorted({_GATES[name] for name in names if name in _GATES}))


def _digest(content: SliceContent) -> str:
    parts = (repr(content.scope), content.counters, *(device.text for device in content.devices))
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _dropped(wanted: SliceContent, stored: SliceContent) -> Iterator[str]:
    if wanted.counters != stored.counters:
        yield "sharedCounters"
    if wanted.scope != stored.scope:
        yield from scope_fields(wanted.scope)
    for mine, theirs in zip_longest(wanted.devices, stored.devices):
        yield from (f"devices[].{name}" for name in _changed_fields(mine, theirs))


def _changed_fields(mine: SliceDevice | None, theirs: SliceDevice | None) -> Iterator[str]:
    if mine != theirs:
        before, after = _body(mine), _body(theirs)
        changed = before.keys() | after.keys()
        yield from (name for name in changed if before.get(name) != after.get(name))


def _body(device: SliceDevice | None) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(device.text) if device else {}
    return body

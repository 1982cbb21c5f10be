"""Groups: which devices of a pool share slices, by the nodes that see them.

    Publication, stored slices ──groups_of──► DeviceGroups

kube-scheduler reads a slice for each set of nodes fastest, and an API server without
`perDeviceNodeSelection` keeps nothing else. But a thousand cameras that a thousand different sets
of nodes see would be a thousand slices, all rewritten whenever one is added. So if the sets would
take far more slices than the devices need, each device names its own nodes.

The threshold has hysteresis, since each change between the two forms is a new generation of the
pool. Devices that very many nodes see are always grouped by their nodes: their lists of nodes would
make a slice larger than an object may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from driver.publishing.apply.resource_slices import (
    NodeSelectorScope,
    PerDeviceScope,
    Scope,
    StoredSlice,
)
from driver.publishing.apply.shards import SLICE_LIMIT, DeviceGroup
from driver.publishing.desired.publication import Offer, Publication

LONGEST_SELECTOR = 4096
"""Most characters of a device's own node selector; a full slice then has 256 KiB of selectors."""

_Grouped = Mapping[Scope, list[Offer]]


def groups_of(
    publication: Publication,
    scope: Scope,
    stored: Iterable[StoredSlice],
    *,
    device_nodes: bool,
) -> tuple[DeviceGroup, ...]:
    """The groups of a pool, at least one.

    Args:
        publication: The publication of the pool.
        scope: The scope of devices that have none of their own.
        stored: The stored slices of the pool.
        device_nodes: Whether the API server keeps the scope of a device (KEP-4815).
    """
    grouped: dict[Scope, list[Offer]] = {}
    for offer in publication.offers.values():
        grouped.setdefault(offer.scope or scope, []).append(offer)
    short = {seen: found for seen, found in grouped.items() if _is_short(seen)}
    if device_nodes and _saves_slices(short, was_done=_is_per_device(stored)):
        long = {seen: found for seen, found in grouped.items() if seen not in short}
        return (_per_device(short), *_by_scope(long))
    return _by_scope(grouped) or (DeviceGroup(scope),)


def _is_short(scope: Scope) -> bool:
    return not isinstance(scope, NodeSelectorScope) or len(scope.selector) <= LONGEST_SELECTOR


def _saves_slices(grouped: _Grouped, *, was_done: bool) -> bool:
    needed = _slices(sum(map(len, grouped.values())))
    by_scope = sum(_slices(len(found)) for found in grouped.values())
    return by_scope > (needed if was_done else 2 * needed)


def _slices(devices: int) -> int:
    return -(-devices // SLICE_LIMIT)


def _is_per_device(stored: Iterable[StoredSlice]) -> bool:
    newest = max(stored, key=lambda view: view.generation, default=None)
    views = (view for view in stored if newest and view.generation == newest.generation)
    return any(view.content.scope == PerDeviceScope() for view in views)


def _by_scope(grouped: _Grouped) -> tuple[DeviceGroup, ...]:
    return tuple(
        DeviceGroup(seen, tuple(offer.device for offer in found)) for seen, found in grouped.items()
    )


def _per_device(grouped: _Grouped) -> DeviceGroup:
    """Devices in the order of their names, as they are published."""
    devices = [offer.device_with(seen) for seen, found in grouped.items() for offer in found]
    return DeviceGroup(PerDeviceScope(), tuple(sorted(devices, key=lambda device: device.name)))

"""Placement: which slice of its pool a device is in.

A device stays in its slice. A move rewrites two slices and so needs a new generation of the pool:
all slices are written again, and no device can be allocated meanwhile. Hence:

* A new device goes to the first slice of its scope with room, else to an empty slice, else to a new
  slice.
* A slice that becomes empty stays. Slices are removed from the end only if the pool has more than
  twice as many as it needs, or if one is missing and a new generation is due anyway.
* A slice has at most `SLICE_LIMIT` devices, tainted or not. The API allows 128 devices, but only 64
  if one of them has a taint: with 128 devices the first one to go offline would split the slice.
* A slice has the scope that most of its devices have now. When another node sees a device, the
  slice is updated in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from driver.api import DeviceName
from driver.publishing.apply.resource_slices import Scope, SliceContent, SliceDevice

SLICE_LIMIT = 64
"""`ResourceSliceMaxDevicesWithAdvancedFeatures` of resource.k8s.io/v1."""


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices that the same nodes see, in the order in which kube-scheduler tries them."""

    scope: Scope
    devices: tuple[SliceDevice, ...] = ()


@dataclass(slots=True)
class _Shard:
    """A slice that is being filled; one without a scope is empty and takes any scope."""

    scope: Scope | None = None
    names: list[DeviceName] = field(default_factory=list)

    def has_room_for(self, scope: Scope) -> bool:
        return self.scope == scope and len(self.names) < SLICE_LIMIT


def place(
    groups: Sequence[DeviceGroup], stored: Mapping[int, SliceContent]
) -> tuple[SliceContent, ...]:
    """The slices of a pool, by index; at least one.

    Args:
        groups: All devices of the pool, with unique names. An empty pool has the first scope.
        stored: Contents of the slices of the current generation, by index.
    """
    wanted = {device.name: group.scope for group in groups for device in group.devices}
    shards = list(_kept(wanted, stored, _length(groups, stored)))
    _settle(shards, wanted)
    devices = {device.name: device for group in groups for device in group.devices}
    rank = {name: position for position, name in enumerate(devices)}
    return tuple(
        SliceContent(
            shard.scope or _scope_of_empty(stored.get(index), groups),
            tuple(devices[name] for name in sorted(shard.names, key=rank.__getitem__)),
        )
        for index, shard in enumerate(shards or [_Shard()])
    )


def _length(groups: Sequence[DeviceGroup], stored: Mapping[int, SliceContent]) -> int:
    """How many of the stored slices to keep."""
    length, needed = max(stored, default=-1) + 1, _needed(groups)
    has_gap = length > len(stored)
    return min(length, needed) if has_gap or length > 2 * needed else length


def _needed(groups: Sequence[DeviceGroup]) -> int:
    """The fewest slices that suffice; an empty pool has one, which shows that its driver runs."""
    sizes = Counter[Scope]()
    for group in groups:
        sizes[group.scope] += len(group.devices)
    return sum(-(-size // SLICE_LIMIT) for size in sizes.values()) or 1


def _kept(
    wanted: Mapping[DeviceName, Scope], stored: Mapping[int, SliceContent], length: int
) -> Iterator[_Shard]:
    """The slices to keep, each with the devices that stay; a gap becomes an empty slice."""
    seen: set[DeviceName] = set()
    for index in range(length):
        content = stored.get(index)
        names = [device.name for device in content.devices] if content else []
        mine = [name for name in names if name in wanted and name not in seen]
        scope = _majority(wanted[name] for name in mine)
        staying = [name for name in mine if wanted[name] == scope][:SLICE_LIMIT]
        seen.update(staying)
        yield _Shard(scope, staying)


def _majority(scopes: Iterable[Scope]) -> Scope | None:
    """The most frequent scope; the first one if several are."""
    found = list(scopes)
    if all(scope is found[0] for scope in found):  # The fast path, for nearly all slices.
        return found[0] if found else None
    return Counter(found).most_common(1)[0][0]


def _settle(shards: list[_Shard], wanted: Mapping[DeviceName, Scope]) -> None:
    """Place every device without a slice in the first slice with room."""
    housed = {name for shard in shards for name in shard.names}
    first: dict[Scope, int] = {}
    for name, scope in wanted.items():
        if name not in housed:
            first[scope] = _first_room(shards, scope, first.get(scope, 0))
            shards[first[scope]].scope = scope
            shards[first[scope]].names.append(name)


def _first_room(shards: list[_Shard], scope: Scope, start: int) -> int:
    """The index of the slice to use; before `start` all slices of the scope are full."""
    own = (i for i in range(start, len(shards)) if shards[i].has_room_for(scope))
    empty = (i for i, shard in enumerate(shards) if shard.scope is None)
    index = next(own, next(empty, len(shards)))
    if index == len(shards):
        shards.append(_Shard())
    return index


def _scope_of_empty(stored: SliceContent | None, groups: Sequence[DeviceGroup]) -> Scope:
    """An empty slice keeps its scope, so that only the removed device changes it."""
    return (stored.scope if stored else None) or groups[0].scope

"""Pools: which ResourceSlices to delete, update and create so that a pool has its devices.

    devices, stored slices ──► shards.place ──► contents ──► plan_slices ──► PoolPlan ──► API server

kube-scheduler reads the slices of a pool's highest generation, and only if their number is the one
that each of them states. So a change that is a single write keeps the generation. For any other
change all slices are written with the next generation; until the last one is written, the pool is
incomplete and kube-scheduler allocates none of its devices. A complete pool never mixes old and new
state, except for the node scopes of single devices, which are independent of each other.

Slices of older generations are deleted last, when readers ignore them. So is a slice that gives
devices to another one: a device that a claim may have is in some slice at every moment.

Writes are sent in the order of the plan. After a failed write, read and plan again. After a
successful write, give the answer to `adoption.adopt`. These are the rules of the controller in Go
(k8s.io/dynamic-resource-allocation/resourceslice), which leaves the division into slices to its
driver: that is in `shards`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driver.api import NodeName
from driver.publishing.apply.adoption import Adopted, holds
from driver.publishing.apply.resource_slices import (
    NodeScope,
    Scope,
    SliceContent,
    StoredSlice,
    TaintTimes,
    content_fields,
    scope_fields,
)
from driver.publishing.apply.shards import DeviceGroup, place
from driver.publishing.apply.slice_writes import (
    INDEX_DIGITS,
    CreateSlice,
    DeleteSlice,
    Owner,
    UpdateSlice,
    index_of,
)

_NOTHING_ADOPTED: Adopted = {}

COUNTER_SETS_LIMIT = 8
"""`ResourceSliceMaxCounterSets` of resource.k8s.io/v1."""

_PREFIX_LIMIT = 57
"""Most characters before the hyphen and the five characters that the API server adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredPool:
    """The desired state of a pool.

    Attributes:
        groups: At least one group: one with a NodeScope, for the devices of a node, or several with
            other scopes. An empty pool has one group without devices.
        owner: The controller of each slice.
        counters: Canonical JSON of each counter set, all different. They are written in slices of
            their own, after the slices with devices.
    """

    name: str
    driver: str
    groups: tuple[DeviceGroup, ...]
    owner: Owner | None = None
    counters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The writes that bring a pool to its desired state, in the order of the attributes.

    Attributes:
        deletes: Slices of the current generation that the pool no longer has.
        outdated: Slices of older generations, to delete.
    """

    deletes: tuple[DeleteSlice, ...] = ()
    updates: tuple[UpdateSlice, ...] = ()
    creates: tuple[CreateSlice, ...] = ()
    outdated: tuple[DeleteSlice, ...] = ()

    @property
    def writes(self) -> tuple[DeleteSlice | UpdateSlice | CreateSlice, ...]:
        return (*self.deletes, *self.updates, *self.creates, *self.outdated)


def plan_pool(
    desired: DesiredPool | None,
    existing: Sequence[StoredSlice],
    adopted: Adopted = _NOTHING_ADOPTED,
) -> PoolPlan:
    """The plan of one pool.

    Args:
        desired: The desired state; None to delete all of `existing`.
        existing: Stored slices, own writes included. Slices of other pools and of other publishers
            (`_is_ours`) stay as they are, unless `desired` is None.
        adopted: The answers that were adopted, see `adoption`.
    """
    if desired is None:
        return PoolPlan(deletes=_deletes(existing))
    current = _current(desired, _ours(desired, existing))
    stored = {index: view.content for index, view in current.items()}
    for index in [index for index in stored if _is_of_counters(index, stored[index], adopted)]:
        del stored[index]
    contents = (*place(desired.groups, stored), *_counter_slices(desired))
    return plan_slices(desired, contents, existing, adopted)


def _is_of_counters(index: int, stored: SliceContent, adopted: Adopted) -> bool:
    """Whether a slice has counter sets, or was written with some that the API server dropped."""
    asked, _ = adopted.get(index, (None, None))
    return bool(stored.counters or (asked and asked.counters))


def _counter_slices(desired: DesiredPool) -> Iterator[SliceContent]:
    """The slices of counter sets. Their scope is required but has no effect on counting."""
    for start in range(0, len(desired.counters), COUNTER_SETS_LIMIT):
        some = desired.counters[start : start + COUNTER_SETS_LIMIT]
        yield SliceContent(desired.groups[0].scope, counters=some)


def plan_slices(
    desired: DesiredPool,
    contents: Sequence[SliceContent],
    existing: Sequence[StoredSlice],
    adopted: Adopted = _NOTHING_ADOPTED,
) -> PoolPlan:
    """The plan of a pool with given contents of its slices; `desired.groups` gives the scope."""
    ours = _ours(desired, existing)
    current = _that_lose_nothing(_current(desired, ours), contents)
    missing = [i for i in range(len(contents)) if i not in current]
    changed = _changed(desired, contents, current, adopted)
    newest = max((view.generation for view in ours), default=0)
    kept = {view.name for view in current.values()}
    gone = [view for view in ours if view.name not in kept]
    is_small = not missing and not _shrinks(gone, current, newest, len(contents))
    is_one = len(changed) <= 1 or _is_for_others(changed, contents, current)
    generation = newest if is_small and is_one else newest + 1
    writer = _Writer(desired, generation, len(contents), _taint_times(ours))
    rewritten: Collection[int] = changed if generation == newest else current.keys()
    return PoolPlan(
        deletes=_deletes(view for view in gone if view.generation == generation),
        updates=tuple(writer.update(current[i], i, contents[i]) for i in sorted(rewritten)),
        creates=tuple(writer.create(i, contents[i]) for i in missing),
        outdated=_deletes(view for view in gone if view.generation != generation),
    )


def _that_lose_nothing(
    stored: Mapping[int, StoredSlice], contents: Sequence[SliceContent]
) -> dict[int, StoredSlice]:
    """The slices that lose no device to another slice. Any other slice is replaced by a new one."""
    where = {device.name: i for i, content in enumerate(contents) for device in content.devices}
    return {
        index: view
        for index, view in stored.items()
        if index < len(contents)
        and all(where.get(device.name, index) == index for device in view.content.devices)
    }


def _shrinks(
    gone: Iterable[StoredSlice], current: Mapping[int, StoredSlice], newest: int, length: int
) -> bool:
    """Whether current slices are removed, without which the pool would be incomplete."""
    return any(view.generation == newest for view in gone) and any(
        view.slice_count > length for view in current.values()
    )


def _is_for_others(
    changed: Iterable[int], contents: Sequence[SliceContent], current: Mapping[int, StoredSlice]
) -> bool:
    """Whether the slices differ only in the nodes that see each device."""
    return all(
        current[index].slice_count == len(contents)
        and contents[index].is_for_others(current[index].content)
        for index in changed
    )


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the slices of a pool in one generation.

    Attributes:
        times: Since when devices have their taints. A desired taint without a time gets this time.
    """

    pool: DesiredPool
    generation: int
    slice_count: int
    times: TaintTimes

    def create(self, index: int, content: SliceContent) -> CreateSlice:
        """Create a slice. The index begins its name: kube-scheduler tries slices by their names."""
        owner = f"-{self.pool.owner.name}" if self.pool.owner else ""
        name = f"{index:0{INDEX_DIGITS}x}-{self.pool.driver}{owner}"[:_PREFIX_LIMIT].rstrip("-.")
        metadata: dict[str, Any] = {"generateName": f"{name}-"}
        if self.pool.owner:
            metadata["ownerReferences"] = [self.pool.owner.reference()]
        return CreateSlice(self._body(metadata, content), index, content)

    def update(self, view: StoredSlice, index: int, content: SliceContent) -> UpdateSlice:
        metadata = {
            **view.metadata,
            "name": view.name,
            "uid": view.uid,
            "resourceVersion": view.resource_version,
        }
        if self.pool.owner and not self.pool.owner.controls(view):
            metadata["ownerReferences"] = [self.pool.owner.reference()]
        return UpdateSlice(view.name, self._body(metadata, content), index, content)

    def _body(self, metadata: Mapping[str, Any], content: SliceContent) -> dict[str, Any]:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": metadata,
            "spec": {
                "driver": self.pool.driver,
                "pool": {
                    "name": self.pool.name,
                    "generation": self.generation,
                    "resourceSliceCount": self.slice_count,
                },
                **scope_fields(content.scope),
                **content_fields(content, self.times),
            },
        }


def _changed(
    desired: DesiredPool,
    contents: Sequence[SliceContent],
    current: Mapping[int, StoredSlice],
    adopted: Adopted,
) -> set[int]:
    return {
        index
        for index, view in current.items()
        if view.slice_count != len(contents)
        or (desired.owner and not desired.owner.controls(view))
        or not holds(adopted, index, contents[index], view.content)
    }


def _ours(desired: DesiredPool, existing: Iterable[StoredSlice]) -> list[StoredSlice]:
    ours = [view for view in existing if _is_ours(desired, view)]
    return sorted(ours, key=lambda view: (view.generation, view.name))


def _is_ours(desired: DesiredPool, view: StoredSlice) -> bool:
    """Whether this publisher owns a slice of this pool.

    A pool of the same name may have another publisher, whose slices this one must not delete. But a
    slice with our owner was ours once, with another nodeName, which is immutable: it is replaced.
    """
    if (view.driver, view.pool) != (desired.driver, desired.name):
        return False
    return _has_node_of(desired, view) or bool(desired.owner and desired.owner.controls(view))


def _has_node_of(desired: DesiredPool, view: StoredSlice) -> bool:
    return _node_of(desired.groups[0].scope) == _node_of(view.content.scope)


def _node_of(scope: Scope | None) -> NodeName | None:
    return scope.node if isinstance(scope, NodeScope) else None


def _current(desired: DesiredPool, ours: Sequence[StoredSlice]) -> dict[int, StoredSlice]:
    """The slices to update in place: one of the newest generation for each index."""
    newest = max((view.generation for view in ours), default=0)
    current: dict[int, StoredSlice] = {}
    for view in ours:
        index = index_of(view)
        if view.generation == newest and index is not None and _has_node_of(desired, view):
            current.setdefault(index, view)
    return current


def _taint_times(ours: Iterable[StoredSlice]) -> TaintTimes:
    """The times from all slices, since a device may move; the newest generation prevails."""
    devices = (device for view in ours for device in view.content.devices if device.times)
    return {taint: time for device in devices for taint, time in device.taint_times().items()}


def _deletes(views: Iterable[StoredSlice]) -> tuple[DeleteSlice, ...]:
    """Old generations first: otherwise readers would see a hidden generation for a moment."""
    ordered = sorted(views, key=lambda view: (view.generation, view.name))
    return tuple(DeleteSlice(view.name, view.uid, view.resource_version) for view in ordered)

"""ResourceSlices as values that can be compared: the nodes that see a slice, and its devices.

Devices are kept as canonical JSON: text is cheap to compare and to store, and the plan of a pool
does not interpret the fields of a device. Only `timeAdded` of taints is kept apart. The API server
sets it, so a device without a time equals the same device with a time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from driver.api import DeviceName, NodeName
from kube.shapes.times import read_time, timestamp

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class NodeScope:
    """Devices of one node. `spec.nodeName` of a slice is immutable."""

    node: NodeName


@dataclass(frozen=True, slots=True)
class NodeSelectorScope:
    """Devices that the selected nodes see.

    Attributes:
        selector: Canonical JSON of a NodeSelector with exactly one term.
    """

    selector: str


@dataclass(frozen=True, slots=True)
class AllNodesScope:
    """Devices that every node sees."""


@dataclass(frozen=True, slots=True)
class PerDeviceScope:
    """Devices that each have a scope of their own (`perDeviceNodeSelection`)."""


Scope: TypeAlias = NodeScope | NodeSelectorScope | AllNodesScope | PerDeviceScope


@dataclass(frozen=True, slots=True)
class SliceDevice:
    """One device of a slice.

    Attributes:
        text: Canonical JSON of the body, without the times of its taints.
        times: `timeAdded` of each taint, in whole seconds of UTC.
    """

    name: DeviceName
    text: str
    times: tuple[datetime | None, ...] = ()

    def equals(self, other: SliceDevice) -> bool:
        """Whether both are the same device; a time that only one of them has is ignored."""
        return self.text == other.text and (
            self.times == other.times or all(map(_near, self.times, other.times))
        )

    def body(self, known: TaintTimes) -> dict[str, Any]:
        """The `Device`. Each taint has its own time, or the known time, or none."""
        body: dict[str, Any] = json.loads(self.text)
        for taint, time in zip(body.get("taints", ()), self.times, strict=True):
            kept = time or known.get((self.name, _canonical(taint)))
            if kept is not None:
                taint["timeAdded"] = timestamp(kept)
        return body

    def taint_times(self) -> TaintTimes:
        """The times of the taints, for `body` of another version of this device."""
        taints = json.loads(self.text).get("taints", ())
        return {
            (self.name, _canonical(taint)): time
            for taint, time in zip(taints, self.times, strict=True)
            if time is not None
        }


TaintTimes: TypeAlias = Mapping[tuple[DeviceName, str], datetime]
"""Since when a device has a taint, by the name of the device and the taint without its time."""


@dataclass(frozen=True, slots=True)
class SliceContent:
    """The content of a slice, without its place in the pool.

    Attributes:
        scope: The nodes that see it; None only in a stored slice with a scope unknown to this code.
        devices: The devices, in the order in which kube-scheduler tries them.
        counters: Canonical JSON of each counter set. A slice has counter sets or devices.
    """

    scope: Scope | None
    devices: tuple[SliceDevice, ...] = ()
    counters: tuple[str, ...] = ()

    def equals(self, other: SliceContent) -> bool:
        return (
            self.scope == other.scope
            and self.counters == other.counters
            and len(self.devices) == len(other.devices)
            and all(map(SliceDevice.equals, self.devices, other.devices))
        )

    def is_for_others(self, other: SliceContent) -> bool:
        """Whether they differ only in the scopes of single devices."""
        return (
            self.scope == other.scope == PerDeviceScope()
            and self.counters == other.counters
            and len(self.devices) == len(other.devices)
            and all(map(_is_same_but_for_nodes, self.devices, other.devices))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSlice:
    """A ResourceSlice as the API server has it.

    Attributes:
        generation: Generation of the pool, not of the object.
        slice_count: Number of slices that the pool has in this generation.
        metadata: The metadata that an update must send back unchanged.
    """

    name: str
    uid: str
    resource_version: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    content: SliceContent
    metadata: Mapping[str, Any]


def slice_device(body: Mapping[str, Any]) -> SliceDevice:
    """A `Device` of resource.k8s.io/v1 as a value. Empty fields equal absent fields."""
    kept = {field: value for field, value in body.items() if value not in (None, [], {}, ())}
    taints = kept.get("taints", ())
    if not taints:
        return SliceDevice(DeviceName(body["name"]), _canonical(kept))
    times = tuple(_whole_seconds(taint.get("timeAdded")) for taint in taints)
    kept["taints"] = [_without_time(taint) for taint in taints]
    return SliceDevice(DeviceName(body["name"]), _canonical(kept), times)


def node_selector(selector: Mapping[str, Any]) -> NodeSelectorScope:
    return NodeSelectorScope(_canonical(selector))


def hostnames(values: frozenset[str]) -> NodeSelectorScope:
    """The scope of exactly the nodes with these values of `kubernetes.io/hostname`."""
    requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": sorted(values)}
    return node_selector({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]})


def stored_slice(obj: Mapping[str, Any]) -> StoredSlice:
    """Parse a stored ResourceSlice."""
    metadata, spec = obj["metadata"], obj["spec"]
    return StoredSlice(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        driver=spec["driver"],
        pool=spec["pool"]["name"],
        generation=spec["pool"].get("generation", 0),
        slice_count=spec["pool"].get("resourceSliceCount", 0),
        content=slice_content(spec),
        metadata={field: metadata[field] for field in _KEPT_METADATA if field in metadata},
    )


def slice_content(spec: Mapping[str, Any]) -> SliceContent:
    counters = tuple(map(counter_set, spec.get("sharedCounters") or ()))
    devices = tuple(map(slice_device, spec.get("devices") or ()))
    return SliceContent(_scope_of(spec), devices, counters)


def counter_set(body: Mapping[str, Any]) -> str:
    """A `CounterSet` of resource.k8s.io/v1 as a value."""
    return _canonical(body)


def content_fields(content: SliceContent, known: TaintTimes) -> dict[str, Any]:
    """The fields of a slice's `spec` for its devices and counter sets."""
    devices = [device.body(known) for device in content.devices]
    counters = [json.loads(text) for text in content.counters]
    return {
        **({"devices": devices} if devices else {}),
        **({"sharedCounters": counters} if counters else {}),
    }


def scope_fields(scope: Scope | None) -> dict[str, Any]:
    """The field of a slice's `spec` for its scope; the API requires exactly one."""
    match scope:
        case NodeScope(node):
            return {"nodeName": node}
        case NodeSelectorScope(selector):
            return {"nodeSelector": json.loads(selector)}
        case AllNodesScope():
            return {"allNodes": True}
        case PerDeviceScope():
            return {"perDeviceNodeSelection": True}
        case None:
            return {}


_KEPT_METADATA = ("generateName", "labels", "annotations", "finalizers", "ownerReferences")
"""Metadata that other writers own. An update replaces the whole object, so it sends them back."""


_SCOPES = ("nodeName", "nodeSelector", "allNodes")
"""Fields of a scope in a slice's `spec` or in a device."""


def with_scope(device: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """A device with a scope of its own."""
    return {**device, **scope_fields(scope)}


def seen_by(
    device: Mapping[str, Any], scope: Scope | None
) -> tuple[Mapping[str, Any], Scope | None]:
    """A device without its scope, and its scope; `scope` is the scope of its slice."""
    if scope != PerDeviceScope():
        return device, scope
    return {field: v for field, v in device.items() if field not in _SCOPES}, _scope_of(device)


def _is_same_but_for_nodes(mine: SliceDevice, theirs: SliceDevice) -> bool:
    if mine.equals(theirs):
        return True
    bodies = (seen_by(device.body({}), PerDeviceScope())[0] for device in (mine, theirs))
    return SliceDevice.equals(*map(slice_device, bodies))


def _scope_of(spec: Mapping[str, Any]) -> Scope | None:
    if spec.get("perDeviceNodeSelection"):
        return PerDeviceScope()
    if node := spec.get("nodeName"):
        return NodeScope(NodeName(node))
    if selector := spec.get("nodeSelector"):
        return node_selector(selector)
    return AllNodesScope() if spec.get("allNodes") else None


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _near(mine: datetime | None, theirs: datetime | None) -> bool:
    return mine is None or theirs is None or abs(mine - theirs) <= _SECOND


def _without_time(taint: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in taint.items() if field != "timeAdded" and value}


def _whole_seconds(text: str | None) -> datetime | None:
    """Round as the controller in Go does; a text that is no RFC 3339 time counts as absent."""
    time = read_time(text)
    try:
        return time and (time + _SECOND / 2).replace(microsecond=0).astimezone(UTC)
    except OverflowError:
        return None

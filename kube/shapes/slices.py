"""Shapes of a ResourceSlice."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from typing import Any

import msgspec

from kube.shapes.metadata import NamedMetadata
from kube.shapes.selection import Taint


class DeviceTaint(Taint, frozen=True, rename="camel"):
    """An entry of a device's `taints`."""

    time_added: str | None = None


class ValidRange(msgspec.Struct, frozen=True):
    """`validRange` of a request policy."""

    min: Any = None
    max: Any = None
    step: Any = None


class RequestPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """How requests of a capacity are rounded."""

    default: Any = None
    valid_values: list[Any] | None = None
    valid_range: ValidRange | None = None


class Capacity(msgspec.Struct, frozen=True, rename="camel"):
    """A value of a device's `capacity`."""

    value: Any = None
    request_policy: RequestPolicy | None = None


class CounterValue(msgspec.Struct, frozen=True):
    """A value of a counter."""

    value: Any = None


class CounterConsumption(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of a device's `consumesCounters`."""

    counter_set: str | None = None
    counters: dict[str, CounterValue | None] | None = None


class CounterSet(msgspec.Struct, frozen=True):
    """An entry of `sharedCounters`."""

    name: str | None = None
    counters: dict[str, CounterValue | None] | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The nodes that see a device; `node_selector` stays JSON, since it is stored as text."""

    node_name: str | None = None
    all_nodes: bool | None = None
    node_selector: dict[str, Any] | None = None


class Device(Place, frozen=True, kw_only=True, rename="camel"):
    """An entry of `spec.devices`; with `perDeviceNodeSelection` it names its nodes itself."""

    name: str | None = None
    attributes: dict[str, dict[str, Any] | None] | None = None
    capacity: dict[str, Capacity | None] | None = None
    allow_multiple_allocations: bool | None = None
    consumes_counters: list[CounterConsumption] | None = None
    taints: list[DeviceTaint] | None = None


class Pool(msgspec.Struct, frozen=True, rename="camel"):
    """Of `spec.pool`."""

    name: str | None = None
    generation: int | None = None
    resource_slice_count: int | None = None


class Spec(Place, frozen=True, kw_only=True, rename="camel"):
    """Of `spec`."""

    driver: str | None = None
    pool: Pool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None

    def place_of(self, device: Device) -> Place:
        """The nodes that see a device of this slice."""
        return device if self.per_device_node_selection else self


class Slice(msgspec.Struct, frozen=True):
    """A ResourceSlice."""

    metadata: NamedMetadata
    spec: Spec | None = None


NO_SPEC, NO_POOL, NO_CAPACITY = Spec(), Pool(), Capacity()

"""ResourceSlices with their devices, in a compact form.

The fields for CEL and constraints stay JSON text until they are needed: decoded they take several
times the memory, and of 160,000 devices few are looked at. Equal texts are one string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any, NamedTuple, TypeAlias

import msgspec

from driver.api import DRIVER_NAME
from kube.shapes.quantities import thousandths, whole
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.selection import Taint
from kube.shapes.slices import NO_CAPACITY, NO_POOL, NO_SPEC, Device, Place, Slice, Spec
from scheduler_plugin.objects.claim_objects import SLOTS_NAMES
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.device_facts import (
    ConsumedCounter,
    DeviceFacts,
    ListedDevice,
)
from scheduler_plugin.objects.devices.devices import SliceView, slice_view

_encode = msgspec.json.Encoder(order="deterministic").encode


CounterName: TypeAlias = tuple[str, str]
"""A counter set of a pool, and a counter of it."""


class PublishedDevice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A device of a slice. It has no reference cycles, so the garbage collector skips it.

    Attributes:
        text: Its look: what CEL sees, as JSON.
        node: The only node that can use it; "" where several nodes can.
        selector: The node selector of those nodes, as JSON; None for all nodes, or for one node.
        slots: The number of slots that requests share; None where one request gets all of it, or
            where claims divide it by other capacities, see `facts`.
        facts: How much it has, if its driver is not Moorage's; else None.
        taint_times: When each taint was added, as in the slice; "" where the slice does not say.
    """

    device: DeviceId
    text: str
    node: str
    selector: str | None
    slots: int | None
    taints: tuple[Taint, ...]
    taint_times: tuple[str, ...] = ()
    facts: DeviceFacts | None = None

    @property
    def is_divided(self) -> bool:
        """Whether several claims may have parts of it, by capacity."""
        return self.facts is not None and self.facts.is_divided

    @property
    def counters(self) -> tuple[ConsumedCounter, ...]:
        """What it consumes of counters of its pool while it is in use."""
        return self.facts.counters if self.facts is not None else ()

    @property
    def is_shared(self) -> bool:
        """Whether several claims may have it at the same time."""
        return self.slots is not None or self.is_divided


class PublishedSlice(NamedTuple):
    """A ResourceSlice.

    Attributes:
        view: The part that accounting reads.
        generation: The generation of its pool.
        slice_count: The number of slices in that generation; None where the slice does not say.
        counters: The counters that devices of the pool share, in thousandths.
    """

    view: SliceView
    pool: str
    generation: int
    slice_count: int | None
    devices: tuple[PublishedDevice, ...]
    counters: tuple[tuple[CounterName, int], ...] = ()

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def pool_key(self) -> tuple[str, str]:
        """Its driver and pool."""
        return self.view.driver, self.pool


def published_slice(obj: JsonObject | Slice) -> PublishedSlice:
    """Parse a ResourceSlice of resource.k8s.io/v1; raises UnreadableError."""
    found = read_as(Slice, obj)
    view, spec = slice_view(found), found.spec or NO_SPEC
    pool = spec.pool or NO_POOL
    return PublishedSlice(
        view=view,
        pool=view.pool,
        generation=pool.generation or 0,
        slice_count=pool.resource_slice_count,
        devices=_devices(spec, view),
        counters=tuple(_counters(spec)),
    )


def _counters(spec: Spec) -> Iterator[tuple[CounterName, int]]:
    for each in spec.shared_counters or ():
        for name, counter in (each.counters or {}).items():
            if counter is not None and (amount := thousandths(counter.value)) is not None:
                yield (intern(each.name or ""), intern(name)), amount


def _devices(spec: Spec, view: SliceView) -> tuple[PublishedDevice, ...]:
    shared_place = None if spec.per_device_node_selection else _place(spec)
    found = []
    for device, listed in zip(spec.devices or (), view.devices, strict=True):
        place = shared_place or _place(device)
        found.append(_device(listed, device, place))
    return tuple(found)


def _device(listed: ListedDevice, device: Device, place: tuple[str, str | None]) -> PublishedDevice:
    capacity = device.capacity or {}
    is_shared = bool(device.allow_multiple_allocations)
    quantities = {name: (each or NO_CAPACITY).value for name, each in capacity.items()}
    slots = _slots(quantities) if is_shared else None
    node, selector = place
    taints = device.taints or ()
    return PublishedDevice(
        device=listed.device,
        text=listed.look,
        node=node,
        selector=selector,
        slots=slots,
        taints=tuple(Taint(each.key, each.value, each.effect) for each in taints),
        taint_times=tuple(each.time_added or "" for each in taints),
        facts=None if listed.device.driver == DRIVER_NAME else listed.facts,
    )


def _place(place: Place) -> tuple[str, str | None]:
    """The node, and the node selector as text."""
    node = intern(place.node_name or "")
    if node or place.all_nodes:
        return node, None
    return "", intern(_encode(place.node_selector or {}).decode())


def _slots(quantities: Mapping[str, Any]) -> int | None:
    """The slots of a device with no other capacity; None for any other device."""
    if len(quantities) != 1:
        return None
    ((name, quantity),) = quantities.items()
    return whole(quantity) if name in SLOTS_NAMES else None

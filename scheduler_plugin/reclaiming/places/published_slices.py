"""ResourceSlices with their devices, each device as small as it can be kept.

What CEL and constraints look at stays JSON text until somebody looks: decoded it takes several
times the memory, and of 160,000 devices few are looked at. Equal texts are one string.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

import msgspec

from kube.shapes.reading import JsonObject
from kube.shapes.selection import Taint
from scheduler_plugin.objects.claims import SLOTS_NAMES, DeviceId
from scheduler_plugin.objects.devices.devices import SliceView, slice_view
from scheduler_plugin.objects.node_selection import taints_of
from scheduler_plugin.objects.requests import whole

_encode = msgspec.json.Encoder(order="deterministic").encode


class PublishedDevice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A device of a slice. Nothing of it leads back to it, so the garbage collector skips it.

    Attributes:
        text: What CEL sees, as JSON: see `Seen`.
        node: The node that alone can use it; "" where it is not one.
        selector: The JSON of the node selector of those that can, where it is not one; None for
            all nodes.
        slots: How many several requests share at one time; None where one request has all of it.
        taint_times: When each of the taints was added, as the slice says it; "" where it does not.
    """

    device: DeviceId
    text: str
    node: str
    selector: str | None
    slots: int | None
    taints: tuple[Taint, ...]
    taint_times: tuple[str, ...] = ()


class PublishedSlice(NamedTuple):
    """A ResourceSlice.

    Attributes:
        view: What accounting counts of it.
        generation: That of its pool which it is of.
        slice_count: How many slices the pool has in that generation; None where it does not say.
    """

    view: SliceView
    pool: str
    generation: int
    slice_count: int | None
    devices: tuple[PublishedDevice, ...]

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def pool_key(self) -> tuple[str, str]:
        """Its driver and pool."""
        return self.view.driver, self.pool


class Seen(NamedTuple):
    """What CEL sees of a device: not its name.

    Attributes:
        attributes: As the slice has them.
        capacity: The quantity of each.
        is_shared: `allowMultipleAllocations`.
    """

    driver: str
    attributes: dict[str, dict[str, Any]]
    capacity: dict[str, Any]
    is_shared: bool


def published_slice(obj: JsonObject) -> PublishedSlice:
    """Parse a ResourceSlice of resource.k8s.io/v1."""
    spec = obj.get("spec") or {}
    pool = spec.get("pool") or {}
    return PublishedSlice(
        view=slice_view(obj),
        pool=intern(pool.get("name") or ""),
        generation=pool.get("generation") or 0,
        slice_count=pool.get("resourceSliceCount"),
        devices=published_devices(spec, spec.get("devices") or ()),
    )


def published_devices(
    spec: JsonObject, devices: Iterable[JsonObject]
) -> tuple[PublishedDevice, ...]:
    """Parse devices of a slice with this spec."""
    driver = intern(spec.get("driver") or "")
    pool = intern((spec.get("pool") or {}).get("name") or "")
    shared_place = None if spec.get("perDeviceNodeSelection") else _place(spec)
    found = []
    for device in devices:
        name = intern(device.get("name") or "")
        place = shared_place or _place(device)
        found.append(_device(DeviceId(driver, pool, name), device, place))
    return tuple(found)


def _device(
    device_id: DeviceId, device: JsonObject, place: tuple[str, str | None]
) -> PublishedDevice:
    capacity = device.get("capacity") or {}
    is_shared = bool(device.get("allowMultipleAllocations"))
    slots = _slots(capacity) if is_shared else None
    quantities = {name: each.get("value") for name, each in capacity.items()}
    seen = (device_id.driver, device.get("attributes") or {}, quantities, is_shared)
    node, selector = place
    return PublishedDevice(
        device=device_id,
        text=intern(_encode(seen).decode()),
        node=node,
        selector=selector,
        slots=slots,
        taints=taints_of(device.get("taints")),
        taint_times=tuple(str(t.get("timeAdded") or "") for t in device.get("taints") or ()),
    )


def _place(place: JsonObject) -> tuple[str, str | None]:
    """The one node, or the selector of those that can use what is here."""
    node = intern(place.get("nodeName") or "")
    if node or place.get("allNodes"):
        return node, None
    return "", intern(_encode(place.get("nodeSelector") or {}).decode())


def _slots(capacity: JsonObject) -> int | None:
    """The slots of a device that shares nothing else; None of any other."""
    if len(capacity) != 1:
        return None
    ((name, found),) = capacity.items()
    return whole(found.get("value")) if name in SLOTS_NAMES else None


@lru_cache(maxsize=1_024)
def seen_in(text: str) -> Seen:
    """What the text of a device says; it is shared, so nobody changes it."""
    return Seen(*msgspec.json.decode(text))

"""The status of a claim's devices, for users without access to its containers.

    PreparedClaim, Readiness ──status_apply──► status.devices of the ResourceClaim

An entry has what containers get of the device, its network addresses, and the condition `Ready`.
Kubernetes removes the entries with the allocation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from driver.api import DRIVER_NAME
from driver.names import as_text
from driver.preparing.files.addresses import network_data
from driver.preparing.files.cdi import is_variable
from driver.preparing.files.prepared import AllocatedDevice, PreparedClaim, PreparedDevice
from driver.preparing.ready_conditions import READY, Readiness, condition, says
from kube.shapes.full_claims import DeviceStatus, FullClaim
from kube.shapes.metadata import Condition
from kube.shapes.reading import JsonObject, read_as

DATA_LIMIT = 10 * 1024
"""Bytes that `data` of one device may have."""

_OPTIONAL = ("properties", "mounts", "deviceNodes")
"""Fields that are omitted from too large `data`, in this order."""


DeviceKey: TypeAlias = tuple[str, str, str]
"""Pool, device and share of an entry; a device of two requests of a claim has one entry."""

Readinesses: TypeAlias = Mapping[DeviceKey, Readiness]
"""The readiness of each device of a claim."""

Conditions: TypeAlias = Mapping[DeviceKey, Condition]
"""The condition `Ready` of each device of a claim that has one."""


def key_of(device: AllocatedDevice) -> DeviceKey:
    """The key of the device's entry."""
    return device.pool, device.device, device.share_id or ""


def status_apply(
    claim: PreparedClaim, ready: Readinesses, before: Conditions, now: datetime
) -> dict[str, Any]:
    """The body that a node's driver applies: the devices of the claim that it prepared.

    Args:
        claim: The claim.
        ready: The readiness of its devices.
        before: Their conditions, as they are stored or were written before.
        now: The time.
    """
    reference = claim.reference
    devices = {key_of(device.allocated): _entry(device) for device in claim.devices}
    for key, entry in devices.items():
        entry["conditions"] = [condition(ready[key], before.get(key), now)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": reference.name,
            "namespace": reference.namespace,
            "uid": reference.uid,
        },
        "status": {"devices": [devices[key] for key in sorted(devices)]},
    }


def conditions_in(body: Mapping[str, Any]) -> Conditions:
    """The conditions in an applied body."""
    return {
        (entry["pool"], entry["device"], entry.get("shareID", "")): read_as(
            Condition, entry["conditions"][0]
        )
        for entry in body["status"]["devices"]
    }


def stored_conditions(claim: PreparedClaim, found: JsonObject | FullClaim) -> Conditions:
    """The conditions in a ResourceClaim of the API server; none of a claim with another UID."""
    entries = ((_key(each), _ready_in(each)) for each in _entries(claim, found))
    return {key: ready for key, ready in entries if ready is not None}


def is_stored(claim: PreparedClaim, ready: Readinesses, found: JsonObject | FullClaim) -> bool:
    """Whether a ResourceClaim of the API server has these entries already.

    Entries of other drivers, of devices that other nodes prepared, and other conditions are
    ignored.
    """
    stored = {_key(each): each for each in _entries(claim, found)}
    return all(
        (entry := stored.get(key)) is not None
        and (entry.data, entry.network_data) == _own_fields(_entry(device))
        and says(_ready_in(entry), ready[key])
        for device in claim.devices
        for key in (key_of(device.allocated),)
    )


def _entries(claim: PreparedClaim, found: JsonObject | FullClaim) -> Iterator[DeviceStatus]:
    """The entries of this driver in the claim of this UID."""
    there = read_as(FullClaim, found)
    if there.uid != claim.reference.uid or there.status is None:
        return iter(())
    return (each for each in there.status.devices or () if each.driver == DRIVER_NAME)


def _key(entry: DeviceStatus) -> DeviceKey:
    return entry.pool or "", entry.device or "", entry.share_id or ""


def _ready_in(entry: DeviceStatus) -> Condition | None:
    return next((each for each in entry.conditions or () if each.type == READY), None)


def _own_fields(entry: Mapping[str, Any]) -> tuple[object, object]:
    """The fields of an entry that this driver writes beside its condition."""
    return entry.get("data"), entry.get("networkData")


def _entry(device: PreparedDevice) -> dict[str, Any]:
    allocated = device.allocated
    network = network_data(device.properties)
    return {
        "driver": DRIVER_NAME,
        "pool": allocated.pool,
        "device": allocated.device,
        **({"shareID": allocated.share_id} if allocated.share_id else {}),
        "data": _data(device),
        **({"networkData": network} if network else {}),
    }


def _data(device: PreparedDevice) -> dict[str, Any]:
    """The `data` of a device. Its properties are public: its ResourceSlice has them, too."""
    fields: dict[str, Any] = {
        "configuration": device.configuration,
        "instance": device.instance,
        "properties": {n: v for n, v in sorted(device.properties.items()) if is_variable(n, v)},
        "deviceNodes": [as_text(spec.container_path) for spec in device.device_specs],
        "mounts": [as_text(mount.container_path) for mount in device.mounts],
        "withheld": as_text(device.withheld),
    }
    fields = {name: value for name, value in fields.items() if value}
    for name in _OPTIONAL:
        if len(json.dumps(fields).encode()) <= DATA_LIMIT:
            break
        if fields.pop(name, None) is not None:
            fields["omitted"] = [*fields.get("omitted", ()), name]
    return fields

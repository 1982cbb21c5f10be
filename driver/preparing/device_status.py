"""The status of a claim's devices, for users without access to its containers.

    PreparedClaim ──status_apply──► status.devices of the ResourceClaim

An entry has what containers get of the device, and its network addresses. Kubernetes removes the
entries with the allocation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from driver.api import DRIVER_NAME
from driver.names import as_text
from driver.preparing.files.addresses import network_data
from driver.preparing.files.cdi import is_variable
from driver.preparing.files.prepared import PreparedClaim, PreparedDevice
from kube.shapes.full_claims import FullClaim
from kube.shapes.reading import JsonObject, read_as

DATA_LIMIT = 10 * 1024
"""Bytes that `data` of one device may have."""

_OPTIONAL = ("properties", "mounts", "deviceNodes")
"""Fields that are omitted from too large `data`, in this order."""


def status_apply(claim: PreparedClaim) -> dict[str, Any]:
    """The body that a node's driver applies: the devices of the claim that it prepared."""
    reference = claim.reference
    devices = {_key(entry): entry for entry in map(_entry, claim.devices)}
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


def is_stored(claim: PreparedClaim, found: JsonObject | FullClaim) -> bool:
    """Whether a ResourceClaim of the API server has these entries already.

    Entries of other drivers, and of devices that other nodes prepared, are ignored.
    """
    there = read_as(FullClaim, found)
    if there.uid != claim.reference.uid:
        return False
    entries = (there.status.devices if there.status is not None else None) or ()
    stored = {
        (each.pool, each.device, each.share_id or ""): (each.data, each.network_data)
        for each in entries
        if each.driver == DRIVER_NAME
    }
    return all(
        stored.get(_key(entry)) == _own_fields(entry) for entry in map(_entry, claim.devices)
    )


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """The key of an entry; a device of two requests of a claim has one entry."""
    return entry["pool"], entry["device"], entry.get("shareID", "")


def _own_fields(entry: Mapping[str, Any]) -> tuple[object, object]:
    """The fields of an entry that this driver writes; conditions may be from other clients."""
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
        "withheld": device.withheld,
    }
    fields = {name: value for name, value in fields.items() if value}
    for name in _OPTIONAL:
        if len(json.dumps(fields).encode()) <= DATA_LIMIT:
            break
        if fields.pop(name, None) is not None:
            fields["omitted"] = [*fields.get("omitted", ()), name]
    return fields

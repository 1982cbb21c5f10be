"""What a claim's status says of its devices, for those who cannot look into containers.

    PreparedClaim ──status_apply──► status.devices of the ResourceClaim

Of each device what its containers get, and its addresses where it is on the network. Kubernetes
removes it with the allocation.
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
"""Bytes of `data` of one device."""

_OPTIONAL = ("properties", "mounts", "deviceNodes")
"""What is left out of `data` that has no room, in this order."""


def status_apply(claim: PreparedClaim) -> dict[str, Any]:
    """What a node's driver applies: its own devices of the claim, and nothing else."""
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
    """Whether a ResourceClaim of the API server says so already.

    Entries of other drivers and of devices that other nodes prepared are not looked at.
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
    return all(stored.get(_key(entry)) == _said(entry) for entry in map(_entry, claim.devices))


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Two requests of a claim may have one device, which has one entry."""
    return entry["pool"], entry["device"], entry.get("shareID", "")


def _said(entry: Mapping[str, Any]) -> tuple[object, object]:
    """What this driver says of a device; conditions may be others'."""
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
    """Secrets are in it no more than in its ResourceSlice, which shows properties, too."""
    told: dict[str, Any] = {
        "configuration": device.configuration,
        "instance": device.instance,
        "properties": {n: v for n, v in sorted(device.properties.items()) if is_variable(n, v)},
        "deviceNodes": [as_text(spec.container_path) for spec in device.device_specs],
        "mounts": [as_text(mount.container_path) for mount in device.mounts],
        "withheld": device.withheld,
    }
    told = {name: value for name, value in told.items() if value}
    for name in _OPTIONAL:
        if len(json.dumps(told).encode()) <= DATA_LIMIT:
            break
        if told.pop(name, None) is not None:
            told["omitted"] = [*told.get("omitted", ()), name]
    return told

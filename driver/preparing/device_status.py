"""What a claim's status says of its devices, for those who cannot look into containers.

    PreparedClaim ──status_apply──► status.devices of the ResourceClaim

Of each device what its containers get, and its addresses where it is on the network. Kubernetes
removes it with the allocation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from driver.api import DRIVER_NAME
from driver.discovery.reach import read_ip, unmapped
from driver.names import as_text
from driver.preparing.cdi import is_variable
from driver.preparing.prepared import PreparedClaim, PreparedDevice

DATA_LIMIT = 10 * 1024
"""Bytes of `data` of one device."""

_IPS_LIMIT = 16
_HARDWARE_LIMIT = 128

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


def _key(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Two requests of a claim may have one device, which has one entry."""
    return entry["pool"], entry["device"], entry.get("shareID", "")


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


def network_data(properties: Mapping[str, str]) -> dict[str, Any]:
    """`NetworkDeviceData` of a device on the network; empty if it has no address.

    Addresses are the hosts of its URLs, and what properties named `…_IP_ADDRESS` and
    `…_MAC_ADDRESS` say. As the subnet is not known, an address stands alone in it.
    """
    ips = list(dict.fromkeys(_ips(properties)))[:_IPS_LIMIT]
    if not ips:
        return {}
    macs = (v for n, v in sorted(properties.items()) if n.endswith("_MAC_ADDRESS") and v)
    hardware = next((mac for mac in macs if len(mac.encode()) <= _HARDWARE_LIMIT), "")
    return {"ips": ips, **({"hardwareAddress": hardware} if hardware else {})}


def _ips(properties: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(properties.items()):
        host = value if name.endswith("_IP_ADDRESS") else _host(value)
        if (read := read_ip(host)) is not None:
            address = unmapped(read)
            yield f"{address}/{address.max_prefixlen}"


def _host(value: str) -> str:
    if "://" not in value:
        return ""
    try:
        return urlsplit(value).hostname or ""
    except ValueError:
        return ""

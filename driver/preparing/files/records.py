"""Records: the stored form of prepared claims, which outlives the process.

    {"version": 1, "bootID": "…", "nodeUID": "…", "clusterUID": "…", "uid": "…", "devices": […], …}

A claim's CDI file has its record, see `cdi`. So a grant is one write of one file: a file is
complete or absent, and no two files can contradict each other. If the driver is killed

* before the file is written: the kubelet gets no answer and calls again; nothing happened;
* after the file is written: the kubelet calls again and gets the same answer;
* before the file is removed: the kubelet gets no answer and unprepares again;
* while a claim is planned anew for a moved device: the file has the former or the new location.
  The driver plans all claims at its start, before it serves the kubelet.

Compatibility. A version may add fields. A reader gives an absent field its default, ignores an
unknown field, and drops it with its next write. `version` increases only if older drivers would
misread a record. They then answer the kubelet from the record as far as they can read it, and do
not change it. A record without a version is from the driver that had a `checkpoint`.

Boot. No container outlives a boot, so a record of an earlier boot has no devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import ClaimUid, DeviceName, InstanceName
from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.devices import DeviceSpec, Mount
from driver.preparing.files.prepared import (
    VERSION,
    AllocatedDevice,
    ClaimReference,
    Home,
    PreparedClaim,
    PreparedDevice,
    lost_claim,
)

NO_VERSION = 0
"""The version of records from a driver that had a checkpoint."""

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""The errors of reading an invalid record."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file is not a valid record."""

    reason: str


def dump(claim: PreparedClaim) -> dict[str, Any]:
    """A claim's record as a JSON object."""
    return {
        "version": claim.version,
        "bootID": claim.boot_id,
        "nodeUID": claim.home.node,
        "clusterUID": claim.home.cluster,
        "namespace": claim.reference.namespace,
        "name": claim.reference.name,
        "uid": claim.reference.uid,
        "devices": [_dump_device(device) for device in claim.devices],
        **({} if claim.pod_claim is None else {"podClaim": claim.pod_claim}),
    }


def _dump_device(device: PreparedDevice) -> dict[str, Any]:
    return {
        "request": device.allocated.request,
        "pool": device.allocated.pool,
        "device": device.allocated.device,
        "shareID": device.allocated.share_id,
        "adminAccess": device.allocated.admin_access,
        "cdiName": device.cdi_name,
        "instance": device.instance,
        "hash": device.hash,
        "properties": dict(device.properties),
        "mounts": [
            {"containerPath": m.container_path, "hostPath": m.host_path, "readOnly": m.read_only}
            for m in device.mounts
        ],
        "deviceSpecs": [
            {
                "containerPath": spec.container_path,
                "hostPath": spec.host_path,
                "permissions": spec.permissions,
            }
            for spec in device.device_specs
        ],
        "digest": device.digest,
        **({"withheld": device.withheld} if device.withheld else {}),
        **({"left": list(device.former_paths)} if device.former_paths else {}),
        **({"nodes": sorted(device.nodes)} if device.nodes else {}),
        **({"capacity": device.capacity} if device.capacity > 1 else {}),
        **_dump_config(device.allocated.config),
    }


def _dump_config(config: DeviceConfig) -> dict[str, Any]:
    if config == NOTHING_ASKED:
        return {}
    fields = ("permissions", "mode", "uid", "gid", "certificates")
    return {"config": {"env": dict(config.env), **{n: getattr(config, n) for n in fields}}}


def _load_config(entry: Mapping[str, Any] | None) -> DeviceConfig:
    """The stored DeviceConfig; an entry of an earlier driver has none."""
    if not entry:
        return NOTHING_ASKED
    return DeviceConfig(
        env=tuple(sorted(entry.get("env", {}).items())),
        permissions=entry.get("permissions", ""),
        mode=entry.get("mode"),
        uid=entry.get("uid"),
        gid=entry.get("gid"),
        certificates=entry.get("certificates", ""),
    )


def load(entry: Mapping[str, Any]) -> PreparedClaim:
    """Read a record.

    A record of a newer driver is read as far as possible: only the claim's UID may be known.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: If it is not a record.
    """
    version = entry.get("version", NO_VERSION)
    try:
        return _load(entry, version)
    except MALFORMED:
        if version <= VERSION:
            raise
        return lost_claim(ClaimUid(entry["uid"]), entry["bootID"], version)


def _load(entry: Mapping[str, Any], version: int) -> PreparedClaim:
    return PreparedClaim(
        reference=ClaimReference(entry["namespace"], entry["name"], ClaimUid(entry["uid"])),
        boot_id=entry["bootID"],
        devices=tuple(_load_device(device) for device in entry["devices"]),
        pod_claim=entry.get("podClaim"),
        home=Home(entry.get("nodeUID", ""), entry.get("clusterUID", "")),
        version=max(version, VERSION),
    )


def _load_device(entry: Mapping[str, Any]) -> PreparedDevice:
    return PreparedDevice(
        allocated=AllocatedDevice(
            request=entry["request"],
            pool=entry["pool"],
            device=DeviceName(entry["device"]),
            share_id=entry["shareID"],
            admin_access=entry["adminAccess"],
            config=_load_config(entry.get("config")),
        ),
        cdi_name=entry["cdiName"],
        instance=InstanceName(entry["instance"]),
        hash=entry["hash"],
        properties=dict(entry["properties"]),
        mounts=tuple(
            Mount(m["containerPath"], m["hostPath"], m["readOnly"]) for m in entry["mounts"]
        ),
        device_specs=tuple(
            DeviceSpec(spec["containerPath"], spec["hostPath"], spec["permissions"])
            for spec in entry["deviceSpecs"]
        ),
        digest=entry.get("digest", ""),
        withheld=entry.get("withheld", ""),
        former_paths=tuple(entry.get("left", ())),
        nodes=frozenset(entry.get("nodes", ())),
        capacity=int(entry.get("capacity", 1)),
    )

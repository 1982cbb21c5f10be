"""The checkpoint: prepared claims as JSON that outlives the process.

    {"version": 1, "checksum": "sha256:…", "data": {"node": "…", "claims": [{…}, …]}}

Compatibility. Any version may add fields: a reader gives an absent one its default, ignores one
that it does not know, and drops it with its next write. `version` rises only if older readers
would misunderstand; they take such a file for unreadable. The checksum covers the JSON value of
`data`, not the types of this program, so neither an upgrade nor a rollback invalidates it.

Order of writes. A claim enters the checkpoint before its CDI file is written, and leaves it after
that file is removed. So at any instant each CDI file belongs to an entry, and no device is usable
that the guard of exclusive devices does not see. Killed

* before the checkpoint is replaced: the kubelet has no answer and asks again, nothing happened;
* between checkpoint and CDI file: the next start writes the file from the entry;
* after both: the kubelet has no answer, asks again and gets the same one;
* while claims are planned anew, since their devices moved: as when they are granted. Until the
  devices are heard of, files are those of the entries, and may name where a device was before the
  kill; the plan that follows, before the kubelet is served, puts both right;
* between removal of the file and of the entry: the next start writes the file once more, and the
  kubelet, which has no answer, asks to unprepare again.

Power cut. Whatever was prepared holds nothing in the next boot, and `bootID` says of which boot it
is. So nothing waits for the disk: what is there then may be the newest file, the one before, or
half of one, which its checksum tells and which is put aside. A process that is killed leaves its
writes with the kernel, whole. CDI files of another boot are removed at the start.

One step in one file is all there is to a claim, so there is no 'prepare started' to record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver.api import ClaimUid, DeviceName, InstanceName, NodeName
from driver.derived import derived
from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.devices import DeviceSpec, Mount
from driver.preparing.files.prepared import (
    AllocatedDevice,
    ClaimReference,
    PreparedClaim,
    PreparedClaims,
    PreparedDevice,
)

VERSION = 1


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a file cannot be believed."""

    reason: str


def dump(claims: PreparedClaims, node: NodeName) -> bytes:
    """The checkpoint of a node; the same bytes for the same claims."""
    parts = [derived(claims[uid], _text) for uid in sorted(claims)]
    data = b'{"claims":[%b],"node":%b}' % (b",".join(parts), canonical(node))
    head = f'{{"version":{VERSION},"checksum":"{checksum_of(data)}","data":'
    return b"%b%b}\n" % (head.encode(), data)


def _text(claim: PreparedClaim) -> bytes:
    """Made once of each: of a thousand claims one changes at a time."""
    return canonical(dump_claim(claim))


def load(text: bytes, node: NodeName) -> PreparedClaims | Unreadable:
    """Read what `dump` wrote, in this or another version."""
    try:
        document = json.loads(text)
        if (version := document["version"]) != VERSION:
            return Unreadable(f"its version is {version!r}, and this driver reads {VERSION}")
        data = document["data"]
        if document["checksum"] != checksum_of(canonical(data)):
            return Unreadable("its checksum is wrong")
        if data["node"] != node:
            return Unreadable(f"it is of node {data['node']!r}")
        claims = [load_claim(entry) for entry in data["claims"]]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return Unreadable(f"it is no checkpoint: {error!r}")
    return {claim.reference.uid: claim for claim in claims}


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def canonical(data: Any) -> bytes:
    return _encode(data).encode()


def checksum_of(canonical: bytes) -> str:
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def dump_claim(claim: PreparedClaim) -> dict[str, Any]:
    """One claim as a JSON object."""
    return {
        "namespace": claim.reference.namespace,
        "name": claim.reference.name,
        "uid": claim.reference.uid,
        "bootID": claim.boot_id,
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
        **({"left": list(device.left)} if device.left else {}),
        **_dump_config(device.allocated.config),
    }


def _dump_config(config: DeviceConfig) -> dict[str, Any]:
    if config == NOTHING_ASKED:
        return {}
    fields = ("permissions", "mode", "uid", "gid", "certificates")
    return {"config": {"env": dict(config.env), **{n: getattr(config, n) for n in fields}}}


def _load_config(entry: Mapping[str, Any] | None) -> DeviceConfig:
    """Of an earlier driver's entry nothing is known: what it left out is asked for again."""
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


def load_claim(entry: Mapping[str, Any]) -> PreparedClaim:
    """Read what `dump_claim` made.

    Raises:
        LookupError, TypeError, AttributeError: If it is something else.
    """
    return PreparedClaim(
        reference=ClaimReference(entry["namespace"], entry["name"], ClaimUid(entry["uid"])),
        boot_id=entry["bootID"],
        devices=tuple(_load_device(device) for device in entry["devices"]),
        pod_claim=entry.get("podClaim"),
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
        left=tuple(entry.get("left", ())),
    )

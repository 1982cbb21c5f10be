"""CDI files: what the container runtime adds to the containers of a claim.

One file per claim, since two files that define one device make both useless. One CDI device per
allocated device of each request, since a container gets the devices of the requests it names.

The file also carries the claim's record, see `records`: as the environment of a device of its own,
which no container is ever given. Annotations would be the place for it, but need version 0.6.0, and
unknown fields are refused by every runtime.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from driver.api import DRIVER_NAME, ClaimUid
from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.devices import DeviceSpec, Mount, merged_mounts, merged_specs
from driver.environment import VARIABLE
from driver.instances.unusable_properties import UNUSABLE
from driver.preparing.files import metadata, records
from driver.preparing.files.prepared import PreparedClaim, PreparedDevice
from driver.preparing.files.records import MALFORMED, Unreadable

KIND = f"{DRIVER_NAME}/claim"

VERSION = "0.5.0"
"""The lowest with `hostPath` of device nodes, and with names that begin with a digit as UIDs do.

containerd 1.7, the oldest runtime that takes CDI devices from the kubelet, knows no later one.
"""

RECORD = "record"
RECORD_VARIABLE = "MOORAGE_CLAIM"
NOTHING_VARIABLE = "MOORAGE_INSTANCE"
"""What a container gets of a device that has neither properties, device nodes nor mounts."""

WITHHELD = ".withheld"
"""Ends the name of a file that keeps its record, and that no runtime reads."""

FILE_NAME = re.compile(
    rf"{re.escape(DRIVER_NAME)}-claim-([A-Za-z0-9][A-Za-z0-9-]*)\.json({re.escape(WITHHELD)})?"
)

MetadataPath = Callable[[PreparedClaim, str], str]
"""Where the device metadata of a claim's request is on the host."""


def file_name(uid: ClaimUid) -> str:
    """Name of a claim's CDI file."""
    return f"{DRIVER_NAME}-claim-{uid}.json"


def withheld_name(uid: ClaimUid) -> str:
    """Name of the file while no container is to be started with it."""
    return file_name(uid) + WITHHELD


def claim_of(name: str) -> ClaimUid | None:
    """Whose CDI file this is, withheld or not; None if it is not one of ours."""
    match = FILE_NAME.fullmatch(name)
    return ClaimUid(match[1]) if match else None


def device_ids(device: PreparedDevice) -> tuple[str, ...]:
    """What the kubelet passes to the runtime, for as long as the claim is prepared."""
    return (f"{KIND}={device.cdi_name}",)


def dump(claim: PreparedClaim, metadata_path: MetadataPath | None = None) -> bytes:
    """The CDI file of a claim; the same bytes for the same claim.

    Device metadata comes with the first device of each request, since a container that names the
    request gets all of them.

    A device that is withheld is not in it: the runtime then starts no container that is to have
    it, and says its name. The kubelet tries again until it is there.
    """
    mounts = {} if metadata_path is None else _metadata_mounts(claim, metadata_path)
    given = [device for device in claim.devices if not device.withheld]
    devices = []
    for device in given:
        mount = mounts.pop(device.allocated.request, None)
        edits = _edits(device, _together(device, given))
        devices.append((device.cdi_name, _with_mount(edits, mount)))
    record = json.dumps(records.dump(claim), sort_keys=True)
    devices.append(
        (f"{claim.reference.uid}_{RECORD}", {"env": [f"{RECORD_VARIABLE}={record}"]}),
    )
    document = {
        "cdiVersion": VERSION,
        "kind": KIND,
        "devices": [{"name": name, "containerEdits": edits} for name, edits in devices],
    }
    return encoded(document)


def encoded(document: Mapping[str, Any]) -> bytes:
    """JSON that is YAML, too, since CDI's own library reads it as that.

    YAML allows no control characters, and no pair of escapes for one character. So everything
    outside ASCII is escaped, except what takes a pair in JSON: beyond U+FFFF.
    """
    text = json.dumps(document, ensure_ascii=False)
    escaped = re.sub(r"[\x7f-\ud7ff\ue000-\uffff]", lambda m: f"\\u{ord(m[0]):04x}", text)
    return escaped.encode(errors="replace")


def load(text: bytes, uid: ClaimUid) -> PreparedClaim | Unreadable:
    """The claim that a CDI file was written for."""
    try:
        for device in json.loads(text)["devices"]:
            if device["name"] == f"{uid}_{RECORD}":
                record = device["containerEdits"]["env"][0].removeprefix(f"{RECORD_VARIABLE}=")
                claim = records.load(json.loads(record))
                return claim if claim.reference.uid == uid else Unreadable("it is another claim's")
    except MALFORMED as error:
        return Unreadable(f"it is no CDI file of ours: {error!r}")
    return Unreadable("it has no record of its claim")


def _together(device: PreparedDevice, given: Iterable[PreparedDevice]) -> list[PreparedDevice]:
    """All that the containers get which get this one."""
    return [other for other in given if other.allocated.request == device.allocated.request]


def _edits(device: PreparedDevice, together: Iterable[PreparedDevice]) -> dict[str, Any]:
    """Of two mounts at one path runtimes take the later, so both are what they are together."""
    env = [f"{name}={value}" for name, value in environment(device).items()]
    specs = merged_specs(spec for other in together for spec in other.device_specs)
    mounts = merged_mounts(mount for other in together for mount in other.mounts)
    on_host = host_edits(
        [specs[spec.container_path] for spec in device.device_specs],
        [mounts[mount.container_path] for mount in device.mounts],
        device.allocated.config,
    )
    edits = {**({"env": env} if env else {}), **on_host}
    # Without edits the whole file would be invalid, and without the device no container starts.
    return edits or {"env": [f"{NOTHING_VARIABLE}_{device.hash.upper()}={device.instance}"]}


def _metadata_mounts(claim: PreparedClaim, path: MetadataPath) -> dict[str, dict[str, Any]]:
    """By request; mounted as Kubernetes' own helper does."""
    return {
        request: {
            "hostPath": path(claim, request),
            "containerPath": metadata.container_path(claim, request),
            "options": ["ro", "bind"],
        }
        for request in metadata.requests(claim)
    }


def _with_mount(edits: dict[str, Any], mount: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**edits, "mounts": [*edits.get("mounts", ()), mount]} if mount else edits


def host_edits(
    device_specs: Iterable[DeviceSpec],
    mounts: Iterable[Mount],
    config: DeviceConfig = NOTHING_ASKED,
) -> dict[str, Any]:
    """`containerEdits` without environment; empty for a device that is nothing of the host's.

    The runtime reads type and numbers of device nodes itself.
    """
    asked = {"fileMode": config.mode, "uid": config.uid, "gid": config.gid}
    of_node = {name: value for name, value in asked.items() if value is not None}
    edits: dict[str, Any] = {
        "deviceNodes": [
            {
                "path": spec.container_path,
                "hostPath": spec.host_path,
                "permissions": spec.permissions,
                **of_node,
            }
            for spec in device_specs
        ],
        "mounts": [
            {
                "hostPath": mount.host_path,
                "containerPath": mount.container_path,
                "options": ["rbind", "rprivate", *(["ro"] if mount.read_only else ["rw"])],
            }
            for mount in mounts
        ],
    }
    return {name: values for name, values in edits.items() if values}


def environment(device: PreparedDevice) -> dict[str, str]:
    """Each property under its name, and under its name with the Instance's hash, sorted.

    Before them what the claim asks for, which has other names. With two devices the plain names
    are the later one's (`PreparedClaim.devices`).
    """
    return {**dict(device.allocated.config.env), **variables(device.properties, device.hash)}


def variables(properties: Mapping[str, str], digits: str) -> dict[str, str]:
    """The properties that can be variables, without and with an Instance's hash."""
    usable = {k: v for k, v in sorted(properties.items()) if is_variable(k, v)}
    return {**usable, **{f"{name}_{digits.upper()}": value for name, value in usable.items()}}


def is_variable(name: str, value: str) -> bool:
    """Whether a property can be an environment variable; a line break in its value is fine.

    Bytes of a device that are no UTF-8 come as lone surrogates, which no JSON reader accepts.
    """
    return bool(VARIABLE.fullmatch(name)) and not UNUSABLE.search(value)


def unusable_properties(claim: PreparedClaim) -> list[str]:
    """Names of properties that do not reach the containers."""
    return sorted(
        {
            name
            for device in claim.devices
            for name, value in device.properties.items()
            if not is_variable(name, value)
        }
    )

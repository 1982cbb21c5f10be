"""CDI files: what the container runtime adds to the containers of a claim.

Each claim has one file, because two files that define one device invalidate each other. Each
allocated device of each request is a CDI device, because a container gets the devices of the
requests that it names.

The file also has the claim's record, see `records`: as the environment of an extra CDI device that
no container gets. Annotations need version 0.6.0 of CDI, and runtimes refuse unknown fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from driver.api import DRIVER_NAME, ClaimUid
from driver.device_configs import NOTHING_ASKED, DeviceConfig
from driver.devices import DeviceSpec, Mount, merged_mounts, merged_specs
from driver.environment_rules import VARIABLE
from driver.instances.unusable_properties import UNUSABLE
from driver.preparing.files import metadata, records
from driver.preparing.files.prepared import PreparedClaim, PreparedDevice
from driver.preparing.files.records import MALFORMED, Unreadable

KIND = f"{DRIVER_NAME}/claim"

VERSION = "0.5.0"
"""The lowest version with `hostPath` of device nodes, and with names that start with a digit.

containerd 1.7, the oldest runtime that takes CDI devices from the kubelet, has no later one.
"""

RECORD = "record"
RECORD_VARIABLE = "MOORAGE_CLAIM"
NOTHING_VARIABLE = "MOORAGE_INSTANCE"
"""The variable for a device without properties, device nodes and mounts."""

WITHHELD = ".withheld"
"""End of the name of a file that keeps its record, and that no runtime reads."""

FILE_NAME = re.compile(
    rf"{re.escape(DRIVER_NAME)}-claim-([A-Za-z0-9][A-Za-z0-9-]*)\.json({re.escape(WITHHELD)})?"
)

MetadataPath = Callable[[PreparedClaim, str], str]
"""(claim, request) → the path of its device metadata on the host."""


def file_name(uid: ClaimUid) -> str:
    """The name of a claim's CDI file."""
    return f"{DRIVER_NAME}-claim-{uid}.json"


def withheld_name(uid: ClaimUid) -> str:
    """The name of a claim's CDI file while it is withheld: no container can start with it."""
    return file_name(uid) + WITHHELD


def claim_of(name: str) -> ClaimUid | None:
    """The claim of a CDI file, withheld or not; None for a file of another driver."""
    match = FILE_NAME.fullmatch(name)
    return ClaimUid(match[1]) if match else None


def device_ids(device: PreparedDevice) -> tuple[str, ...]:
    """The CDI ids that the kubelet passes to the runtime, as long as the claim is prepared."""
    return (f"{KIND}={device.cdi_name}",)


def dump(claim: PreparedClaim, metadata_path: MetadataPath | None = None) -> bytes:
    """The CDI file of a claim; the same bytes for the same claim.

    The first device of each request mounts the device metadata: a container that names the request
    gets all of its devices.

    The file lacks withheld devices. So the runtime refuses to start a container with such a device,
    and its error names the device. The kubelet retries until the file has the device.
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
    """JSON that is also YAML, because CDI's own library reads it as YAML.

    YAML allows no control characters, and no pair of escapes for one character. So all characters
    outside ASCII are escaped, except those that take a pair of escapes in JSON: beyond U+FFFF.
    """
    text = json.dumps(document, ensure_ascii=False)
    escaped = re.sub(r"[\x7f-\ud7ff\ue000-\uffff]", lambda m: f"\\u{ord(m[0]):04x}", text)
    return escaped.encode(errors="replace")


def load(text: bytes, uid: ClaimUid) -> PreparedClaim | Unreadable:
    """The claim of a CDI file, from its record."""
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
    """All devices that containers with this device get."""
    return [other for other in given if other.allocated.request == device.allocated.request]


def _edits(device: PreparedDevice, together: Iterable[PreparedDevice]) -> dict[str, Any]:
    """The edits of a device; nodes and mounts at one path are merged, as runtimes take one."""
    env = [f"{name}={value}" for name, value in environment(device).items()]
    specs = merged_specs(spec for other in together for spec in other.device_specs)
    mounts = merged_mounts(mount for other in together for mount in other.mounts)
    on_host = host_edits(
        [specs[spec.container_path] for spec in device.device_specs],
        [mounts[mount.container_path] for mount in device.mounts],
        device.allocated.config,
    )
    edits = {**({"env": env} if env else {}), **on_host}
    # A device without edits makes the file invalid; without the device no container starts.
    return edits or {"env": [f"{NOTHING_VARIABLE}_{device.hash.upper()}={device.instance}"]}


def _metadata_mounts(claim: PreparedClaim, path: MetadataPath) -> dict[str, dict[str, Any]]:
    """The mounts by request, as Kubernetes' own helper makes them."""
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
    """`containerEdits` without environment; empty for a device without nodes and mounts.

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
    """The claim's variables, then each property with and without the Instance's hash, sorted.

    The claim's variables have other names. If a container has two devices, variables without hash
    are those of the later one (`PreparedClaim.devices`).
    """
    return {**dict(device.allocated.config.env), **variables(device.properties, device.hash)}


def variables(properties: Mapping[str, str], digits: str) -> dict[str, str]:
    """The properties that can be variables, each without and with an Instance's hash."""
    usable = {k: v for k, v in sorted(properties.items()) if is_variable(k, v)}
    return {**usable, **{f"{name}_{digits.upper()}": value for name, value in usable.items()}}


def is_variable(name: str, value: str) -> bool:
    """Whether a property can be an environment variable; its value may have line breaks.

    Bytes that are not UTF-8 are lone surrogates here, which no JSON reader accepts.
    """
    return bool(VARIABLE.fullmatch(name)) and not UNUSABLE.search(value)


def unusable_properties(claim: PreparedClaim) -> list[str]:
    """Names of properties that containers do not get."""
    return sorted(
        {
            name
            for device in claim.devices
            for name, value in device.properties.items()
            if not is_variable(name, value)
        }
    )

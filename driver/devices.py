"""Devices as a discovery handler reports them.

The types follow Akri's `discovery.proto` (`Device`, `Mount`, `DeviceSpec`), so that a handler in
this process and one behind gRPC report the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from driver.api import NodeName
from driver.derived import Deriving

NUMA_NODE = "resource.kubernetes.io/numaNode"
"""Attribute of the NUMA node, reported in digits; the only standard attribute that is a number."""


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device node of the host that the container gets.

    Attributes:
        permissions: Any of `r` (read), `w` (write) and `m` (mknod), as in the device cgroup.
    """

    container_path: str
    host_path: str
    permissions: str = "rwm"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host that the container gets."""

    container_path: str
    host_path: str
    read_only: bool = True


def merged_specs(specs: Iterable[DeviceSpec]) -> dict[str, DeviceSpec]:
    """The merged device nodes of a container by its path, with the union of the permissions."""
    merged: dict[str, DeviceSpec] = {}
    for spec in specs:
        before = merged.setdefault(spec.container_path, spec)
        permissions = "".join(p for p in "rwm" if p in before.permissions + spec.permissions)
        merged[spec.container_path] = replace(before, permissions=permissions)
    return merged


def merged_mounts(mounts: Iterable[Mount]) -> dict[str, Mount]:
    """The merged mounts of a container by its path, writable if one of them is."""
    merged: dict[str, Mount] = {}
    for mount in mounts:
        before = merged.setdefault(mount.container_path, mount)
        read_only = before.read_only and mount.read_only
        merged[mount.container_path] = replace(before, read_only=read_only)
    return merged


@dataclass(frozen=True, slots=True)
class Device(Deriving):
    """One discovered device.

    Attributes:
        id: Identifies the device to its handler; stays the same while it is plugged in.
        properties: Environment of the container that uses it, unless a name is denied.
        attributes: Attributes for selectors beside the properties, the important ones first. Akri's
            contract has no field for them, so a handler in another process reports none.
        nodes: Keys of its device nodes beside their paths: the numbers, such as `b7:1` (as in
            udevd's database), or its path in sysfs. Only handlers in this process report them.
        guards: Paths of the host that exist only as long as this device does. Only handlers in this
            process report them.
        unprivileged: Whether its handler runs without privileges. Fewer of its properties become
            environment then, see `environment`.
    """

    id: str
    properties: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    device_specs: tuple[DeviceSpec, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    unprivileged: bool = False


AKRIS_DIGITS = 6


def device_hash(device_id: str, node: NodeName | None, digits: int = AKRIS_DIGITS) -> str:
    """Akri's hash of a device, or a longer one.

    Args:
        device_id: `Device.id`.
        node: The node of a local device; None for a device that several nodes can see.
        digits: Number of hexadecimal digits, which is even.

    Source: `device_hash` of Akri's discovery handler registry (BLAKE2b, three bytes).
    """
    identity = _encoded(device_id + (node or ""))
    return hashlib.blake2b(identity, digest_size=digits // 2).hexdigest()


def device_digest(device_id: str, node: NodeName | None) -> str:
    """Identifies a device among all of its Configuration, which six digits may not."""
    identity = _encoded(f"{device_id}\0{node or ''}")
    return hashlib.blake2b(identity, digest_size=16).hexdigest()


def _encoded(text: str) -> bytes:
    """The text in bytes. A lone surrogate, which stands for a byte that was no UTF-8, is kept."""
    return text.encode(errors="surrogatepass")

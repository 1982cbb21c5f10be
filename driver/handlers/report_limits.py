"""Limits of external discovery handlers: their names, and the devices that they may report.

An external handler is third-party code. Its answers become device nodes and mounts of containers,
which a runtime makes as root. So settings limit what it may report. A device that exceeds a limit
is left out as a whole: with a part of it a container would not work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver.device_configs import PERMISSION_LETTERS
from driver.devices import Device, DeviceSpec
from driver.discovery.details import shown
from driver.handlers.container_paths import lies_in, place_refusal
from driver.handlers.registrations import Registration
from driver.plumbing.device_nodes import FileKind, PathTarget

DEVICES = "/dev"
NETWORK_HANDLERS = ("onvif", "opcua")
"""Our handlers that read untrusted data. Their devices are on the network, so they report no
device nodes or mounts."""

MOST_DEVICES = 5_000
NODE_DEVICES = 6_000
"""The devices of one handler at its limit, and 1,000 devices of handlers without privileges. A
device of 1.6 KiB takes 18 KiB of memory with its Instance and slice: at most 110 MiB in all."""

UNPRIVILEGED_PART = 6
"""Handlers without privileges may report one part in so many of a node's devices."""

LARGEST_ANSWER_BYTES = 8 << 20
"""5,000 devices of 1.6 KiB each. A received answer takes three times its size for a while."""

BYTES_OF_A_DEVICE = LARGEST_ANSWER_BYTES // MOST_DEVICES
PARTS_OF_A_DEVICE = 64
"""Average number of properties, mounts and device nodes that a device may have."""

_DEVICE_PATHS, _MOUNT_PATHS = "--handler-device-paths", "--handler-mount-paths"

_NODE_MOST = "--node-most-devices"

RealPaths = Mapping[str, str | None]
"""The targets of paths through all links; None for a path that the driver does not see."""

MISSING = "is not there"
"""The end of the sentence about a missing device node, whose device is checked again."""


@dataclass(frozen=True, slots=True)
class OnHost:
    """The paths of the host that devices ask for, as the driver sees them.

    Attributes:
        mounts: The target of each file or folder.
        nodes: What is at the path of each device node.
    """

    mounts: RealPaths = field(default_factory=dict)
    nodes: Mapping[str, PathTarget] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The devices of an answer that may be published, and why others may not.

    Attributes:
        problems: A sentence for each device that is left out.
        awaits: Whether a device is left out only because its device node is missing now.
    """

    devices: tuple[Device, ...]
    problems: tuple[str, ...] = ()
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """The size of an answer.

    Attributes:
        devices: The number of its devices.
        size: Bytes, as received.
    """

    devices: int = 0
    size: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.devices + other.devices, self.size + other.size)

    def fits(self, room: Amount) -> bool:
        """Whether neither number exceeds that of `room`."""
        return self.devices <= room.devices and self.size <= room.size


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerLimits:
    """Settings.

    Attributes:
        device_paths: Paths of the host. Device nodes at or below them are allowed. A part of a
            path may be a pattern: `/dev/video*`.
        mount_paths: The same for files and folders to mount.
        container_paths: Paths in containers. Device nodes and mounts at or below them are allowed,
            beside the places that are always allowed, see `container_paths`.
        reserved: Names that no external handler may have: those of the embedded handlers.
        most_devices: Devices of one handler, over all Configurations.
        network_folder: The folder in which handlers without privileges register; "" for none.
        node_devices: Devices of all handlers of a node together.
    """

    device_paths: tuple[str, ...] = (DEVICES,)
    mount_paths: tuple[str, ...] = ()
    container_paths: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()
    most_devices: int = MOST_DEVICES
    network_folder: str = ""
    node_devices: int = NODE_DEVICES

    def share(self, registration: Registration) -> Amount:
        """What all handlers of its kind, with or without privileges, may report together."""
        part = self.node_devices // UNPRIVILEGED_PART
        devices = part if registration.unprivileged else self.node_devices - part
        return Amount(devices, devices * BYTES_OF_A_DEVICE)

    def largest_answer(self, registration: Registration) -> int:
        """Bytes that an answer of this handler may have."""
        return min(LARGEST_ANSWER_BYTES, self.share(registration).size)


DEFAULT_LIMITS = HandlerLimits()


def refused_name(registration: Registration, limits: HandlerLimits) -> str | None:
    """Why a handler may not have its name; None if it may."""
    name = registration.endpoint.name
    if name not in limits.reserved:
        return None
    return f"name: {shown(name)} is the driver's own; --external-handlers would allow it."


def refused_in_folder(registration: Registration, folder: str) -> str | None:
    """Why a handler may not register in the folder for unprivileged ones; None if it may.

    Only network handlers may, and only with sockets in that folder.
    """
    name, address = registration.endpoint.name, registration.endpoint.address
    if name not in NETWORK_HANDLERS:
        return f"name: {shown(name)} is none of {', '.join(NETWORK_HANDLERS)}, which register here."
    if registration.network or address.rpartition("/")[0] != folder:
        return f"endpoint: {shown(address)} is not a socket in {folder}."
    return None


def admitted(
    devices: Iterable[Device], name: str, limits: HandlerLimits, host: OnHost, *, trusted: bool
) -> Admitted:
    """The devices that may be published, and why others may not.

    Args:
        devices: The devices as the handler reports them.
        name: The handler's name.
        limits: The settings.
        host: All `mount_paths` and `node_paths` as the driver sees them.
        trusted: Whether the handler is on this node, or has shown its certificate.
    """
    taken, problems = [], []
    for device in devices:
        why = _whole_refusal(device, name, trusted=trusted) or _refusal(device, limits, host)
        if why is None:
            taken.append(device)
        else:
            problems.append(f"Device {shown(device.id)} is left out: {why}.")
    awaits = any(problem.endswith(f" {MISSING}.") for problem in problems)
    return Admitted(tuple(taken), tuple(problems), awaits)


def mount_paths(devices: Iterable[Device]) -> frozenset[str]:
    """All files and folders of the host that devices ask for."""
    return frozenset(mount.host_path for device in devices for mount in device.mounts)


def node_paths(devices: Iterable[Device]) -> frozenset[str]:
    """All device nodes of the host that devices ask for."""
    return frozenset(spec.host_path for device in devices for spec in device.device_specs)


def _whole_refusal(device: Device, name: str, *, trusted: bool) -> str | None:
    if not device.mounts and not device.device_specs:
        return None
    if name in NETWORK_HANDLERS:
        return f"it is of this node, and those of {shown(name)} are on the network"
    if not trusted:
        return "it is of this node, and its handler speaks over the network without TLS"
    return None


def _refusal(device: Device, limits: HandlerLimits, host: OnHost) -> str | None:
    mounts = (mount_refusal(m.host_path, limits.mount_paths, host.mounts) for m in device.mounts)
    specs = (_spec_refusal(n, s, limits, host) for n, s in enumerate(device.device_specs))
    places = (place_refusal(device, limits.container_paths),)
    return next((why for why in (*mounts, *specs, *places) if why), None)


def mount_refusal(path: str, allowed: Iterable[str], real: RealPaths) -> str | None:
    """Why a path of the host may not be mounted; None if it may.

    Args:
        path: The path.
        allowed: `HandlerLimits.mount_paths`.
        real: Its target.
    """
    if not lies_in(path, allowed):
        return f"mount {shown(path)} is not in {_MOUNT_PATHS}"
    if (target := real.get(path)) is None:
        return f"mount {shown(path)} is not seen by the driver, so it may be a link"
    if not lies_in(target, allowed):
        return f"mount {shown(path)} leads to what is not in {_MOUNT_PATHS}"
    return None


def _spec_refusal(number: int, spec: DeviceSpec, limits: HandlerLimits, host: OnHost) -> str | None:
    """A path that the driver does not see is checked as it is: only root makes links in /dev."""
    field, path = f"device_specs[{number}]", spec.host_path
    look = host.nodes.get(spec.host_path, _UNKNOWN)
    if not lies_in(path, limits.device_paths):
        return f"device node {shown(path)} is not in {_DEVICE_PATHS}"
    if not lies_in(look.target or path, limits.device_paths):
        return f"device node {shown(path)} leads to what is not in {_DEVICE_PATHS}"
    if not spec.permissions or not set(spec.permissions) <= PERMISSION_LETTERS:
        return f"{field}.permissions {shown(spec.permissions)} are not some of rwm, such as r or rw"
    if look.kind is FileKind.OTHER:
        return f"{field}.host_path {shown(path)} is not a device node; name each node of a folder"
    if look.kind is FileKind.MISSING:
        return f"{field}.host_path {shown(path)} {MISSING}"
    return None


_UNKNOWN = PathTarget(None, FileKind.UNKNOWN)


def too_many(most_devices: int) -> str:
    """The sentence for a handler that reports too many devices."""
    why = f"It reports more than {most_devices} devices (--handler-most-devices)"
    return f"{why}; its earlier answer stays in force."


def too_large(registration: Registration, largest: int) -> str:
    """The sentence for an answer with too many bytes, which is not received at all."""
    whose = f"Handler {shown(registration.endpoint.name)}"
    less = "it must report fewer devices, or shorter properties"
    return (
        f"{whose} answered with more than {largest / (1 << 20):.3g} MiB; its earlier answer"
        f" stays in force, and {less}."
    )


def too_many_together(share: Amount, registration: Registration) -> str:
    """The sentence for handlers of a node that report too much together."""
    whose = "without privileges" if registration.unprivileged else "with privileges"
    why = f"The registered handlers of this node {whose} report more than {share.devices} devices"
    kept = "its earlier answer stays in force"
    return f"{why} or {share.size} bytes together ({_NODE_MOST}); {kept}."

"""Limits of discovery handlers in processes of their own: what they may be, give and have.

A handler is somebody else's program. What it says becomes device nodes and mounts of containers,
made by a runtime that is root; so it says no more than settings allow. A device that asks for more
is left out wholly: a container would miss what the device is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver.device_configs import PERMISSION_LETTERS
from driver.devices import Device, DeviceSpec
from driver.discovery.details import shown
from driver.handlers.container_paths import lies_in, place_refusal
from driver.handlers.registrations import Registration
from driver.plumbing.device_nodes import Look, Seen

DEVICES = "/dev"
NETWORK_HANDLERS = ("onvif", "opcua")
"""Those of ours that read what strangers send. Their devices are on the network, so they give
nothing of a node."""

MOST_DEVICES = 5_000
NODE_DEVICES = 6_000
"""A handler at its limit, and a thousand devices of handlers without privileges. One of 1.6 KiB
takes 18 KiB of memory, its Instance and its slice included: at most 110 MiB in all."""

UNPRIVILEGED_PART = 6
"""One part in so many of a node's devices is for handlers without privileges."""

LARGEST_ANSWER_BYTES = 8 << 20
"""Five thousand devices of 1.6 KiB each. What is received takes three times as much for a while."""

BYTES_OF_A_DEVICE = LARGEST_ANSWER_BYTES // MOST_DEVICES
PARTS_OF_A_DEVICE = 64
"""Properties, mounts and device nodes that a device of an answer has on average, at most."""

_DEVICE_PATHS, _MOUNT_PATHS = "--handler-device-paths", "--handler-mount-paths"

_NODE_MOST = "--node-most-devices"

RealPaths = Mapping[str, str | None]
"""Where paths lead, as far as the driver sees them; None for one that it does not see."""

MISSING = "is not there"
"""Of a device node: it may come, so its device is looked at again."""


@dataclass(frozen=True, slots=True)
class OnHost:
    """What the driver sees of paths that devices ask for.

    Attributes:
        mounts: Where each file or folder leads.
        nodes: What is where each device node is to be.
    """

    mounts: RealPaths = field(default_factory=dict)
    nodes: Mapping[str, Look] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The devices of an answer that may be published, and why the others are not.

    Attributes:
        problems: A sentence for each device that is left out.
        awaits: Whether one is left out only because its device node is not there at this moment.
    """

    devices: tuple[Device, ...]
    problems: tuple[str, ...] = ()
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class Amount:
    """How much an answer holds.

    Attributes:
        size: In bytes, as it came.
    """

    devices: int = 0
    size: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.devices + other.devices, self.size + other.size)

    def fits(self, room: Amount) -> bool:
        """Whether there is no more of anything."""
        return self.devices <= room.devices and self.size <= room.size


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerLimits:
    """Settings.

    Attributes:
        device_paths: Of the host, at or below which device nodes may be given. A part of a path
            may be a pattern: `/dev/video*`.
        mount_paths: The same of files and folders.
        container_paths: Of containers, at or below which device nodes and mounts may be beside the
            places that all may have, see `container_paths`.
        reserved: Names that no handler of another process may bear: those of ours in this one.
        most_devices: Of one handler, over all Configurations.
        network_folder: Of handlers without privileges; "" for none.
        node_devices: Of all handlers of a node together.
    """

    device_paths: tuple[str, ...] = (DEVICES,)
    mount_paths: tuple[str, ...] = ()
    container_paths: tuple[str, ...] = ()
    reserved: frozenset[str] = frozenset()
    most_devices: int = MOST_DEVICES
    network_folder: str = ""
    node_devices: int = NODE_DEVICES

    def share(self, registration: Registration) -> Amount:
        """What all handlers like this one may report together."""
        part = self.node_devices // UNPRIVILEGED_PART
        devices = part if registration.unprivileged else self.node_devices - part
        return Amount(devices, devices * BYTES_OF_A_DEVICE)

    def largest_answer(self, registration: Registration) -> int:
        """Bytes that an answer of this handler may have."""
        return min(LARGEST_ANSWER_BYTES, self.share(registration).size)


DEFAULT_LIMITS = HandlerLimits()


def refused_name(registration: Registration, limits: HandlerLimits) -> str | None:
    """Why a handler may not bear its name; None if it may."""
    name = registration.endpoint.name
    if name not in limits.reserved:
        return None
    return f"name: {shown(name)} is the driver's own; --external-handlers would allow it."


def refused_in_folder(registration: Registration, folder: str) -> str | None:
    """Why a handler may not register in the folder of those without privileges; None if it may.

    Only handlers of networks may, which are asked at sockets in that folder.
    """
    name, address = registration.endpoint.name, registration.endpoint.address
    if name not in NETWORK_HANDLERS:
        return f"name: {shown(name)} is none of {', '.join(NETWORK_HANDLERS)}, who register here."
    if registration.network or address.rpartition("/")[0] != folder:
        return f"endpoint: {shown(address)} is no socket in {folder}."
    return None


def admitted(
    devices: Iterable[Device], name: str, limits: HandlerLimits, host: OnHost, *, trusted: bool
) -> Admitted:
    """The devices that may be published, and why the others are not.

    Args:
        devices: As the handler reports them.
        name: The handler's.
        limits: The settings.
        host: What is seen of all `mount_paths` and `node_paths`.
        trusted: Whether the handler is on this node, or known by its certificate.
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
        real: Where it leads.
    """
    if not lies_in(path, allowed):
        return f"mount {shown(path)} is not in {_MOUNT_PATHS}"
    if (leads := real.get(path)) is None:
        return f"mount {shown(path)} is not seen by the driver, so it may be a link"
    if not lies_in(leads, allowed):
        return f"mount {shown(path)} leads to what is not in {_MOUNT_PATHS}"
    return None


def _spec_refusal(number: int, spec: DeviceSpec, limits: HandlerLimits, host: OnHost) -> str | None:
    """What the driver does not see is judged by its path alone: in /dev only root makes links."""
    field, path = f"device_specs[{number}]", spec.host_path
    look = host.nodes.get(spec.host_path, _UNKNOWN)
    if not lies_in(path, limits.device_paths):
        return f"device node {shown(path)} is not in {_DEVICE_PATHS}"
    if not lies_in(look.leads or path, limits.device_paths):
        return f"device node {shown(path)} leads to what is not in {_DEVICE_PATHS}"
    if not spec.permissions or not set(spec.permissions) <= PERMISSION_LETTERS:
        return f"{field}.permissions {shown(spec.permissions)} are not some of rwm, such as r or rw"
    if look.seen is Seen.OTHER:
        return f"{field}.host_path {shown(path)} is no device node; of a folder name each node"
    if look.seen is Seen.MISSING:
        return f"{field}.host_path {shown(path)} {MISSING}"
    return None


_UNKNOWN = Look(None, Seen.UNKNOWN)


def too_many(most_devices: int) -> str:
    """Says that a handler reports more devices than it may."""
    why = f"It reports more than {most_devices} devices (--handler-most-devices)"
    return f"{why}; what it said before stays."


def too_large(registration: Registration, largest: int) -> str:
    """Says that a handler's answer has more bytes than it may, which are not even received."""
    whose = f"Handler {shown(registration.endpoint.name)}"
    less = "it must report fewer devices, or shorter properties"
    return (
        f"{whose} answered with more than {largest / (1 << 20):.3g} MiB; what it said before"
        f" stays, and {less}."
    )


def too_many_together(share: Amount, registration: Registration) -> str:
    """Says that the handlers of a node report more than they may."""
    whose = "without privileges" if registration.unprivileged else "with privileges"
    why = f"The registered handlers of this node {whose} report more than {share.devices} devices"
    return f"{why} or {share.size} bytes together ({_NODE_MOST}); what it said before stays."

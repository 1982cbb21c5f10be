"""Names of Instances: the name of each device, and the devices that get none.

A name ends in Akri's hash of the device, which has 24 bits: among a few thousand devices two may
well have the same hash. Then the first device has the name and the other has no Instance, and the
status of the Configuration says so. A setting makes longer hashes for new devices.

    devices of a Configuration, names that are taken ──name_devices──► a name for each, collisions

A device keeps its name as long as its Instance exists, since each Instance has the digest of its
device. If nodes name devices at the same moment, the stored Instance decides, before the device is
offered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.devices import AKRIS_DIGITS, Device, device_digest, device_hash
from driver.discovery.details import shown
from kube.words import some_of

DIGITS = (AKRIS_DIGITS, 8, 12, 16)
"""The numbers of hexadecimal digits that the setting allows for a hash."""

MOST_NAMED = 5
"""Most devices that one sentence names."""

ANOTHER_NODES = ""
"""In place of a digest: the Instance belongs to another node, and this node does not watch it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that needs a name.

    Attributes:
        digest: See `device_digest`.
        hash: The ending of its name, if that name is free.
    """

    id: str
    digest: str
    hash: str


def candidate(device: Device, node: NodeName | None, digits: int = AKRIS_DIGITS) -> Candidate:
    """The candidate of a device; `node` is None for a device that several nodes see."""
    id_ = device.id
    return Candidate(id_, device_digest(id_, node), device_hash(id_, node, digits))


@dataclass(frozen=True, slots=True)
class TakenNames:
    """The known names of a Configuration's Instances.

    Attributes:
        stored: Stored Instances, and the digest of each device. The digest is None for an Instance
            of Akri or of an older driver, which has none.
        current: The names that this process gave before, by digest.
        digits: Digits of the hash in a new name.
    """

    stored: Mapping[InstanceName, str | None] = field(default_factory=dict)
    current: Mapping[str, InstanceName] = field(default_factory=dict)
    digits: int = AKRIS_DIGITS


NONE_TAKEN = TakenNames()


@dataclass(frozen=True, slots=True)
class Collision:
    """A device without an Instance, since another device has or had its name."""

    device: str
    taken: InstanceName


def name_devices(
    configuration: ConfigurationName,
    devices: Iterable[Candidate],
    taken: TakenNames = NONE_TAKEN,
) -> tuple[dict[str, str], tuple[Collision, ...]]:
    """The endings of the names of a Configuration's devices, all different, by digest.

    The order of the devices does not matter: if nothing else decides between two devices, the one
    with the smaller id gets the name.
    """
    prefix = f"{configuration}-"
    kept = {digest: name for name, digest in sorted(taken.stored.items(), reverse=True) if digest}
    wanted: dict[InstanceName, list[Candidate]] = {}
    for device in sorted(devices, key=lambda d: (d.id, d.digest)):
        name = kept.get(device.digest) or taken.current.get(device.digest)
        if name is None or not name.startswith(prefix):
            name = InstanceName(prefix + device.hash)
        wanted.setdefault(name, []).append(device)
    named: dict[str, str] = {}
    collisions: list[Collision] = []
    for name, rivals in wanted.items():
        holder = _holder(name, rivals, taken)
        if holder is not None:
            named[holder.digest] = name.removeprefix(prefix)
        collisions += (Collision(d.id, name) for d in rivals if d is not holder)
    return named, tuple(collisions)


def _holder(name: InstanceName, rivals: list[Candidate], taken: TakenNames) -> Candidate | None:
    """The device that has a name; None if none of these has it."""
    stored = taken.stored.get(name)
    if stored is not None:
        return next((device for device in rivals if device.digest == stored), None)
    before = (device for device in rivals if taken.current.get(device.digest) == name)
    return next(before, rivals[0])


def collision_sentence(collisions: Collection[Collision], digits: int = AKRIS_DIGITS) -> str:
    """A sentence for the status of the Configuration; "" if all devices have names.

    Args:
        collisions: The collisions of one Configuration.
        digits: Digits of the hash in a new name, by the setting.
    """
    if not collisions:
        return ""
    named = [f"{shown(c.device)} ({c.taken})" for c in sorted(collisions, key=_order)]
    count = "1 device is" if len(named) == 1 else f"{len(named)} devices are"
    return (
        f"{count} left out, since another device with the same {digits} digits of hash has the"
        f" name: {some_of(named, MOST_NAMED)}. {_remedy(digits)}"
    )


def _order(collision: Collision) -> tuple[str, str]:
    return collision.device, collision.taken


def _remedy(digits: int) -> str:
    longer = next((each for each in DIGITS if each > digits), None)
    if longer is None:
        return "The hash cannot be longer: their handler must give them other ids."
    return (
        f"Set --instance-hash-digits={longer} on all nodes (driver.node.instanceHashDigits:"
        f" {longer} in the chart's values): they get longer names, and all others keep theirs."
    )

"""Names of Instances: which device has which, and which device has none.

A name ends in Akri's hash of the device, 24 bits: of a few thousand devices two may well have one
hash. Then the first has the name, and the other is no Instance, which the status of the
Configuration says. Where that happens, a setting makes longer hashes for devices that come.

    devices of a Configuration, names that are taken ──name_devices──► a name for each, collisions

A device keeps its name as long as its Instance is there, whoever else comes or goes: each Instance
says of which device it is. Among nodes that name one device at the same moment, what the API server
has in the end decides; that is before the device is offered through it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.devices import AKRIS_DIGITS, Device, device_digest, device_hash
from driver.discovery.details import shown
from kube.words import some_of

DIGITS = (AKRIS_DIGITS, 8, 12, 16)
"""How many hexadecimal digits a hash may have by the setting."""

MOST_NAMED = 5
"""Devices that one sentence names."""

ANOTHER_NODES = ""
"""In place of a digest: the Instance is one that this node does not watch."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that needs a name.

    Attributes:
        digest: See `device_digest`.
        hash: What its name ends in, if that is free.
    """

    id: str
    digest: str
    hash: str


def candidate(device: Device, node: NodeName | None, digits: int = AKRIS_DIGITS) -> Candidate:
    """A device that one node sees, or with None several."""
    id_ = device.id
    return Candidate(id_, device_digest(id_, node), device_hash(id_, node, digits))


@dataclass(frozen=True, slots=True)
class TakenNames:
    """What is known of the names of a Configuration's Instances.

    Attributes:
        stored: Instances on the API server, and the digest of each one's device. None for one that
            does not say: Akri made it, or a driver before this one.
        current: What this process named devices before, by digest.
        digits: Of the hashes of devices that have no name yet.
    """

    stored: Mapping[InstanceName, str | None] = field(default_factory=dict)
    current: Mapping[str, InstanceName] = field(default_factory=dict)
    digits: int = AKRIS_DIGITS


NONE_TAKEN = TakenNames()


@dataclass(frozen=True, slots=True)
class Collision:
    """A device that is no Instance, since another device has or had the name."""

    device: str
    taken: InstanceName


def name_devices(
    configuration: ConfigurationName,
    devices: Iterable[Candidate],
    taken: TakenNames = NONE_TAKEN,
) -> tuple[dict[str, str], tuple[Collision, ...]]:
    """What the names of a Configuration's devices end in, all different, by digest.

    The order of the devices does not matter: where nothing else decides, the one whose id sorts
    first gets the name that both would have.
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
    """Who has a name; None if that is none of these."""
    stored = taken.stored.get(name)
    if stored is not None:
        return next((device for device in rivals if device.digest == stored), None)
    before = (device for device in rivals if taken.current.get(device.digest) == name)
    return next(before, rivals[0])


def collision_sentence(collisions: Collection[Collision], digits: int = AKRIS_DIGITS) -> str:
    """For the status of the Configuration; "" if all devices have names.

    Args:
        collisions: Of one Configuration.
        digits: Of the hashes of devices that have no name yet, as the setting is.
    """
    if not collisions:
        return ""
    named = [f"{shown(c.device)} ({c.taken})" for c in sorted(collisions, key=_order)]
    count = "1 device is" if len(named) == 1 else f"{len(named)} devices are"
    return (
        f"{count} left out, since another device of the same {digits} digits of hash has the name:"
        f" {some_of(named, MOST_NAMED)}. {_remedy(digits)}"
    )


def _order(collision: Collision) -> tuple[str, str]:
    return collision.device, collision.taken


def _remedy(digits: int) -> str:
    longer = next((each for each in DIGITS if each > digits), None)
    if longer is None:
        return "No longer hash can be set: their handler must give them other ids."
    return (
        f"Set --instance-hash-digits={longer} on all nodes (driver.node.instanceHashDigits:"
        f" {longer} in the chart's values): they get longer names, and all others keep theirs."
    )

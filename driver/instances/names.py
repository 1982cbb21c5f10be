"""Names of Instances: which device has which, also where the hashes of two are equal.

A name ends in Akri's hash of the device, 24 bits: of a few thousand devices two may well have one
hash. The second is then named by another hash of it, and both are used like any other.

    devices of a Configuration, names that are taken ──name_devices──► a name for each, collisions

A device keeps its name as long as its Instance is there, whoever else comes or goes: each Instance
says of which device it is. Among nodes that name one device at the same moment, what the API server
has in the end decides; that is before the device is offered through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.derived import Deriving, derived
from driver.devices import device_digest, device_hash

HashOf = Callable[[str, NodeName | None, int], str]
"""(id, node, attempt) → the digits that end a name; see `device_hash`."""

ANOTHER_NODES = ""
"""In place of a digest: the Instance is one that this node does not watch."""


@dataclass(frozen=True, slots=True)
class Candidate(Deriving):
    """A device that needs a name.

    Attributes:
        node: As for `device_hash`.
        digest: See `device_digest`.
    """

    id: str
    node: NodeName | None
    digest: str


def candidates(ids: Iterable[str], node: NodeName | None) -> list[Candidate]:
    """Devices of these ids, which one node sees, or with None several."""
    return [Candidate(id_, node, device_digest(id_, node)) for id_ in ids]


@dataclass(frozen=True, slots=True)
class TakenNames:
    """What is known of the names of a Configuration's Instances.

    Attributes:
        stored: Instances on the API server, and the digest of each one's device. None for one that
            does not say: Akri made it, or a driver before this one.
        used: Those of which a slot is used.
        current: What this process named devices before, by digest.
    """

    stored: Mapping[InstanceName, str | None] = field(default_factory=dict)
    used: Collection[InstanceName] = ()
    current: Mapping[str, InstanceName] = field(default_factory=dict)

    def may_be(self, name: InstanceName, digest: str) -> bool:
        """Whether nothing says that this is the name of another device."""
        return self.stored.get(name) in (None, digest)


NONE_TAKEN = TakenNames()


@dataclass(frozen=True, slots=True)
class Collision:
    """A device that has another name than Akri would give it.

    Attributes:
        instance: The name that it has.
        taken: The name that it would have, and another device has or had.
    """

    device: str
    instance: InstanceName
    taken: InstanceName


def name_devices(
    configuration: ConfigurationName,
    devices: Sequence[Candidate],
    taken: TakenNames = NONE_TAKEN,
    hash_of: HashOf = device_hash,
) -> tuple[dict[str, str], tuple[Collision, ...]]:
    """Hashes that end the names of a Configuration's devices, all different, by digest.

    The order of the devices does not matter: where nothing else decides, the one whose id sorts
    first gets the name that both would have.
    """
    naming = _Naming(configuration, taken, hash_of)
    for device in (waiting := sorted(devices, key=lambda d: (d.id, d.digest))):
        naming.keep(device)
    for device in waiting:
        naming.give(device)
    return naming.hashes, tuple(naming.collisions)


class _Naming:
    def __init__(
        self, configuration: ConfigurationName, taken: TakenNames, hash_of: HashOf
    ) -> None:
        self.hashes: dict[str, str] = {}
        self.collisions: list[Collision] = []
        self._prefix = f"{configuration}-"
        self._taken = taken
        self._hash_of = hash_of
        self._given: set[InstanceName] = set()
        self._stored: dict[str, list[InstanceName]] = {}
        for name, digest in taken.stored.items():
            if digest:
                self._stored.setdefault(digest, []).append(name)

    def keep(self, device: Candidate) -> None:
        """Let a device have the name that it has, if it has one."""
        name = self._kept(device)
        if name is not None and name not in self._given and name.startswith(self._prefix):
            self._note(device, name)

    def _kept(self, device: Candidate) -> InstanceName | None:
        stored = self._stored.get(device.digest, ())
        current = self._taken.current.get(device.digest)
        if current is not None and self._stays(device, current, stored):
            return current
        if len(stored) > 1:  # Two nodes named it at one moment: all now choose the same of them.
            first, used = self._name(device, 0), self._taken.used
            return min(stored, key=lambda name: (name not in used, name != first, name))
        return stored[0] if stored else None

    def _stays(
        self, device: Candidate, current: InstanceName, stored: Collection[InstanceName]
    ) -> bool:
        if current in stored:
            return len(stored) == 1 or current in self._taken.used
        return not stored and self._taken.may_be(current, device.digest)

    def give(self, device: Candidate) -> None:
        """Name a device that has no name yet: by Akri's hash, if that is free."""
        if device.digest in self.hashes:
            return
        for attempt in count():
            name = self._name(device, attempt)
            if name not in self._given and self._is_free(name, device, attempt):
                self._note(device, name)
                return

    def _is_free(self, name: InstanceName, device: Candidate, attempt: int) -> bool:
        """One that does not say whose it is was named as Akri does."""
        if attempt and name in self._taken.stored:
            return self._taken.stored[name] == device.digest
        return self._taken.may_be(name, device.digest)

    def _name(self, device: Candidate, attempt: int) -> InstanceName:
        return InstanceName(self._prefix + derived(device, _hashed, self._hash_of, attempt))

    def _note(self, device: Candidate, name: InstanceName) -> None:
        self._given.add(name)
        self.hashes[device.digest] = name.removeprefix(self._prefix)
        if name != (taken := self._name(device, 0)):
            self.collisions.append(Collision(device.id, name, taken))


def _hashed(device: Candidate, hash_of: HashOf, attempt: int) -> str:
    return hash_of(device.id, device.node, attempt)


def collision_sentence(collision: Collision) -> str:
    """For the status of the Configuration."""
    return (
        f"Device {collision.device[:60]!r} is Instance {collision.instance}, since"
        f" {collision.taken} is another device's by the same hash."
    )

"""Claims and Instances whose devices pods use, before the driver is uninstalled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from driver.api import DRIVER_NAME
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.shapes.claims import Claim
from kube.shapes.metadata import named_metadata
from kube.shapes.reading import JsonObject, read_as
from kube.words import some_of

MOST_NAMED = 20
"""How many claims, and how many Instances, are named; the others are counted."""

MOST_NAMES = 5
"""How many pods of a claim, and nodes of an Instance, are named."""

CLAIMS_HEAD = (
    "Pods use devices of Moorage through ResourceClaims. Without Moorage's driver a kubelet cannot"
    " terminate them."
)
SLOTS_HEAD = (
    "Pods use slots of Instances. They keep running without the driver and can be deleted, but a"
    " container that restarts may not find its device."
)


@dataclass
class _Named:
    """The first names, and the number of all."""

    said: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, said: str) -> None:
        self.count += 1
        if self.count <= MOST_NAMED:
            self.said.append(said)

    def lines(self, head: str, kind: str) -> Iterator[str]:
        if not self.count:
            return
        yield head
        yield from (f"  {said}" for said in self.said)
        if more := self.count - len(self.said):
            yield f"  and {more} more {kind}{'s' * (more > 1)}"


class DeviceUsers:
    """Claims that pods may use, and Instances with slots in use; one line of each is kept."""

    def __init__(self) -> None:
        self._claims, self._instances = _Named(), _Named()

    def __bool__(self) -> bool:
        return bool(self._claims.count or self._instances.count)

    def add_claim(self, body: JsonObject) -> None:
        """Note a ResourceClaim if pods may use a device of Moorage through it."""
        claim = read_as(Claim, body)
        users = list(_consumers(claim))
        if users and any(result.driver == DRIVER_NAME for result in claim.results):
            self._claims.add(f"ResourceClaim {_namespaced(body)}: {' and '.join(users)}")

    def add_instance(self, body: JsonObject) -> None:
        """Note an Instance if slots are used; only the node knows the device plugin's pods."""
        usage = (read_as(InstanceObject, body).spec or NO_INSTANCE_SPEC).device_usage or {}
        holders = [str(value).rpartition(":")[2] for value in usage.values() if value]
        if holders:
            nodes = _counted("node", sorted(set(holders)))
            slots = f"{len(holders)} slot{'s' * (len(holders) > 1)}"
            self._instances.add(f"Instance {_namespaced(body)}: {slots}, of {nodes}")

    def lines(self) -> tuple[str, ...]:
        """The lines to print; () if no pod uses a device."""
        claims = self._claims.lines(CLAIMS_HEAD, "ResourceClaim")
        return (*claims, *self._instances.lines(SLOTS_HEAD, "Instance"))


def _consumers(claim: Claim) -> Iterator[str]:
    """The pods that a claim is reserved for, then the PodGroups, whose pods it does not name."""
    groups = [each.name or "" for each in claim.consumers if each.is_pod_group]
    pods = [each.name or "" for each in claim.consumers if not each.is_pod_group]
    if pods:
        yield _counted("Pod", pods)
    if groups:
        yield _counted("PodGroup", groups)


def _namespaced(body: JsonObject) -> str:
    metadata = named_metadata(body)
    return f"{metadata.namespace}/{metadata.name}"


def _counted(kind: str, names: Sequence[str]) -> str:
    return f"{kind}{'s' * (len(names) > 1)} {some_of(names, MOST_NAMES)}"

"""Claims and Instances whose devices pods use, and brokers, before the driver is uninstalled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from driver.api import BROKER_CONFIGURATION, DRIVER_NAME
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.shapes.claims import Claim
from kube.shapes.metadata import Condition, NamedMetadata, named_metadata
from kube.shapes.reading import JsonObject, read_as
from kube.words import number_of, some_of

MOST_NAMED = 20
"""How many claims, Instances and Configurations are named; the others are counted."""

MOST_NAMES = 5
"""How many pods of a claim, nodes of an Instance and brokers of a Configuration are named."""

CLAIMS_HEAD = (
    "Pods use devices of Moorage through ResourceClaims. Without Moorage's driver a kubelet cannot"
    " terminate them."
)
SLOTS_HEAD = (
    "Pods use slots of Instances. They keep running without the driver and can be deleted, but a"
    " container that restarts may not find its device."
)
BROKERS_HEAD = (
    "Brokers run for devices of Configurations. Without Moorage's driver they stay when their"
    " device goes. To end them, delete the Configuration, or remove its brokerSpec."
)


class _BrokerStatus(msgspec.Struct, frozen=True):
    """Of `status` of a Pod or a Job."""

    phase: str | None = None
    conditions: list[Condition] | None = None


class _Broker(msgspec.Struct, frozen=True):
    """A Pod or a Job that is made for a Configuration."""

    metadata: NamedMetadata
    status: _BrokerStatus | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or is terminating."""
        status = self.status or _BrokerStatus()
        ends = (each.type for each in status.conditions or () if each.status == "True")
        ended = status.phase in ("Succeeded", "Failed") or {"Complete", "Failed"} & set(ends)
        return bool(ended) or self.metadata.deletion_timestamp is not None


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
    """Claims that pods may use, Instances with slots in use, and Configurations with brokers."""

    def __init__(self) -> None:
        self._claims, self._instances = _Named(), _Named()
        self._brokers: dict[str, list[tuple[str, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._claims.count or self._instances.count or self._brokers)

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

    def add_broker(self, kind: str, body: JsonObject) -> None:
        """Note a Pod or a Job that is made for a Configuration, unless it is over."""
        broker = read_as(_Broker, body)
        configuration = (broker.metadata.labels or {}).get(BROKER_CONFIGURATION)
        if configuration and not broker.is_over:
            key = f"{broker.metadata.namespace}/{configuration}"
            self._brokers.setdefault(key, []).append((kind, broker.metadata.name))

    def lines(self) -> tuple[str, ...]:
        """The lines to print; () if no pod uses a device and no broker runs."""
        claims = self._claims.lines(CLAIMS_HEAD, "ResourceClaim")
        instances = self._instances.lines(SLOTS_HEAD, "Instance")
        brokers = _brokers(self._brokers).lines(BROKERS_HEAD, "Configuration")
        return (*claims, *instances, *brokers)


def _brokers(found: Mapping[str, Sequence[tuple[str, str]]]) -> _Named:
    """A line for each Configuration: its brokers, Pods first."""
    lines = _Named()
    for configuration, brokers in sorted(found.items()):
        kinds = sorted({kind for kind, _ in brokers}, reverse=True)
        named = (_counted(kind, [name for one, name in brokers if one == kind]) for kind in kinds)
        count = number_of(len(brokers), "broker")
        lines.add(f"Configuration {configuration}: {count}, {' and '.join(named)}")
    return lines


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

"""Instances: devices under the name of the Configuration that found them.

An Instance is one device of one Configuration. Its name and hash are Akri's, so that objects,
resource names and environment of an Akri cluster stay the same.

    devices, Configuration ──instances_of──► Instance

`local` decides what is written of Instances that only one node sees, `shared` of all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from driver.api import (
    AKRI_GROUP,
    Configuration,
    ConfigurationName,
    InstanceName,
    NodeName,
)
from driver.derived import Deriving, derived
from driver.device_health import Degraded, degraded
from driver.devices import (
    NUMA_NODE,
    Device,
    DeviceSpec,
    Mount,
    device_digest,
    device_hash,
)
from driver.environment_rules import BUILT_IN, EnvironmentRules
from driver.instances.names import (
    NONE_TAKEN,
    Collision,
    TakenNames,
    candidate,
    name_devices,
)

_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance(Deriving):
    """A device as its Configuration offers it.

    Attributes:
        hash: Akri's `device_hash`, usually six hexadecimal digits.
        properties: Properties of the device, overridden by the Configuration's `brokerProperties`.
        capacity: Number of slots, that is, of concurrent uses.
        shared: Whether several nodes may see the device.
        online: Whether the handler reports it now. An offline Instance is kept while it is in use.
        user_attributes: Attributes from its Configuration, by which claims can select it.
        device_attributes: Attributes from its handler beside the properties, important ones first.
        device: The digest that identifies the device; "" if it is not known.
        nodes: Keys that identify its device nodes on the host, see `rivals`.
        guards: Paths of the host that exist only as long as this device does.
        unprivileged: Names of properties that an unprivileged handler reports.
        rules: Which properties become environment of containers, see `unusable_properties`.
    """

    name: InstanceName
    hash: str
    configuration: ConfigurationName
    namespace: str
    properties: Mapping[str, str]
    mounts: tuple[Mount, ...]
    device_specs: tuple[DeviceSpec, ...]
    capacity: int
    unique_devices: bool
    shared: bool = False
    online: bool = True
    user_attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    device_attributes: Mapping[str, str] = field(default_factory=dict)
    device: str = ""
    nodes: frozenset[str] = frozenset()
    guards: tuple[str, ...] = ()
    unprivileged: frozenset[str] = frozenset()
    rules: EnvironmentRules = BUILT_IN

    @property
    def degraded(self) -> Degraded | None:
        """The degraded state that its handler reports; None if it is well or offline."""
        return degraded(self.properties) if self.online else None

    @property
    def numa_node(self) -> int | None:
        """The NUMA node that it is nearest to; None if its handler reports none."""
        reported = self.device_attributes.get(NUMA_NODE) or self.properties.get(NUMA_NODE, "")
        return int(reported) if _NUMBER.fullmatch(reported) else None

    @property
    def cdi_name(self) -> str:
        """Akri's `cdiName`: `akri.sh/<configuration>=<hash>`."""
        return f"{AKRI_GROUP}/{self.configuration}={self.hash}"


def instance_of(
    device: Device, configuration: Configuration, node: NodeName | None, ending: str | None = None
) -> Instance:
    """The Instance of a device.

    Args:
        device: The device.
        configuration: The Configuration that found it.
        node: The node that sees it; None if several nodes can see it.
        ending: The ending of its name; None for Akri's hash.
    """
    ending = ending or device_hash(device.id, node)
    return Instance(
        name=InstanceName(f"{configuration.name}-{ending}"),
        hash=ending,
        configuration=configuration.name,
        namespace=configuration.namespace,
        properties={**device.properties, **configuration.broker_properties},
        mounts=device.mounts,
        device_specs=device.device_specs,
        capacity=configuration.capacity,
        unique_devices=configuration.unique_devices,
        shared=node is None,
        user_attributes=configuration.attributes,
        device_attributes=device.attributes,
        device=device_digest(device.id, node),
        nodes=frozenset(device.nodes),
        guards=device.guards,
        unprivileged=_unprivileged(device, configuration),
    )


def _unprivileged(device: Device, configuration: Configuration) -> frozenset[str]:
    """Names of properties that only an unprivileged handler reports."""
    names = device.properties if device.unprivileged else ()
    return frozenset(name for name in names if name not in configuration.broker_properties)


def by_rules(instance: Instance, rules: EnvironmentRules) -> Instance:
    """The Instance with these rules for its environment."""
    return replace(instance, rules=rules)


def instances_of(
    local: Iterable[Device],
    shared: Iterable[Device],
    configuration: Configuration,
    node: NodeName,
    taken: TakenNames = NONE_TAKEN,
) -> tuple[tuple[Instance, ...], tuple[Collision, ...]]:
    """All Instances of a Configuration, and the devices that have none since a name is taken.

    Instances of one node come first, then shared ones, each sorted by name, whatever the order of
    the devices.

    Args:
        local: Devices that only `node` can see.
        shared: Devices that other nodes may see, too. No id comes twice in both together.
        configuration: The Configuration that found them.
        node: The node.
        taken: Names that are taken.
    """
    found = (*((device, node) for device in local), *((device, None) for device in shared))
    named = [derived(device, candidate, at, taken.digits) for device, at in found]
    endings, collisions = name_devices(configuration.name, named, taken)
    instances = (
        derived(device, instance_of, configuration, at, endings[one.digest])
        for (device, at), one in zip(found, named, strict=True)
        if one.digest in endings
    )
    return tuple(sorted(instances, key=lambda i: (i.shared, i.name))), collisions

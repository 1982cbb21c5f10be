"""Instances: devices under the name of the Configuration that found them.

An Instance is one device of one Configuration. Its name and hash are Akri's, so that objects,
resource names and environment of an Akri cluster stay what they were.

    devices, Configuration ──instances_of──► Instance

What is written of those that only one node sees is decided in `local`, and of the others
in `shared`.
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
from driver.environment import BUILT_IN, EnvironmentRules
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
        hash: Akri's `device_hash` as a rule, six hexadecimal digits.
        properties: The device's, with the Configuration's `brokerProperties` laid over them.
        capacity: Slots, uses at one time.
        shared: Whether several nodes may see the device.
        online: Whether the handler reports it now; an offline one is kept while it is in use.
        user_attributes: What its Configuration lets claims select it by, see `Configuration`.
        device_attributes: What its handler does beside the properties, the important ones first.
        device: The digest that tells which device it is; "" where that is not known.
        nodes: What tells its device nodes from all others of the host, see `rivals`.
        guards: Paths of the host that are there only as long as this very device is.
        unprivileged: Names of properties that a handler without privileges reports.
        rules: By which properties become environment of containers, see `unusable_properties`.
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
        """What its handler says of it while it is there and not well."""
        return degraded(self.properties) if self.online else None

    @property
    def numa_node(self) -> int | None:
        """The NUMA node that it is nearest to; None if its handler tells of none."""
        told = self.device_attributes.get(NUMA_NODE) or self.properties.get(NUMA_NODE, "")
        return int(told) if _NUMBER.fullmatch(told) else None

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
        configuration: What found it.
        node: None for a device that several nodes can see.
        ending: Of its name; None for Akri's hash.
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
    """Names of properties that nobody but a handler without privileges says."""
    names = device.properties if device.unprivileged else ()
    return frozenset(name for name in names if name not in configuration.broker_properties)


def by_rules(instance: Instance, rules: EnvironmentRules) -> Instance:
    """An Instance whose properties become environment by these rules."""
    return replace(instance, rules=rules)


def instances_of(
    local: Iterable[Device],
    shared: Iterable[Device],
    configuration: Configuration,
    node: NodeName,
    taken: TakenNames = NONE_TAKEN,
) -> tuple[tuple[Instance, ...], tuple[Collision, ...]]:
    """All Instances of a Configuration, and the devices that are none, as others have their names.

    Instances of one node come first, then those of several, each by name; the same for any order
    of the devices.

    Args:
        local: Devices that only `node` can see.
        shared: Devices that other nodes may see, too; no id twice among all.
        configuration: What found them.
        node: The node.
        taken: Names that are not to be given again.
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

"""Instances: devices under the name of the Configuration that found them.

An Instance is one device of one Configuration. Its name and hash are Akri's, so that objects,
resource names and environment of an Akri cluster stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driver.api import AKRI_GROUP, Configuration, ConfigurationName, InstanceName, NodeName
from driver.devices import Device, DeviceSpec, Mount, device_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A device as its Configuration offers it.

    Attributes:
        hash: Six hexadecimal digits, Akri's `device_hash`.
        properties: The device's, with the Configuration's `brokerProperties` laid over them.
        capacity: Slots, uses at one time.
        shared: Whether several nodes may see the device.
        online: Whether the handler reports it now; an offline one is kept while it is in use.
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

    @property
    def cdi_name(self) -> str:
        """Akri's `cdiName`: `akri.sh/<configuration>=<hash>`."""
        return f"{AKRI_GROUP}/{self.configuration}={self.hash}"


def instance_of(device: Device, configuration: Configuration, node: NodeName | None) -> Instance:
    """The Instance of a device; `node` is None for a device that several nodes can see."""
    digest = device_hash(device.id, node)
    return Instance(
        name=InstanceName(f"{configuration.name}-{digest}"),
        hash=digest,
        configuration=configuration.name,
        namespace=configuration.namespace,
        properties={**device.properties, **configuration.broker_properties},
        mounts=device.mounts,
        device_specs=device.device_specs,
        capacity=configuration.capacity,
        unique_devices=configuration.unique_devices,
        shared=node is None,
    )

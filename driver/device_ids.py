"""What the kubelet calls devices and resources on the device-plugin path.

    resource                          device id
    akri.sh/<instance>                <instance>-<slot>
    akri.sh/<configuration>           <instance>           one use of an Instance per node
                                      <instance>-<slot>    any slot (`uniqueDevices: false`)

Ids and keys of `deviceUsage` never carry `akri.sh/`. A slot has at most four digits and the hash
that ends an Instance's name six or more, so an id is never both an Instance and a slot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from driver.api import (
    AKRI_GROUP,
    MAX_CAPACITY,
    Configuration,
    ConfigurationName,
    InstanceName,
    Problem,
)

RESOURCE_PREFIX = f"{AKRI_GROUP}/"

LONGEST = 63
"""Characters of a device id (kubelet's device-plugin API) and of a resource's name after the `/`.

Source: `Device.ID` of v1beta1; qualified names of the Kubernetes API.
"""

_HASH = "-a1b2c3"
_INDEX = re.compile(r"0|[1-9][0-9]{0,3}")
_OWN_ENDING = re.compile(r"[0-9a-f]{6,16}(-(0|[1-9][0-9]{0,3}))?")
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class DeviceKey:
    """A device as the kubelet knows it: of which resource, and by which id."""

    resource: str
    id: str

    def __str__(self) -> str:
        return f"{self.resource} {self.id}"


def instance_resource(instance: InstanceName) -> str:
    """The extended resource of one device."""
    return f"{RESOURCE_PREFIX}{instance}"


def configuration_resource(configuration: ConfigurationName) -> str:
    """The extended resource of all devices of a Configuration."""
    return f"{RESOURCE_PREFIX}{configuration}"


def slot_id(instance: InstanceName, index: int) -> str:
    """Name of a slot: its key in `deviceUsage`, and its device id."""
    return f"{instance}-{index}"


def parse_slot_id(text: str) -> tuple[InstanceName, int] | None:
    """The Instance and the index of a slot's name; None if it is not one.

    Only the form that `slot_id` writes is taken, so that no two keys mean one slot.
    """
    instance, dash, index = text.rpartition("-")
    if not instance or not dash or not _INDEX.fullmatch(index) or int(index) >= MAX_CAPACITY:
        return None
    return InstanceName(instance), int(index)


def is_own_device(device: str, configuration: ConfigurationName) -> bool:
    """Whether a Configuration's device id is of our making; Akri's are "0" and "<name>-0"."""
    prefix, _, rest = device.partition(f"{configuration}-")
    return not prefix and bool(_OWN_ENDING.fullmatch(rest))


def contested_instances(
    configurations: Iterable[ConfigurationName], instances: Iterable[InstanceName]
) -> frozenset[InstanceName]:
    """Instances whose own resource would have the name of some Configuration's.

    The kubelet lets the plugin that registers last replace the other. So the Configuration has the
    name, and such an Instance is offered through its own Configuration only.
    """
    taken = {str(name) for name in configurations}
    return frozenset(name for name in instances if name in taken)


def name_problems(configuration: Configuration) -> Iterable[Problem]:
    """What keeps a Configuration's devices from being offered through the device plugin."""
    name = configuration.name
    if not _RESOURCE_NAME.fullmatch(name):
        yield Problem("metadata.name", f"{configuration_resource(name)} is no name of a resource.")
    longest = slot_id(InstanceName(f"{name}{_HASH}"), configuration.capacity - 1)
    if len(longest) > LONGEST:
        yield Problem(
            "metadata.name",
            f"{len(name)} characters make device ids of {len(longest)} at capacity"
            f" {configuration.capacity}; the kubelet takes {LONGEST}, so that"
            f" {len(name) + LONGEST - len(longest)} may be used.",
        )

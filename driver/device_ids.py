"""Names of resources and ids of devices on the device-plugin path.

    resource                          device id
    akri.sh/<instance>                <instance>-<slot>
    akri.sh/<configuration>           <instance>           one use of an Instance per node
                                      <instance>-<slot>    any slot (`uniqueDevices: false`)

Ids and keys of `deviceUsage` have no prefix `akri.sh/`. The index of a slot has at most four
digits, and the hash that ends an Instance's name has six or more, so an id is unambiguous.
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
"""Most characters of a device id, and of a resource's name after the `/`.

Sources: `Device.ID` of the kubelet's API v1beta1; qualified names of the Kubernetes API.
"""

_HASH = "-a1b2c3"
_INDEX = re.compile(r"0|[1-9][0-9]{0,3}")
_OWN_ENDING = re.compile(r"[0-9a-f]{6,16}(-(0|[1-9][0-9]{0,3}))?")
_RESOURCE_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class DeviceKey:
    """A device of the kubelet: its resource, and its id."""

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
    """The Instance and the index in a slot's name; None if it is no name of a slot.

    Only the form of `slot_id` is accepted, so that no two keys mean the same slot.
    """
    instance, dash, index = text.rpartition("-")
    if not instance or not dash or not _INDEX.fullmatch(index) or int(index) >= MAX_CAPACITY:
        return None
    return InstanceName(instance), int(index)


def is_own_device(device: str, configuration: ConfigurationName) -> bool:
    """Whether Moorage made a Configuration's device id; Akri's are "0" and "<name>-0"."""
    prefix, _, rest = device.partition(f"{configuration}-")
    return not prefix and bool(_OWN_ENDING.fullmatch(rest))


def contested_instances(
    configurations: Iterable[ConfigurationName], instances: Iterable[InstanceName]
) -> frozenset[InstanceName]:
    """Instances whose own resource has the name of a Configuration's resource.

    In the kubelet the plugin that registers last replaces the other. So the Configuration gets the
    name, and such an Instance is offered through its own Configuration only.
    """
    taken = {str(name) for name in configurations}
    return frozenset(name for name in instances if name in taken)


def name_problems(configuration: Configuration) -> Iterable[Problem]:
    """The problems of a name that keep devices from being offered through the device plugin."""
    name = configuration.name
    if not _RESOURCE_NAME.fullmatch(name):
        resource = configuration_resource(name)
        yield Problem("metadata.name", f"{resource} is not a valid name of a resource.")
    longest = slot_id(InstanceName(f"{name}{_HASH}"), configuration.capacity - 1)
    if len(longest) > LONGEST:
        yield Problem(
            "metadata.name",
            f"The name has {len(name)} characters, so device ids have {len(longest)} at capacity"
            f" {configuration.capacity}. The kubelet accepts {LONGEST}: shorten the name to"
            f" {len(name) + LONGEST - len(longest)} characters.",
        )

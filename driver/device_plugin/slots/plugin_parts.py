"""Parts of the lists of device plugins: what one Instance adds.

It depends on the Instance and on a few facts about it, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from driver.api import Configuration, InstanceName, NodeName
from driver.device_ids import instance_resource, name_problems
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance
from driver.device_plugin.slots.plugin_devices import (
    PluginDevice,
    configuration_devices,
    instance_devices,
)
from driver.instances.slots.slots import InstanceSlots, held_devices, slot_devices


class Kind(NamedTuple):
    """What is known of a Configuration, by its name.

    Attributes:
        whole: Whether a device that is not reported is known to be offline.
    """

    heard: bool
    whole: bool
    unique: bool
    bad_name: bool


class Facts(NamedTuple):
    """What discovery says of an Instance, and of names."""

    online: bool
    contested: bool
    kind: Kind


@dataclass(frozen=True, slots=True)
class Part:
    """What one Instance adds to the lists.

    Attributes:
        slots: Of what it was made, as are `facts`; parts that add the same are the same.
        own: Its own plugin's list; None if it has none.
        shared: Its part of its Configuration's list; None if it needs no such plugin.
    """

    slots: InstanceSlots = field(compare=False)
    facts: Facts = field(compare=False)
    plugins: tuple[OfInstance, OfConfiguration]
    own: tuple[PluginDevice, ...] | None = None
    shared: tuple[PluginDevice, ...] | None = None


def kind_of(configuration: Configuration | None, *, whole: bool) -> Kind:
    """What is known of a Configuration; None for one that is not heard of."""
    return Kind(
        heard=configuration is not None,
        whole=whole,
        unique=configuration is None or configuration.unique_devices,
        bad_name=configuration is not None and any(name_problems(configuration)),
    )


def part_of(slots: InstanceSlots, node: NodeName, facts: Facts) -> Part:
    """What an Instance adds to a node's lists."""
    plugins = OfInstance(slots.name), OfConfiguration(slots.configuration, facts.kind.unique)
    if facts.kind.bad_name or not (slots.is_offered_on(node) or slots.held_by(node)):
        return Part(slots, facts, plugins)
    own = None if facts.contested else _of_instance(slots, node, facts)
    return Part(slots, facts, plugins, own, _of_configuration(slots, node, facts))


def _is_heard(slots: InstanceSlots, facts: Facts) -> bool:
    if slots.deleted or not facts.kind.heard:
        return False
    # Of one that is heard of in part, a device that is not reported may yet be.
    return facts.online or facts.kind.whole


def _of_instance(slots: InstanceSlots, node: NodeName, facts: Facts) -> tuple[PluginDevice, ...]:
    devices = instance_devices(slots, node, _online(slots, facts))
    if _is_heard(slots, facts):
        return devices
    resource = instance_resource(slots.name)
    keys = slot_devices(slots, node).values()
    held = {key.id for key in keys if key and key.resource == resource}
    return tuple(PluginDevice(device.id, device.id in held) for device in devices)


def _of_configuration(
    slots: InstanceSlots, node: NodeName, facts: Facts
) -> tuple[PluginDevice, ...]:
    if _is_heard(slots, facts):
        online = _online(slots, facts)
        return configuration_devices([slots], node, online, unique_devices=facts.kind.unique)
    return tuple(PluginDevice(device, True) for device in sorted(held_devices(slots, node)))


def _online(slots: InstanceSlots, facts: Facts) -> Collection[InstanceName]:
    return (slots.name,) if facts.online else ()

"""The lists of all device plugins of a node: which plugins there are, and what each lists.

    Instances, Configurations that are heard of, devices that are online ──► list by plugin

A Configuration that is not heard of (its handler has not answered yet, an edit broke it, it is
being deleted) offers nothing new, and takes nothing away: what this node holds stays listed, and
Healthy, since nobody knows better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from driver.api import Configuration, ConfigurationName, InstanceName, NodeName
from driver.device_ids import contested_instances, instance_resource, name_problems
from driver.inventory import Inventory
from driver.plugin_devices import PluginDevice, configuration_devices, instance_devices
from driver.slot_allocation import OfConfiguration, OfInstance, Plugin
from driver.slots import InstanceSlots, held_devices, slot_devices


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a node's discovery offers at one moment.

    Attributes:
        configurations: Those whose handler has answered.
        online: Instances whose devices are reported now.
        names: Of all Configurations that hold their name, heard of or not.
        unheard: Those of which not all devices are known.
    """

    configurations: Mapping[ConfigurationName, Configuration]
    online: Collection[InstanceName]
    names: Collection[ConfigurationName]
    unheard: Collection[ConfigurationName] = ()


def offered_by(inventory: Inventory) -> Offered:
    """What an inventory offers through device plugins."""
    return Offered(
        configurations=inventory.configurations,
        online=frozenset(
            instance.name
            for instance in inventory.instances
            if instance.online
        ),
        names=inventory.configurations.keys() | inventory.unheard,
        unheard=inventory.unheard,
    )


PluginLists = Mapping[Plugin, tuple[PluginDevice, ...]]


def plugin_lists(
    instances: Iterable[InstanceSlots], node: NodeName, offered: Offered
) -> PluginLists:
    """All plugins of a node, each with its whole list."""
    here = [s for s in instances if s.is_offered_on(node) or s.held_by(node)]
    here = [s for s in here if not _has_bad_name(s.configuration, offered)]
    contested = contested_instances(offered.names, (slots.name for slots in here))
    lists: dict[Plugin, tuple[PluginDevice, ...]] = {
        OfInstance(slots.name): _of_instance(slots, node, offered)
        for slots in here
        if slots.name not in contested
    }
    for slots in here:
        plugin = OfConfiguration(slots.configuration, _is_unique(slots.configuration, offered))
        listed = (*lists.get(plugin, ()), *_of_configuration(slots, node, offered))
        lists[plugin] = tuple(sorted(listed))
    return lists


def _has_bad_name(name: ConfigurationName, offered: Offered) -> bool:
    configuration = offered.configurations.get(name)
    return configuration is not None and any(name_problems(configuration))


def _is_unique(name: ConfigurationName, offered: Offered) -> bool:
    configuration = offered.configurations.get(name)
    return configuration is None or configuration.unique_devices


def _is_heard(slots: InstanceSlots, offered: Offered) -> bool:
    if slots.deleted or slots.configuration not in offered.configurations:
        return False
    # Of one that is heard of in part, a device that is not reported may yet be.
    return slots.name in offered.online or slots.configuration not in offered.unheard


def _of_instance(
    slots: InstanceSlots, node: NodeName, offered: Offered
) -> tuple[PluginDevice, ...]:
    devices = instance_devices(slots, node, offered.online)
    if _is_heard(slots, offered):
        return devices
    resource = instance_resource(slots.name)
    keys = slot_devices(slots, node).values()
    held = {key.id for key in keys if key and key.resource == resource}
    return tuple(PluginDevice(device.id, device.id in held) for device in devices)


def _of_configuration(
    slots: InstanceSlots, node: NodeName, offered: Offered
) -> tuple[PluginDevice, ...]:
    if _is_heard(slots, offered):
        unique = _is_unique(slots.configuration, offered)
        return configuration_devices([slots], node, offered.online, unique_devices=unique)
    return tuple(PluginDevice(device, True) for device in sorted(held_devices(slots, node)))

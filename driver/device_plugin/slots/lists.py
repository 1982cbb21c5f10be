"""The lists of all device plugins of a node.

    Instances, answered Configurations, online devices ──► list by plugin

    an Instance's slot is Healthy        ⇔ it is free, or held by this node through the Instance
    a Configuration's <instance>         ⇔ held by this node under this id, or a slot is free
    a Configuration's <instance>-<slot>  ⇔ it is free, or held by this node under this id

A held device is Healthy for its holder, since the kubelet starts no further container of a pod with
an unhealthy device. An id that this node holds stays listed, even if the Configuration now makes
other ids or fewer slots. A Configuration that is not heard of (its handler has not answered yet, an
edit made it invalid, it is terminating) offers nothing new and removes nothing: held devices stay
listed as Healthy, since their state is not known.

The plugin of an Instance ends when the Instance is gone. The plugin of a Configuration stays while
the Configuration has Instances on this node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from driver.api import Configuration, ConfigurationName, InstanceName, NodeName
from driver.device_ids import (
    LONGEST,
    contested_instances,
    instance_resource,
    name_problems,
    slot_id,
)
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance, Plugin
from driver.instances.inventory import Inventory
from driver.instances.slots.slots import InstanceSlots, held_devices, slot_devices
from driver.instances.stored.device_usage import ByInstance


@dataclass(frozen=True, slots=True, order=True)
class PluginDevice:
    """One device of a list for the kubelet.

    Attributes:
        numa_node: NUMA node of the device, for the kubelet's topology manager.
    """

    id: str
    healthy: bool
    numa_node: int | None = None


def healthy_devices(devices: Iterable[PluginDevice]) -> int:
    """Number of healthy devices, allocated ones included, as the kubelet counts them."""
    return sum(device.healthy for device in devices)


def instance_devices(
    slots: InstanceSlots, node: NodeName, *, online: bool
) -> tuple[PluginDevice, ...]:
    """The list of an Instance's resource.

    Args:
        slots: The Instance.
        node: The node of the kubelet.
        online: Whether this node's discovery handlers report the device now.
    """
    present = online and slots.is_offered_on(node)
    mine = set(slots.held_as(ByInstance(node)))
    usable = mine.union(slots.available)
    indexes = sorted(mine.union(range(slots.capacity)))
    return tuple(PluginDevice(slot_id(slots.name, i), present and i in usable) for i in indexes)


def configuration_devices(
    slots: InstanceSlots, node: NodeName, *, online: bool, unique_devices: bool
) -> tuple[PluginDevice, ...]:
    """An Instance's part of the list of its Configuration's resource; empty if not seen here.

    Args:
        slots: The Instance.
        node: The node of the kubelet.
        online: Whether this node's discovery handlers report the device now.
        unique_devices: Whether an Instance is one device, rather than one for each slot.
    """
    held = held_devices(slots, node)
    usable: dict[str, bool] = {}
    if slots.is_offered_on(node) and unique_devices:
        usable = {slots.name: bool(slots.available) and not held}
    elif slots.is_offered_on(node):
        available = set(slots.available)
        usable = {slot_id(slots.name, i): i in available for i in range(slots.capacity)}
    present = online and slots.is_offered_on(node)
    found = usable | dict.fromkeys(held, True)
    return tuple(PluginDevice(name, present and healthy) for name, healthy in sorted(found.items()))


class Kind(NamedTuple):
    """Facts about a Configuration.

    Attributes:
        heard: Whether it is answered.
        whole: Whether a device that is not reported is known to be offline.
        unique: Whether `uniqueDevices` is true.
        bad_name: Whether its name keeps its devices from being offered.
    """

    heard: bool
    whole: bool
    unique: bool
    bad_name: bool


class Facts(NamedTuple):
    """Facts about an Instance, from discovery and from names."""

    online: bool
    contested: bool
    kind: Kind
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one Instance adds to the lists.

    Attributes:
        slots: What the part was made of, like `facts`; both are ignored in comparisons.
        own: The list of its own plugin; None if it has no plugin.
        shared: Its part of its Configuration's list; None if it needs no such plugin.
    """

    slots: InstanceSlots = field(compare=False)
    facts: Facts = field(compare=False)
    plugins: tuple[OfInstance, OfConfiguration]
    own: tuple[PluginDevice, ...] | None = None
    shared: tuple[PluginDevice, ...] | None = None


def part_of(slots: InstanceSlots, node: NodeName, facts: Facts) -> Part:
    """What an Instance adds to a node's lists."""
    plugins = OfInstance(slots.name), OfConfiguration(slots.configuration, facts.kind.unique)
    is_long = len(slot_id(slots.name, slots.capacity)) > LONGEST
    if is_long or facts.kind.bad_name or not (slots.is_offered_on(node) or slots.held_by(node)):
        return Part(slots, facts, plugins)
    own = None if facts.contested else _placed(_of_instance(slots, node, facts), facts)
    return Part(slots, facts, plugins, own, _placed(_of_configuration(slots, node, facts), facts))


def _placed(devices: tuple[PluginDevice, ...], facts: Facts) -> tuple[PluginDevice, ...]:
    if facts.numa_node is None:
        return devices
    return tuple(replace(device, numa_node=facts.numa_node) for device in devices)


def _is_heard(slots: InstanceSlots, facts: Facts) -> bool:
    if slots.deleted or not facts.kind.heard:
        return False
    # If not all sources have answered, a device that is not reported may still be there.
    return facts.online or facts.kind.whole


def _of_instance(slots: InstanceSlots, node: NodeName, facts: Facts) -> tuple[PluginDevice, ...]:
    devices = instance_devices(slots, node, online=facts.online)
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
        unique = facts.kind.unique
        return configuration_devices(slots, node, online=facts.online, unique_devices=unique)
    return tuple(PluginDevice(device, True) for device in sorted(held_devices(slots, node)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a node's discovery offers at one moment.

    Attributes:
        configurations: Configurations whose handler has answered.
        online: Instances whose devices are reported now and not degraded.
        names: Names of all Configurations that hold their name, answered or not.
        unheard: Configurations whose devices are not all known.
        numa_nodes: NUMA nodes of the Instances that have one.
    """

    configurations: Mapping[ConfigurationName, Configuration]
    online: Collection[InstanceName]
    names: Collection[ConfigurationName]
    unheard: Collection[ConfigurationName] = ()
    numa_nodes: Mapping[InstanceName, int] = field(default_factory=dict)


def offered_by(inventory: Inventory) -> Offered:
    """What an inventory offers through device plugins."""
    return Offered(
        configurations=inventory.configurations,
        online=frozenset(i.name for i in inventory.instances if i.online and not i.degraded),
        names=inventory.configurations.keys() | inventory.unheard,
        unheard=inventory.unheard,
        numa_nodes={i.name: n for i in inventory.instances if (n := i.numa_node) is not None},
    )


PluginLists = Mapping[Plugin, tuple[PluginDevice, ...]]


class PluginListing:
    """The lists of all plugins of a node, recomputed only for Instances that changed.

    A node may have a thousand Instances, and an Allocate changes one of them.
    """

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._parts: dict[InstanceName, Part] = {}
        self._lists: PluginLists = {}

    def lists(self, instances: Iterable[InstanceSlots], offered: Offered) -> PluginLists:
        """Each plugin with its whole list; the same object as the last time if nothing changed.

        Args:
            instances: The known Instances, with different names.
            offered: What discovery offers.
        """
        known = tuple(instances)
        contested = contested_instances(offered.names, (slots.name for slots in known))
        kinds = {name: _kind(name, offered) for name in {slots.configuration for slots in known}}
        parts: dict[InstanceName, Part] = {}
        for slots in known:
            name = slots.name
            facts = Facts(
                name in offered.online,
                name in contested,
                kinds[slots.configuration],
                offered.numa_nodes.get(name),
            )
            parts[name] = self._part(slots, facts)
        before, self._parts = self._parts, parts
        if parts != before:
            self._lists = _joined(parts.values())
        return self._lists

    def _part(self, slots: InstanceSlots, facts: Facts) -> Part:
        before = self._parts.get(slots.name)
        if before is not None and before.slots is slots and before.facts == facts:
            return before
        return part_of(slots, self._node, facts)


def _kind(name: ConfigurationName, offered: Offered) -> Kind:
    configuration = offered.configurations.get(name)
    return Kind(
        heard=configuration is not None,
        whole=name not in offered.unheard,
        unique=configuration is None or configuration.unique_devices,
        bad_name=configuration is not None and any(name_problems(configuration)),
    )


def _joined(parts: Iterable[Part]) -> PluginLists:
    own: dict[Plugin, tuple[PluginDevice, ...]] = {}
    shared: dict[Plugin, list[PluginDevice]] = {}
    for part in parts:
        of_instance, of_configuration = part.plugins
        if part.own is not None:
            own[of_instance] = part.own
        if part.shared is not None:
            shared.setdefault(of_configuration, []).extend(part.shared)
    order = attrgetter("id", "healthy")
    return {**own, **{plugin: tuple(sorted(all_, key=order)) for plugin, all_ in shared.items()}}

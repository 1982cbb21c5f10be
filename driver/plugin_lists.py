"""The lists of all device plugins of a node: which plugins there are, and what each lists.

    Instances, Configurations that are heard of, devices that are online ──► list by plugin

A Configuration that is not heard of (its handler has not answered yet, an edit broke it, it is
being deleted) offers nothing new, and takes nothing away: what this node holds stays listed, and
Healthy, since nobody knows better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

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
        online=frozenset(instance.name for instance in inventory.instances if instance.online),
        names=inventory.configurations.keys() | inventory.unheard,
        unheard=inventory.unheard,
    )


PluginLists = Mapping[Plugin, tuple[PluginDevice, ...]]


def plugin_lists(
    instances: Iterable[InstanceSlots], node: NodeName, offered: Offered
) -> PluginLists:
    """All plugins of a node, each with its whole list."""
    return PluginListing(node).lists(instances, offered)


class PluginListing:
    """All plugins of a node, made anew only where something changed.

    A node may have a thousand Instances, and an Allocate changes one of them.
    """

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._offered: Offered | None = None
        self._parts: dict[InstanceName, _Part] = {}
        self._lists: PluginLists = {}

    def lists(self, instances: Iterable[InstanceSlots], offered: Offered) -> PluginLists:
        """Each plugin with its whole list; the same object as the last time if all is the same.

        Args:
            instances: Those that are known, each by a name of its own.
            offered: What discovery offers; the same object is quicker to compare.
        """
        known = tuple(instances)
        parts = self._kept(known) if offered is self._offered else {}
        changed = [slots for slots in known if slots.name not in parts]
        contested = contested_instances(offered.names, (slots.name for slots in changed))
        kinds = {name: _kind(name, offered) for name in {slots.configuration for slots in changed}}
        for slots in changed:
            name = slots.name
            facts = _Facts(name in offered.online, name in contested, kinds[slots.configuration])
            parts[name] = self._part(slots, facts)
        before, self._parts, self._offered = self._parts, parts, offered
        if parts != before:
            self._lists = _rejoined(self._lists, before, parts)
        return self._lists

    def _kept(self, known: Iterable[InstanceSlots]) -> dict[InstanceName, _Part]:
        found = ((slots, self._parts.get(slots.name)) for slots in known)
        return {slots.name: part for slots, part in found if part and part.slots is slots}

    def _part(self, slots: InstanceSlots, facts: _Facts) -> _Part:
        before = self._parts.get(slots.name)
        if before is not None and before.slots is slots and before.facts == facts:
            return before
        return _part(slots, self._node, facts)


class _Kind(NamedTuple):
    """What is known of a Configuration, by its name.

    Attributes:
        whole: Whether a device that is not reported is known to be offline.
    """

    heard: bool
    whole: bool
    unique: bool
    bad_name: bool


class _Facts(NamedTuple):
    """What discovery says of an Instance, and of names."""

    online: bool
    contested: bool
    kind: _Kind


@dataclass(frozen=True, slots=True)
class _Part:
    """What one Instance adds to the lists.

    Attributes:
        slots: Of what it was made, as are `facts`; parts that add the same are the same.
        own: Its own plugin's list; None if it has none.
        shared: Its part of its Configuration's list; None if it needs no such plugin.
    """

    slots: InstanceSlots = field(compare=False)
    facts: _Facts = field(compare=False)
    plugins: tuple[OfInstance, OfConfiguration]
    own: tuple[PluginDevice, ...] | None = None
    shared: tuple[PluginDevice, ...] | None = None


def _kind(name: ConfigurationName, offered: Offered) -> _Kind:
    configuration = offered.configurations.get(name)
    return _Kind(
        heard=configuration is not None,
        whole=name not in offered.unheard,
        unique=configuration is None or configuration.unique_devices,
        bad_name=configuration is not None and any(name_problems(configuration)),
    )


def _part(slots: InstanceSlots, node: NodeName, facts: _Facts) -> _Part:
    plugins = OfInstance(slots.name), OfConfiguration(slots.configuration, facts.kind.unique)
    if facts.kind.bad_name or not (slots.is_offered_on(node) or slots.held_by(node)):
        return _Part(slots, facts, plugins)
    own = None if facts.contested else _of_instance(slots, node, facts)
    return _Part(slots, facts, plugins, own, _of_configuration(slots, node, facts))


_Parts = Mapping[InstanceName, _Part]


def _rejoined(lists: PluginLists, before: _Parts, parts: _Parts) -> PluginLists:
    """The lists of these parts, made of those of the parts before; the others stay in place."""
    names = [name for name in {**before, **parts} if before.get(name) is not parts.get(name)]
    old = [before[name] for name in names if name in before]
    new = [parts[name] for name in names if name in parts]
    lists_of: dict[Plugin, tuple[PluginDevice, ...] | None] = {
        **{part.plugins[0]: None for part in old},
        **{part.plugins[0]: part.own for part in new},
        **{plugin: _shared(plugin, parts.values()) for plugin in _stale(old, new)},
    }
    found: dict[Plugin, tuple[PluginDevice, ...] | None] = {**lists, **lists_of}
    return {plugin: devices for plugin, devices in found.items() if devices is not None}


def _stale(old: Iterable[_Part], new: Iterable[_Part]) -> Iterable[OfConfiguration]:
    """Whose Configurations' lists have another part than before."""
    before, after = (
        {(part.slots.name, part.plugins[1], part.shared) for part in parts} for parts in (old, new)
    )
    return {plugin for _, plugin, _ in before ^ after}


def _shared(plugin: OfConfiguration, parts: Iterable[_Part]) -> tuple[PluginDevice, ...] | None:
    """The list of a Configuration; None if no Instance needs it."""
    some = [p.shared for p in parts if p.shared is not None and p.plugins[1] == plugin]
    devices = (device for shared in some for device in shared)
    return tuple(sorted(devices, key=attrgetter("id", "healthy"))) if some else None


def _is_heard(slots: InstanceSlots, facts: _Facts) -> bool:
    if slots.deleted or not facts.kind.heard:
        return False
    # Of one that is heard of in part, a device that is not reported may yet be.
    return facts.online or facts.kind.whole


def _of_instance(slots: InstanceSlots, node: NodeName, facts: _Facts) -> tuple[PluginDevice, ...]:
    devices = instance_devices(slots, node, _online(slots, facts))
    if _is_heard(slots, facts):
        return devices
    resource = instance_resource(slots.name)
    keys = slot_devices(slots, node).values()
    held = {key.id for key in keys if key and key.resource == resource}
    return tuple(PluginDevice(device.id, device.id in held) for device in devices)


def _of_configuration(
    slots: InstanceSlots, node: NodeName, facts: _Facts
) -> tuple[PluginDevice, ...]:
    if _is_heard(slots, facts):
        online = _online(slots, facts)
        return configuration_devices([slots], node, online, unique_devices=facts.kind.unique)
    return tuple(PluginDevice(device, True) for device in sorted(held_devices(slots, node)))


def _online(slots: InstanceSlots, facts: _Facts) -> Collection[InstanceName]:
    return (slots.name,) if facts.online else ()

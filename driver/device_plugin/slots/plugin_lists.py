"""The lists of all device plugins of a node: which plugins there are, and what each lists.

    Instances, Configurations that are heard of, devices that are online ──► list by plugin

A Configuration that is not heard of (its handler has not answered yet, an edit broke it, it is
being deleted) offers nothing new, and takes nothing away: what this node holds stays listed, and
Healthy, since nobody knows better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter

from driver.api import Configuration, ConfigurationName, InstanceName, NodeName
from driver.device_ids import contested_instances
from driver.device_plugin.slots.allocation import OfConfiguration, Plugin
from driver.device_plugin.slots.plugin_devices import PluginDevice
from driver.device_plugin.slots.plugin_parts import Facts, Kind, Part, kind_of, part_of
from driver.instances.inventory import Inventory
from driver.instances.slots.slots import InstanceSlots


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
        self._parts: dict[InstanceName, Part] = {}
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
        kinds = _kinds({slots.configuration for slots in changed}, offered)
        for slots in changed:
            name = slots.name
            facts = Facts(name in offered.online, name in contested, kinds[slots.configuration])
            parts[name] = self._part(slots, facts)
        before, self._parts, self._offered = self._parts, parts, offered
        if parts != before:
            self._lists = _rejoined(self._lists, before, parts)
        return self._lists

    def _kept(self, known: Iterable[InstanceSlots]) -> dict[InstanceName, Part]:
        found = ((slots, self._parts.get(slots.name)) for slots in known)
        return {slots.name: part for slots, part in found if part and part.slots is slots}

    def _part(self, slots: InstanceSlots, facts: Facts) -> Part:
        before = self._parts.get(slots.name)
        if before is not None and before.slots is slots and before.facts == facts:
            return before
        return part_of(slots, self._node, facts)


def _kinds(
    names: Iterable[ConfigurationName], offered: Offered
) -> Mapping[ConfigurationName, Kind]:
    return {
        name: kind_of(offered.configurations.get(name), whole=name not in offered.unheard)
        for name in names
    }


_Parts = Mapping[InstanceName, Part]
_Lists = dict[Plugin, tuple[PluginDevice, ...] | None]


def _rejoined(lists: PluginLists, before: _Parts, parts: _Parts) -> PluginLists:
    """The lists of these parts, made of those of the parts before; the others stay in place."""
    names = [name for name in {**before, **parts} if before.get(name) is not parts.get(name)]
    old = [before[name] for name in names if name in before]
    new = [parts[name] for name in names if name in parts]
    found: _Lists = {
        **lists,
        **{part.plugins[0]: None for part in old},
        **{part.plugins[0]: part.own for part in new},
        **_shared(_stale(old, new), parts.values()),
    }
    return {plugin: devices for plugin, devices in found.items() if devices is not None}


def _stale(old: Iterable[Part], new: Iterable[Part]) -> Collection[OfConfiguration]:
    """Whose Configurations' lists have another part than before."""
    before, after = (
        {(part.slots.name, part.plugins[1], part.shared) for part in parts} for parts in (old, new)
    )
    return {plugin for _, plugin, _ in before ^ after}


def _shared(plugins: Collection[OfConfiguration], parts: Iterable[Part]) -> _Lists:
    """The lists of Configurations; None of one that no Instance needs."""
    found: dict[OfConfiguration, list[PluginDevice]] = {}
    for part in parts:
        if part.shared is not None and part.plugins[1] in plugins:
            found.setdefault(part.plugins[1], []).extend(part.shared)
    order = attrgetter("id", "healthy")
    return {p: tuple(sorted(found[p], key=order)) if p in found else None for p in plugins}

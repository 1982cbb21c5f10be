"""All that a node reports of discovery: of its handlers, what they are given, what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from driver.api import Configuration, ConfigurationName
from driver.handlers.apiserver_properties import NodeProperties
from driver.handlers.node_sources import NodeSources
from driver.handlers.reports import Report
from driver.instances.inventory import Inventory
from driver.instances.names import Collision, collision_sentence
from driver.instances.unusable_properties import unusable_sentences


class NodeReports:
    """See `node_handlers.Reporter`."""

    def __init__(
        self,
        sources: NodeSources,
        properties: NodeProperties,
        collisions: Callable[[ConfigurationName], Iterable[Collision]],
        inventory: Callable[[], Inventory | None],
    ) -> None:
        self._sources = sources
        self._properties = properties
        self._collisions = collisions
        self._inventory = inventory
        self._read: Inventory | None = None
        self._unusable: Mapping[ConfigurationName, tuple[str, ...]] = {}

    def on_change(self, listener: Callable[[], None]) -> None:
        self._sources.on_change(listener)
        self._properties.on_change(listener)

    def reports(self, handler: str, name: ConfigurationName) -> tuple[Report, ...]:
        return self._sources.reports(handler, name)

    def problems(self, configuration: Configuration) -> tuple[str, ...]:
        collisions = self._collisions(configuration.name)
        return (
            *self._properties.problems(configuration),
            *map(collision_sentence, collisions),
            *self._unusable_of(configuration.name),
        )

    def _unusable_of(self, name: ConfigurationName) -> tuple[str, ...]:
        inventory = self._inventory()
        if inventory is not None and inventory is not self._read:
            self._read, self._unusable = inventory, unusable_sentences(inventory.instances)
        return self._unusable.get(name, ())

    def are_properties_read(self, configuration: Configuration) -> bool:
        return not self._properties.problems(configuration)

"""Sentences about a node's devices that are not offered, or whose properties are not usable."""

from __future__ import annotations

import logging
from collections.abc import Callable

from driver.api import ConfigurationName
from driver.instances.inventory import Inventory
from driver.instances.names import Collision, collision_sentence
from driver.instances.rival_sentences import rival_sentences
from driver.instances.stored.objects import StoredInstance
from driver.instances.unusable_properties import unusable_sentences
from driver.running.node.node_place import OfferPlace

logger = logging.getLogger(__name__)


class DeviceProblems:
    """The problems of the devices in the last inventory."""

    def __init__(self, place: OfferPlace, inventory: Callable[[], Inventory | None]) -> None:
        """Create; `inventory` returns None before the first decision."""
        self._place = place
        self._inventory = inventory

    def waits_for(self, stored: StoredInstance) -> bool:
        """Whether another device of the inventory wants the name of this Instance."""
        inventory = self._inventory()
        if inventory is None or stored.configuration not in inventory.collisions:
            return False
        is_ours = inventory.configurations[stored.configuration].namespace == stored.namespace
        return is_ours and any(
            c.taken == stored.name for c in self._collisions(stored.configuration)
        )

    def unnamed(self, name: ConfigurationName) -> tuple[str, ...]:
        """Sentences about devices of a Configuration without a name, and unusable properties."""
        inventory = self._inventory()
        unusable = unusable_sentences(inventory) if inventory else {}
        nameless = collision_sentence(self._collisions(name), self._place.hash_digits)
        return (*((nameless,) if nameless else ()), *unusable.get(name, ()))

    def rivals(self, name: ConfigurationName) -> tuple[str, ...]:
        """Sentences about devices of a Configuration that another Configuration has, too."""
        inventory = self._inventory()
        if inventory is None:
            return ()
        return rival_sentences(inventory, claims=self._place.path.is_dra).get(name, ())

    def log_collisions(self, inventory: Inventory) -> None:
        """Log the collisions of a new inventory that the last one does not have."""
        for name, found in inventory.collisions.items():
            if new := set(found).difference(self._collisions(name)):
                sentence = collision_sentence(new, self._place.hash_digits)
                logger.warning("%s configuration=%s", sentence, name)

    def _collisions(self, name: ConfigurationName) -> tuple[Collision, ...]:
        inventory = self._inventory()
        return inventory.collisions.get(name, ()) if inventory else ()

"""The known names of Instances at one moment: stored names, and names that were decided before.

stored Instances, Instances of other nodes, previous inventory ──taken──► TakenNames
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from driver.api import Configuration, InstanceName
from driver.instances.inventory import Inventory
from driver.instances.names import ANOTHER_NODES, TakenNames
from driver.instances.stored.objects import StoredInstance

Place = tuple[str, str]
"""Namespace and Configuration."""


@dataclass(frozen=True)
class KnownNames:
    """All known names; the indexes are built when they are first used.

    Attributes:
        stored: This node's Instances and all shared ones.
        of_others: Names of the Instances of other nodes.
        before: The previous inventory, if there is one.
        digits: Digits of the hash in a new name.
    """

    stored: tuple[StoredInstance, ...]
    of_others: Mapping[Place, Collection[InstanceName]]
    before: Inventory | None
    digits: int

    def taken(self, configuration: Configuration) -> TakenNames:
        """The taken names of one Configuration."""
        place = (configuration.namespace, configuration.name)
        known = {instance.name: instance.device for instance in self._stored.get(place, ())}
        for name in self.of_others.get(place, ()):
            known[name] = known.get(name) or ANOTHER_NODES
        return TakenNames(known, self._current.get(place, {}), self.digits)

    @cached_property
    def _stored(self) -> Mapping[Place, list[StoredInstance]]:
        found = defaultdict[Place, list[StoredInstance]](list)
        for instance in self.stored:
            found[instance.namespace, instance.configuration].append(instance)
        return found

    @cached_property
    def _current(self) -> Mapping[Place, dict[str, InstanceName]]:
        found = defaultdict[Place, dict[str, InstanceName]](dict)
        for named in self.before.instances if self.before else ():
            found[named.namespace, named.configuration][named.device] = named.name
        return found

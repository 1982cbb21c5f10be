"""The Instances of a node, kept what its discovery says: local ones whole, of shared ones a part.

A thousand new ones must not keep the next device out of its slice, so they are written in passes
of their own, beside those of `cluster`.
"""

from __future__ import annotations

from typing import NoReturn

from driver.api import InstanceName, NodeName
from driver.apiserver_instances import instances_of_node, write_instances
from driver.instances import (
    InstanceDecision,
    StoredInstance,
    instance_body,
    plan_instances,
    stored_instance,
)
from driver.inventory import Inventory
from driver.names import attribute_value
from driver.passes import Passes, put_right
from driver.publication import Publication
from driver.shared_instances import SharedDecision, plan_shared, shared_body
from kube.api import ApiClient, Store


class NodeInstances:
    """Writes what the last decision asks for; nothing before there is one.

    Attributes:
        store: The node's own Instances and all shared ones, as the API server has them.
    """

    def __init__(self, client: ApiClient, node: NodeName) -> None:
        self.store: Store[StoredInstance] = Store(client, instances_of_node(node), stored_instance)
        self._client = client
        self._node = node
        self._passes = Passes(self._pass, name="writing Instances")
        self._decided: tuple[Inventory, Publication] | None = None

    def decide(self, inventory: Inventory, publication: Publication) -> None:
        """Let the Instances be those of this inventory, and of what is still published."""
        self._decided = (inventory, publication)
        self._passes.ask()

    async def run(self) -> NoReturn:
        """Write until cancelled; the store must be in sync."""
        self.store.subscribe(lambda change: put_right(change, self._passes))
        await self._passes.run()

    async def _pass(self) -> None:
        if self._decided is None:
            return
        inventory, publication = self._decided
        decisions = (*self._plan_local(inventory, publication), *self._plan_shared(inventory))
        await write_instances(self._client, decisions, self._node, self.store.note)

    def _plan_local(
        self, inventory: Inventory, publication: Publication
    ) -> tuple[InstanceDecision, ...]:
        bodies = [
            instance_body(instance, inventory.configurations[instance.configuration], self._node)
            for instance in inventory.local
        ]
        stored = [s for s in self.store if not s.is_shared]
        held = self._held(stored, publication)
        return plan_instances(bodies, stored, unheard=inventory.unheard, held=held)

    def _held(
        self, stored: list[StoredInstance], publication: Publication
    ) -> frozenset[InstanceName]:
        away = publication.away_instances
        return frozenset(s.name for s in stored if attribute_value(s.name) in away)

    def _plan_shared(self, inventory: Inventory) -> tuple[SharedDecision, ...]:
        bodies = [
            shared_body(instance, inventory.configurations[instance.configuration])
            for instance in inventory.shared
        ]
        stored = (s for s in self.store if s.is_shared)
        return plan_shared(bodies, stored, self._node, unheard=inventory.unheard)

"""Reconciles the Instances of a node with its discovery: local ones whole, its part of shared ones.

A thousand new Instances must not delay the slice of the next device. So Instances have a queue of
their own beside that of `node_cluster`, and no write of an Instance starts while slices are being
written. Nor must they delay the Instance of another Configuration: writes are in a fair order, see
`fair_order`, and when a newer decision exists, the rest of the older one is decided again with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from driver.api import NODE_LABEL, SHARED_LABEL_VALUE, Configuration, InstanceName, NodeName
from driver.derived import derived
from driver.devices import AKRIS_DIGITS
from driver.handlers.handler_sources import pause_until
from driver.instances.apiserver_instances import instances_of_node, write_instances
from driver.instances.fair_order import batched
from driver.instances.inventory import Inventory
from driver.instances.known_names import KnownNames
from driver.instances.names import TakenNames
from driver.instances.plans import Decision, Seen, planned
from driver.instances.stored.objects import StoredInstance, stored_instance
from driver.names import label_value
from driver.plumbing.apiserver_reconcilers import ALL, put_right, whole_reconciler
from driver.plumbing.worker_threads import in_thread_if_many
from driver.shapes.instances import InstanceObject
from kube.calls.api import ApiClient, ApiError
from kube.objects import JsonObject
from kube.reconciling.api import After, Done, Result
from kube.shapes.metadata import metadata_of
from kube.stores.api import Change, Deleted, Store, WatchSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        slices_first: Delay of Instances, so that slices of the same decision are sent first.
        longest_yield: Longest time that Instances wait for slices: as long as one new device
            needs. Slices of thousands of devices take seconds.
        shortest_write: How long a decision is written although a newer one exists, since deciding
            costs time.
    """

    slices_first: float = 0.02
    longest_yield: float = 0.1
    shortest_write: float = 0.3


TIMES = Times()

WRITES_A_STEP = 32
"""Instances in one batch of writes. Slices and newer decisions may come between two batches."""

_Place = tuple[str, str]
"""Namespace, and Configuration or Instance."""


class NodeInstances:
    """Writes the last decision; nothing is written before the first one.

    Attributes:
        store: The stored Instances: the node's own ones and all shared ones.
        of_others: Names of Instances of other nodes, found when this node wanted the name.
        claimable: Whether this node's path is DRA. New shared Instances are marked accordingly.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        on_taken: Callable[[], None] = lambda: None,
        shown: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """Create.

        Args:
            client: Client of the API server.
            node: The node.
            on_taken: Called when another device has a name, so that the inventory must be decided
                again.
            shown: Returns the attribute values of the Instances that slices may have. They stay.
        """
        self.store: Store[StoredInstance] = Store(
            client,
            instances_of_node(node),
            stored_instance,
            settings=WatchSettings(shape=InstanceObject),
        )
        self.claimable = False
        self._client = client
        self._node = node
        self.queue = whole_reconciler("writing Instances", self.reconcile)
        self._on_taken = on_taken
        self._shown = shown
        self._labels = (SHARED_LABEL_VALUE, label_value(node))
        self.of_others: dict[_Place, set[InstanceName]] = {}
        self._decided: Inventory | None = None
        self._requests = 0
        self._others_write = 0
        self._may_write = asyncio.Event()
        self._may_write.set()

    def names(
        self, before: Inventory | None, digits: int = AKRIS_DIGITS
    ) -> Callable[[Configuration], TakenNames]:
        """The known names of Instances at this moment, and those of the previous inventory.

        The result may be called in another thread.
        """
        of_others = {place: frozenset(names) for place, names in self.of_others.items()}
        return KnownNames(tuple(self.store), of_others, before, digits).taken

    def decide(self, inventory: Inventory) -> None:
        """Write the Instances of this inventory from now on, and keep those still published."""
        self._decided = inventory
        self.requeue()

    def requeue(self) -> None:
        """Decide again, since devices were removed from slices."""
        self._requests += 1
        self.queue.add_after(ALL, TIMES.slices_first)

    @contextmanager
    def yielding(self) -> Iterator[None]:
        """A context during which no write of an Instance starts, for `longest_yield` at most."""
        self._others_write += 1
        self._may_write.clear()
        try:
            yield
        finally:
            self._others_write -= 1
            if not self._others_write:
                self._may_write.set()

    async def _write(self, decisions: Sequence[Decision], requests: int) -> None:
        """Write the decisions in batches, until a newer decision is due.

        Args:
            decisions: The decisions, in their order.
            requests: Number of decisions that had been requested when these were made.

        Raises:
            ApiError: The first failure; the other writes were tried nevertheless.
        """
        clock, failures = asyncio.get_running_loop().time, list[ApiError]()
        end = clock() + TIMES.shortest_write
        for few in batched(decisions, WRITES_A_STEP):
            await pause_until(self._may_write, TIMES.longest_yield)
            if self._requests != requests and clock() >= end:
                break  # The newer decision is in the queue.
            try:
                await write_instances(
                    self._client, few, self._node, self.store.note, self._note_taken
                )
            except ApiError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    async def run(self) -> NoReturn:
        """Write until cancelled; the store must be in sync."""
        self.store.subscribe(self.on_change)
        await self.queue.run()

    def on_change(self, change: Change[StoredInstance]) -> None:
        """Reconcile after a change; a deleted Instance that is not wanted needs no write."""
        wanted: Collection[_Place] = derived(self._decided, _places) if self._decided else ()
        if not isinstance(change, Deleted) or (change.key.namespace, change.key.name) in wanted:
            put_right(change, self.queue)

    async def reconcile(self) -> Result:
        """Plan from the last inventory and the stored Instances, and write. Raises ApiError."""
        inventory = self._decided
        if inventory is None:
            return Done()
        self._forget(inventory)
        requests, now = self._requests, datetime.now(UTC)
        seen = Seen(self._node, tuple(self.store), self._shown(), self.claimable)
        many = len(seen.stored) + len(inventory.instances)
        plan = await in_thread_if_many(many, planned, inventory, seen, now)
        if plan.is_any_taken:
            self._on_taken()
        await self._write(plan.decisions, requests)
        if plan.recheck_at is None:
            return Done()
        return After((plan.recheck_at - now).total_seconds())

    def _forget(self, inventory: Inventory) -> None:
        """Forget names of other nodes' Instances if their Configuration is gone."""
        known = inventory.configurations.keys() | inventory.unheard
        for place in [place for place in self.of_others if place[1] not in known]:
            del self.of_others[place]

    def _note_taken(self, stored: JsonObject) -> None:
        labels, found = metadata_of(stored).labels or {}, stored_instance(stored)
        logger.warning("another device has the Instance of this name instance=%s", found.name)
        if labels.get(NODE_LABEL) in self._labels:
            self.store.note(stored)
        else:
            place = (found.namespace, found.configuration)
            self.of_others.setdefault(place, set()).add(found.name)
        self._on_taken()


def _places(inventory: Inventory) -> frozenset[_Place]:
    """Namespaces and names of all Instances of an inventory."""
    return frozenset((instance.namespace, instance.name) for instance in inventory.instances)

"""The Instances of a node, kept what its discovery says: local ones whole, of shared ones a part.

A thousand new ones must not keep the next device out of its slice, so they have a queue of
their own, beside that of `node_cluster`, and none is begun while slices are written. Nor must
they keep the Instance of another Configuration waiting: turns are shared, see `fair_order`, and
when there is something new to write, what is left of the old is decided anew with it.
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
from driver.plumbing.worker_threads import worked_out
from driver.shapes.instances import InstanceObject
from kube.api import (
    After,
    ApiClient,
    ApiError,
    Change,
    Deleted,
    Done,
    JsonObject,
    Result,
    Store,
    WatchSettings,
)
from kube.shapes.metadata import metadata_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        slices_first: For which Instances wait, so that what is decided at the same time about
            slices is sent first.
        longest_yield: For which Instances wait for slices at the most, each time: as long as one
            new device needs. Those of thousands are written for seconds.
        shortest_turn: For which a decision is written although there is a newer one: to decide
            costs time.
    """

    slices_first: float = 0.02
    longest_yield: float = 0.1
    shortest_turn: float = 0.3


TIMES = Times()

WRITES_A_STEP = 32
"""Instances that are begun before somebody else may come in between."""

_Place = tuple[str, str]
"""Namespace, and Configuration or Instance."""


class NodeInstances:
    """Writes what the last decision asks for; nothing before there is one.

    Attributes:
        store: The node's own Instances and all shared ones, as the API server has them.
        claimable: Whether this node's path is DRA, which its new shared ones say.
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
            client: The API server.
            node: Whose Instances these are.
            on_taken: Hears that a name is another device's: there is a new inventory to decide.
            shown: Attribute values of the Instances that slices may show, which stay.
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
        self._looks = 0
        self._others_write = 0
        self._may_write = asyncio.Event()
        self._may_write.set()

    def names(
        self, before: Inventory | None, digits: int = AKRIS_DIGITS
    ) -> Callable[[Configuration], TakenNames]:
        """What is known of the names of Instances, beside those of the inventory before.

        The result says what was known at this moment, and may be asked in a thread.
        """
        of_others = {place: frozenset(names) for place, names in self.of_others.items()}
        return KnownNames(tuple(self.store), of_others, before, digits).taken

    def decide(self, inventory: Inventory) -> None:
        """Let the Instances be those of this inventory, and of what is still shown."""
        self._decided = inventory
        self.look_again()

    def look_again(self) -> None:
        """Something is not shown any more."""
        self._looks += 1
        self.queue.add_after(ALL, TIMES.slices_first)

    @contextmanager
    def yielding(self) -> Iterator[None]:
        """No Instance is begun to be written for as long as this lasts, within limits."""
        self._others_write += 1
        self._may_write.clear()
        try:
            yield
        finally:
            self._others_write -= 1
            if not self._others_write:
                self._may_write.set()

    async def _write(self, decisions: Sequence[Decision], looks: int) -> None:
        """Write what was decided, a few at a time, until there is something newer to decide from.

        Args:
            decisions: In their order.
            looks: How many were asked for when it was decided.

        Raises:
            ApiError: The first failure; the others were tried nevertheless.
        """
        clock, failures = asyncio.get_running_loop().time, list[ApiError]()
        end = clock() + TIMES.shortest_turn
        for few in batched(decisions, WRITES_A_STEP):
            await pause_until(self._may_write, TIMES.longest_yield)
            if self._looks != looks and clock() >= end:
                break  # It is in the queue.
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
        """Put it right; what was deleted and is not wanted is, as when a Configuration went."""
        wanted: Collection[_Place] = derived(self._decided, _places) if self._decided else ()
        if not isinstance(change, Deleted) or (change.key.namespace, change.key.name) in wanted:
            put_right(change, self.queue)

    async def reconcile(self) -> Result:
        """Plan by what is decided and stored now, and write. Raises ApiError."""
        inventory = self._decided
        if inventory is None:
            return Done()
        self._forget(inventory)
        looks, now = self._looks, datetime.now(UTC)
        seen = Seen(self._node, tuple(self.store), self._shown(), self.claimable)
        many = len(seen.stored) + len(inventory.instances)
        plan = await worked_out(many, planned, inventory, seen, now)
        if plan.is_any_taken:
            self._on_taken()
        await self._write(plan.decisions, looks)
        if plan.recheck_at is None:
            return Done()
        return After((plan.recheck_at - now).total_seconds())

    def _forget(self, inventory: Inventory) -> None:
        """Names of other nodes' Instances, of Configurations that are no more."""
        known = inventory.configurations.keys() | inventory.unheard
        for place in [place for place in self.of_others if place[1] not in known]:
            del self.of_others[place]

    def _note_taken(self, stored: JsonObject) -> None:
        labels, found = metadata_of(stored).labels or {}, stored_instance(stored)
        logger.warning("another device has an Instance of this name instance=%s", found.name)
        if labels.get(NODE_LABEL) in self._labels:
            self.store.note(stored)
        else:
            place = (found.namespace, found.configuration)
            self.of_others.setdefault(place, set()).add(found.name)
        self._on_taken()


def _places(inventory: Inventory) -> frozenset[_Place]:
    """Namespaces and names of all Instances that are to be there."""
    return frozenset((instance.namespace, instance.name) for instance in inventory.instances)

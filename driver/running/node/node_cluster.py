"""Decides the inventory of a node, and publishes it.

    Configurations ──► discoveries ──answers──► inventory ──► Instances, ResourceSlices
    ResourceClaims, watched only while a device is absent ──► when that device may be removed

Each reconciliation reads the stores, decides and writes. A change only adds the key to the queue,
so a burst of events costs one reconciliation. Instances have their own queue: `node_instances`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from driver.configurations.configurations import Verdict, concerns_devices
from driver.handlers.node_sources import NodeSources
from driver.handlers.properties.apiserver_properties import NodeProperties
from driver.instances.disk_nodes import HostNodes
from driver.instances.handler_discoveries import Discoveries
from driver.instances.inventory import Host, Inventory, in_force, inventory_of, withdrawn
from driver.instances.node_instances import NodeInstances
from driver.instances.stored.objects import StoredInstance
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.plumbing.prometheus import PUBLISHED_SECONDS
from driver.plumbing.worker_threads import in_thread_if_many
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.device_views import DevicesView
from driver.publishing.apiserver_pools import PoolListeners
from driver.publishing.desired.deductions import held_slots
from driver.publishing.desired.local_pools import KnownPools, local_supplies
from driver.publishing.desired.publication import Supply
from driver.publishing.node_pools import NodePools
from driver.running.node.node_handlers import NodeHandlers, Reporter
from driver.running.node.node_instance_changes import changes_holders, old_and_new
from driver.running.node.node_place import OfferPlace
from driver.running.node.node_problems import DeviceProblems
from driver.running.node.node_view import NodeView
from kube.calls.api import ApiClient
from kube.kinds import CONFIGURATIONS
from kube.reconciling.api import Done
from kube.stores.api import Change, Deleted, Modified, Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        first_answers: The longest wait of the first decision for handlers: a start publishes once.
        taken: Delay before a device is withdrawn because another one has its name.
    """

    first_answers: float = 2.0
    taken: float = 0.1


TIMES = Times()


class NodeCluster:
    """Reconciles this node's Instances and ResourceSlices with its discovery handlers."""

    def __init__(
        self,
        client: ApiClient,
        place: OfferPlace,
        sources: NodeSources,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._node = node = place.node
        self._place = place
        self._node_path = place.path
        self._tasks = tasks
        self.queue = whole_reconciler("deciding what there is", self.reconcile)
        self._instances = NodeInstances(
            client,
            node,
            on_taken=lambda: self.queue.add_after(ALL, TIMES.taken),
            shown=lambda: self.pools.shown_instances,
        )
        self._sources = sources
        self._properties = NodeProperties(client, tasks)
        self.discoveries = Discoveries(sources, tasks, self.on_answer, self._properties.read)
        self.node_view = NodeView(
            self._instances, lambda: self._seeing()(), lambda: self.pools.current
        )
        self._listeners: list[Callable[[Inventory], None]] = []
        self._on_moved: list[Callable[[], None]] = []
        self._on_gone: list[Callable[[], None]] = []
        self._answers = 0
        self._first_answers = asyncio.Event()
        self._decided = asyncio.Event()
        self.configurations = Store(client, CONFIGURATIONS.select(), place.judged)
        self._homes = place.homes
        self.pools = NodePools(
            client,
            node,
            tasks,
            PoolListeners(
                decided=self.node_view.forget_shared,
                gone=self._gone,
                unknown=self._requeue,
                writing=self._instances.yielding,
                published=PUBLISHED_SECONDS.observe,
            ),
        )
        self._problems = problems = DeviceProblems(place, lambda: self.inventory)
        reporter = Reporter(
            sources.reports, self._properties.problems, problems.unnamed, problems.rivals
        )
        self._handlers = NodeHandlers(client, node, reporter, self.configurations)
        for source in (sources, self._properties):
            source.on_change(self._requeue)
            source.on_change(partial(self._handlers.queue.add, ALL))
        self._properties.on_change(self._properties_changed)

    @property
    def view(self) -> DevicesView | None:
        """The devices that this node can prepare; None before the first decision."""
        return self.node_view.whole

    @property
    def where(self) -> DeviceLocator | None:
        """The locations of this node's devices; None before the first decision."""
        return self.node_view.where

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call back whenever the devices that can be prepared may have changed."""
        self.node_view.listeners.append(listener)

    def on_moved(self, listener: Callable[[], None]) -> None:
        """Call back whenever locations of devices may have changed."""
        self._on_moved.append(listener)

    def on_gone(self, listener: Callable[[], None]) -> None:
        """Call back whenever devices were removed from all slices, so that no claim has them."""
        self._on_gone.append(listener)

    def _gone(self) -> None:
        self._instances.requeue()
        for listener in self._on_gone:
            listener()

    def _moved(self) -> None:
        for listener in self._on_moved if self.inventory is not None else ():
            listener()

    def _seeing(self) -> Callable[[], Inventory]:
        """Returns a function that makes the inventory of this moment, in any thread."""
        taken = self._instances.names(self.inventory, self._place.hash_digits)
        heard = dict(self.discoveries.heard)
        host = Host(HostNodes(dev=self._place.dev).at, self._place.rules)
        verdicts = tuple(self.configurations)
        return partial(inventory_of, verdicts, heard, self._node, taken, host)

    @property
    def stored_instances(self) -> Store[StoredInstance]:
        """The stored Instances of this node, and all shared ones."""
        return self._instances.store

    async def decided(self) -> None:
        """Wait for the first inventory: all handlers have answered, or their time is over."""
        await self._decided.wait()

    @property
    def claimed_instances(self) -> frozenset[str]:
        """Attribute values of the Instances in slices, which claims may have."""
        return self.pools.shown_instances

    @property
    def inventory(self) -> Inventory | None:
        """The last inventory, with shared devices; None before the first one."""
        return self.node_view.inventory

    def why_unknown(self) -> str:
        """Why there is no inventory yet, as a sentence."""
        stores: tuple[Store[Any], ...] = (self.configurations, self._instances.store)
        failures = (store.stats.last_failure for store in stores if not store.synced.is_set())
        said = next(filter(None, failures), "")
        return f"The devices of this node are not known yet{': ' if said else '.'}{said}"

    def on_inventory(self, listener: Callable[[Inventory], None]) -> None:
        """Call back with each new inventory, which may equal the one before."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Publish until cancelled; failures are logged and retried without a limit."""
        await self._start_stores()
        await self._first_answers_or_time()
        self._tasks.create_task(self._instances.run())
        self._tasks.create_task(self._handlers.queue.run())
        await self.queue.run()

    async def _start_stores(self) -> None:
        stores: list[Store[Any]] = [self.configurations, self._instances.store]
        self.node_view.taken = path = await self._node_path.take()
        self._instances.claimable = path.is_dra
        if path.features is not None:
            stores.append(self.pools.slices)
        for store in stores:
            self._tasks.create_task(store.run())
        for store in stores:
            await store.synced.wait()
        self.configurations.subscribe(self._configuration_changed)
        self._instances.store.subscribe(self.on_instance)
        if path.features is not None:
            self.pools.start(path.features)

    def _configuration_changed(self, change: Change[Verdict]) -> None:
        """Reconcile, unless only entries of nodes in the status changed."""
        if not isinstance(change, Modified) or concerns_devices(change.old, change.new):
            self._requeue()

    def on_instance(self, change: Change[StoredInstance]) -> None:
        """Reconcile when slots were taken or released, which changes what claims may have."""
        if any(stored.is_shared for stored in old_and_new(change)):
            self.node_view.forget_shared()
        is_waited_for = isinstance(change, Deleted) and self._problems.waits_for(change.old)
        if is_waited_for or (self.node_view.path.is_dra and changes_holders(change)):
            self._requeue()

    async def _first_answers_or_time(self) -> None:
        self._follow()
        self.on_answer()
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMES.first_answers):
                await self._first_answers.wait()

    def _properties_changed(self) -> None:
        """Start conversations that wait for properties. Later, `reconcile` does it."""
        if not self._decided.is_set():
            self._follow()

    def _follow(self) -> None:
        configurations = in_force(self.configurations)
        self._sources.use(configurations)
        self._properties.follow(configurations)
        self.discoveries.follow(configurations)

    def on_answer(self) -> None:
        self._answers += 1
        if self.discoveries.complete:
            self._first_answers.set()
        self.node_view.forget_where()
        self._moved()
        self._requeue()

    def _requeue(self) -> None:
        """Reconcile, since the inventory may have changed."""
        self.queue.add(ALL)

    async def reconcile(self) -> Done:
        """Decide the inventory, and pass it to pools and Instances."""
        self._follow()
        answers, see = self._answers, self._seeing()
        inventory = await in_thread_if_many(self._many, see)
        self._problems.log_collisions(inventory)
        self.node_view.decided(inventory, is_current=answers == self._answers)
        self._moved()
        self._decided.set()
        if self.node_view.path.features is not None:
            self.pools.use(await self._supplies(inventory))
        self._instances.decide(inventory)
        for listener in self._listeners:
            listener(inventory)
        return Done()

    @property
    def _many(self) -> int:
        """Number of devices in a reconciliation."""
        heard = self.discoveries.heard.values()
        return sum(len(found.local) + len(found.shared) for found in heard)

    async def _supplies(self, inventory: Inventory) -> Mapping[str, Supply]:
        """The supply of each pool; empty supplies if devices are not offered through DRA.

        If a pool begins meanwhile to show a device that had no home, the supplies are decided
        again: otherwise two pools would show the device.
        """
        is_dra = self.node_view.path.is_dra
        offered = inventory if is_dra else withdrawn(inventory)
        held = held_slots(self._instances.store) if is_dra else {}
        known: KnownPools | None = None
        supplies: Mapping[str, Supply] = {}
        while known != (now := self._known_pools()):
            known, many = now, len(offered.instances)
            supplies = await in_thread_if_many(
                many, local_supplies, offered, self._node, known, held
            )
        return supplies

    def _known_pools(self) -> KnownPools:
        return KnownPools({**self._homes, **self.pools.homes}, frozenset(self.pools.current))

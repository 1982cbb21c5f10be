"""The pools of devices that several nodes see, published by the elected driver.

    Configurations, Instances, Nodes ──shared_pools──► Supply ─┐
    ResourceSlices ──► what was published ─────────────────────┴publish──► ResourceSlices
    ResourceClaims, watched only while a device is absent ──► when it and its Instance may go

Nothing is written before all of these have been listed: an object that was not read yet must not
count as deleted. All state is in the slices, so the next elected driver continues from them. Each
pool is a key of the queue, and a change adds the pools that it concerns: see `apiserver_pools`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import Any

from driver.api import DRIVER_NAME, ConfigurationName
from driver.configurations.configurations import Verdict
from driver.instances.cluster_instances import BY_CONFIGURATION
from driver.instances.slots.lost_nodes import NodeState
from driver.instances.unseen_instances import ObservedInstance
from driver.names import configuration_of_pool, is_shared_pool, shared_pool
from driver.plumbing.apiserver_reconcilers import keyed_reconciler, put_right
from driver.plumbing.worker_threads import in_thread_if_many
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apiserver_pools import (
    POOLS_AT_ONCE,
    PoolListeners,
    PoolWork,
    PublishedPool,
)
from driver.publishing.apiserver_slices import BY_POOL, Pool, PoolPublisher
from driver.publishing.apply.resource_slices import AllNodesScope, StoredSlice, stored_slice
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, Supply, claimable_instances
from driver.publishing.desired.shared_pools import Urgency, nodes_of, shared_supply, urgency
from driver.publishing.desired.slices import Features
from kube.calls.api import ApiClient
from kube.kinds import SLICES
from kube.reconciling.api import Done, Result
from kube.stores.api import Change, Deleted, Modified, Store

GATHER_SECONDS = 0.5
"""How long changes of the nodes that see devices are gathered into one reconciliation."""


@dataclass(frozen=True, slots=True)
class SharedOffer:
    """How the cluster's shared devices are offered.

    Attributes:
        features: What the API server keeps of a device.
        is_dra: Whether devices are offered through DRA; if not, published devices are withdrawn.
    """

    features: Features
    is_dra: bool


@dataclass(frozen=True, slots=True)
class SharedInputs:
    """The objects that the pools are made of; the caller runs the stores.

    Attributes:
        held: Returns the Configuration that holds each name.
        instances: All Instances, with the index `BY_CONFIGURATION`.
        clock: Returns seconds and never steps back.
    """

    held: Callable[[], Mapping[ConfigurationName, Verdict]]
    instances: Store[ObservedInstance]
    nodes: Store[NodeState]
    clock: Callable[[], float] = perf_counter


class ClusterPools:
    """Publishes one pool for each Configuration that has shared devices.

    Attributes:
        slices: The stored slices of shared pools.
        pools: The pools that may have devices, and those that have slices.
    """

    def __init__(
        self,
        client: ApiClient,
        offer: SharedOffer,
        inputs: SharedInputs,
        tasks: asyncio.TaskGroup,
        on_claimed: Callable[[], None],
    ) -> None:
        """Create; `on_claimed` is called when the set of removable Instances may have changed."""
        self._client = client
        self._offer = offer
        self._inputs = inputs
        self._tasks = tasks
        self._on_claimed = on_claimed
        self.pools: dict[str, PublishedPool] = {}
        self._queue = keyed_reconciler("publishing", self._reconcile, workers=POOLS_AT_ONCE)
        self._claimable: dict[str, frozenset[str]] = {}
        # Pools with unknown allocations; None before any pool was restored.
        self._unsettled: set[str] | None = None
        self.allocations = AllocationWatch(client, is_shared_pool, tasks, self._claims_changed)
        fields = f"spec.driver={DRIVER_NAME},spec.nodeName="
        self.slices = Store(
            client,
            SLICES.select(field_selector=fields),
            lambda body: _shared_view(stored_slice(body)),
            indexes={BY_POOL: lambda view: (view.pool,)},
        )

    @property
    def claimed(self) -> Collection[str] | None:
        """Attribute values of the Instances that claims may have; None while they are unknown."""
        if self._unsettled is None or self._unsettled:
            return None
        return frozenset().union(*self._claimable.values())

    def requeue(self) -> None:
        """Add all pools to the queue."""
        shown = {configuration_of_pool(view.pool) for view in self.slices}
        for name in sorted({*self._inputs.held(), *shown}):
            self._requeue(shared_pool(name))

    async def run(self) -> None:
        """Publish until cancelled; failures are logged and retried without a limit."""
        self._tasks.create_task(self.slices.run())
        stores: tuple[Store[Any], ...] = (self.slices, self._inputs.instances, self._inputs.nodes)
        for store in stores:
            await store.synced.wait()
        self.start()
        self.follow()

    def start(self) -> None:
        """Restore what an earlier process published; the stores must be in sync."""
        self.requeue()
        self._unsettled = set(self.pools)
        self._on_claimed()
        self._tasks.create_task(self._queue.run(), name="publish shared pools")

    async def _reconcile(self, name: str) -> Result:
        pool = self.pools.get(name)
        return Done() if pool is None else await pool.reconcile()

    def follow(self) -> None:
        """Add a pool to the queue whenever an object changes that it is made of."""
        self.slices.subscribe(self._slice_changed)
        self._inputs.instances.subscribe(self._instance_changed)
        self._inputs.nodes.subscribe(self._node_changed)

    def _requeue(self, name: str) -> None:
        """Add a pool to the queue, unless it has neither slices nor Instances."""
        if name not in self.pools:
            configuration = configuration_of_pool(name)
            is_stored = bool(self.slices.by_index(BY_POOL, name))
            if not is_stored and not self._inputs.instances.by_index(
                BY_CONFIGURATION, configuration
            ):
                return
            self._open(name)
        self._queue.add(name)

    def _instance_changed(self, change: Change[ObservedInstance]) -> None:
        old, new = _old_and_new(change)
        soon = urgency(old, new)
        if soon is Urgency.NEVER:
            return
        for name in {shared_pool(s.slots.configuration) for s in (old, new) if s}:
            if soon is Urgency.NOW or name not in self.pools:
                self._requeue(name)
            else:
                self._queue.add_after(name, GATHER_SECONDS)

    def _node_changed(self, change: Change[NodeState]) -> None:
        if not isinstance(change, Modified) or change.old.hostname != change.new.hostname:
            self.requeue()

    def _slice_changed(self, change: Change[StoredSlice]) -> None:
        view = change.old if isinstance(change, Deleted) else change.new
        if view.pool in self.pools:
            put_right(change, self._queue, view.pool)
        else:
            self._requeue(view.pool)

    def _claims_changed(self) -> None:
        for name, pool in self.pools.items():
            if pool.current.has_absent:
                self._queue.add(name)

    def _open(self, name: str) -> None:
        made = Pool(
            name=name,
            scope=AllNodesScope(),
            stays=False,
            device_nodes=self._offer.features.device_nodes,
        )
        publisher = PoolPublisher(self._client, made, self.slices)
        publisher.restore()
        self.pools[name] = PublishedPool(
            publisher,
            PoolWork(
                partial(self._decide, name),
                partial(self._written, name),
                partial(self._supply, configuration_of_pool(name)),
            ),
            PoolListeners(),  # This process prepares no claims.
            self._inputs.clock,
        )

    def _supply(self, name: ConfigurationName) -> Supply:
        """The supply of the pool of a Configuration."""
        verdict = self._inputs.held().get(name)
        if verdict is None or not self._offer.is_dra:
            return Supply()
        if verdict.configuration is None:
            return Supply(unheard=frozenset({verdict.name}))
        observed_instances = self._inputs.instances.by_index(BY_CONFIGURATION, verdict.name)
        shared = (observed for observed in observed_instances if observed.is_shared)
        return shared_supply(verdict.configuration, shared, nodes_of(self._inputs.nodes))

    async def _decide(self, name: str, supply: Supply, written: Publication) -> Publication:
        allocated = self.allocations.allocated_in(name)
        decide = partial(publish, allocated=allocated, now=datetime.now(UTC))
        many = len(supply.instances) + len(written.offers)
        return await in_thread_if_many(many, decide, supply, written, self._offer.features)

    def _written(self, name: str, publication: Publication) -> None:
        """Called after each write, also after one that failed."""
        allocated = None if publication.unsettled else self.allocations.allocated_in(name)
        self._follow_claims(publication)
        pool = self.pools[name]
        self._settle(name, claimable_instances(pool.written, allocated))
        if pool.is_idle and not self.slices.by_index(BY_POOL, name):
            del self.pools[name]

    def _follow_claims(self, publication: Publication) -> None:
        if publication.unsettled:
            self.allocations.renew()
        elif any(pool.current.has_absent for pool in self.pools.values()):
            self.allocations.turn_on()
        else:
            self.allocations.turn_off()

    def _settle(self, name: str, claimable: frozenset[str]) -> None:
        """Note which Instances of a pool claims may have, and report a change."""
        is_news = self._claimable.pop(name, frozenset()) != claimable
        if claimable:
            self._claimable[name] = claimable
        if self._unsettled and name in self._unsettled:
            self._unsettled.discard(name)
            is_news = not self._unsettled
        if is_news:
            self._on_claimed()


def _shared_view(view: StoredSlice) -> StoredSlice | None:
    return view if is_shared_pool(view.pool) else None


def _old_and_new(
    change: Change[ObservedInstance],
) -> tuple[ObservedInstance | None, ObservedInstance | None]:
    return getattr(change, "old", None), getattr(change, "new", None)

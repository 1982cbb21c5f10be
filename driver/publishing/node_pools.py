"""The pools of a node, each a key of one queue, reconciled concurrently.

    supply of each pool ──use──► publish ──► PoolPublisher ──► ResourceSlices
    ResourceClaims, watched only while a device is absent ──► when that device may be removed

A pool of one device does not wait for a pool of thousands. `local_pools` decides which pool has
which device.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from time import perf_counter

from driver.api import DRIVER_NAME, NodeName
from driver.names import is_pool_of
from driver.plumbing.apiserver_reconcilers import keyed_reconciler, put_right
from driver.plumbing.worker_threads import in_thread_if_many
from driver.publishing.apiserver_allocations import NODE_SPREAD_SECONDS, AllocationWatch
from driver.publishing.apiserver_pools import (
    POOLS_AT_ONCE,
    PoolListeners,
    PoolWork,
    PublishedPool,
)
from driver.publishing.apiserver_slices import BY_POOL, Pool, PoolPublisher, read_owner
from driver.publishing.apply.resource_slices import NodeScope, StoredSlice, stored_slice
from driver.publishing.desired.local_pools import Homes
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, Supply
from driver.publishing.desired.slices import Features
from kube.calls.api import ApiClient
from kube.kinds import SLICES
from kube.reconciling.api import Done, Result
from kube.stores.api import Change, Deleted, Store


class NodePools:
    """Publishes the devices that only one node sees.

    Attributes:
        slices: The stored slices of the node; the caller runs this store.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        tasks: asyncio.TaskGroup,
        listeners: PoolListeners,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        fields = f"spec.driver={DRIVER_NAME},spec.nodeName={node}"
        self.slices: Store[StoredSlice] = Store(
            client,
            SLICES.select(field_selector=fields),
            stored_slice,
            indexes={BY_POOL: lambda view: (view.pool,)},
        )
        self._client = client
        self._node = node
        self._tasks = tasks
        self._listeners = listeners
        self._clock = clock
        self._features: Features | None = None
        self.pools: dict[str, PublishedPool] = {}
        self._queue = keyed_reconciler("publishing", self._reconcile, workers=POOLS_AT_ONCE)
        self.allocations = AllocationWatch(
            client,
            self._is_ours,
            tasks,
            self._claims_changed,
            spread_seconds=NODE_SPREAD_SECONDS,
        )

    def start(self, features: Features) -> None:
        """Restore what an earlier process published; the store of slices must be in sync."""
        self._features = features
        self.slices.subscribe(self._slice_changed)
        for name in filter(self._is_ours, {self._node, *(view.pool for view in self.slices)}):
            self._open(name)
        self._tasks.create_task(self._queue.run(), name="publish pools")

    async def _reconcile(self, name: str) -> Result:
        pool = self.pools.get(name)
        return Done() if pool is None else await pool.reconcile()

    @property
    def current(self) -> Mapping[str, Publication]:
        """The publication that was decided last, by pool. The kubelet plugin prepares from it."""
        return {name: pool.current for name, pool in self.pools.items()}

    @property
    def shown_instances(self) -> frozenset[str]:
        """Values of the attribute `instance` of all devices that slices may have."""
        shown = (p.shown_instances for pool in self.pools.values() for p in pool.shown)
        return frozenset().union(*shown)

    @property
    def homes(self) -> Homes:
        """The pool of each device, see `local_pools`; the node's own pool if two pools have it."""
        homes: dict[str, str] = {}
        for name, pool in sorted(self.pools.items(), key=lambda pool: pool[0] == self._node):
            homes |= dict.fromkeys(pool.traces, name)
        return homes

    def use(self, supplies: Mapping[str, Supply]) -> None:
        """Take a new supply for each of these pools."""
        for name, supply in supplies.items():
            if (self.pools.get(name) or self._open(name)).use(supply):
                self._queue.add(name)

    def _is_ours(self, pool: str) -> bool:
        return is_pool_of(self._node, pool)

    def _open(self, name: str) -> PublishedPool:
        publisher = PoolPublisher(
            self._client,
            Pool(
                name=name,
                scope=NodeScope(self._node),
                stays=name == self._node,
                read_owner=lambda: read_owner(self._client, self._node),
            ),
            self.slices,
        )
        publisher.restore()
        pool = self.pools[name] = PublishedPool(
            publisher,
            PoolWork(partial(self._decide, name), partial(self._written, name)),
            self._listeners,
            self._clock,
        )
        self._queue.add(name)
        return pool

    async def _decide(self, name: str, supply: Supply, written: Publication) -> Publication:
        assert self._features is not None, "known when there are pools"
        decide = partial(
            publish, allocated=self.allocations.allocated_in(name), now=datetime.now(UTC)
        )
        many = len(supply.instances) + len(written.offers)
        return await in_thread_if_many(many, decide, supply, written, self._features)

    def _written(self, name: str, publication: Publication) -> None:
        """Called after each write, also after one that failed."""
        self._follow_claims(publication)
        is_stored = bool(self.slices.by_index(BY_POOL, name))
        if name != self._node and self.pools[name].is_idle and not is_stored:
            del self.pools[name]

    def _follow_claims(self, publication: Publication) -> None:
        if publication.unsettled:
            self.allocations.renew()
        elif any(pool.current.has_absent for pool in self.pools.values()):
            self.allocations.turn_on()
        else:
            self.allocations.turn_off()

    def _claims_changed(self) -> None:
        for name, pool in self.pools.items():
            if pool.current.has_absent:
                self._queue.add(name)

    def _slice_changed(self, change: Change[StoredSlice]) -> None:
        view = change.old if isinstance(change, Deleted) else change.new
        if view.pool in self.pools:
            put_right(change, self._queue, view.pool)
        elif self._is_ours(view.pool) and not isinstance(change, Deleted):
            self._open(view.pool)
            self._listeners.unknown()

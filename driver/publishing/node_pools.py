"""The pools of a node, each kept what there is for it, in passes of its own.

    supply of each pool ──use──► publish ──► PoolPublisher ──► ResourceSlices
    ResourceClaims, watched only while a device is away ──► when that device may be removed

So a pool of one device waits for none of thousands. `local_pools` says which pool shows what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import perf_counter
from typing import NoReturn

from driver.api import DRIVER_NAME, NodeName
from driver.names import is_pool_of
from driver.plumbing.apiserver_passes import Passes, put_right
from driver.plumbing.prometheus import PUBLISHED_SECONDS
from driver.plumbing.worker_threads import worked_out
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apiserver_slices import BY_POOL, Pool, PoolPublisher, read_owner
from driver.publishing.shown.local_pools import Homes, traces_of, traces_of_instance
from driver.publishing.shown.publication import Publication, Supply, publish
from driver.publishing.shown.slices import Features
from driver.publishing.written.resource_slices import NodeScope, SliceView, slice_view
from kube.api import SLICES, ApiClient, Change, Deleted, Store


@dataclass(frozen=True, slots=True)
class PoolListeners:
    """Who hears of the pools.

    Attributes:
        decided: Called when a pool's devices may be others than before.
        gone: Called when devices are in no slice any more.
        unknown: Called when there is a pool of which it was not said what there is for it.
        writing: Entered for as long as slices are written.
    """

    decided: Callable[[], None]
    gone: Callable[[], None]
    unknown: Callable[[], None]
    writing: Callable[[], AbstractContextManager[None]]


class LocalPool:
    """One pool.

    Attributes:
        current: What was decided last; what the kubelet plugin prepares from.
        passes: Each decides and writes.
    """

    def __init__(
        self,
        publisher: PoolPublisher,
        decide: Callable[[Supply, Publication], Awaitable[Publication]],
        on_written: Callable[[Publication], None],
        listeners: PoolListeners,
    ) -> None:
        """Create; `on_written` hears of each write, and of what failed too."""
        self.current = publisher.written
        self.passes = Passes(self._pass, name="publishing")
        self._publisher = publisher
        self._decide = decide
        self._on_written = on_written
        self._listeners = listeners
        self._supply: Supply | None = None
        self._deciding: Supply | None = None
        # When the first change came that is not written yet; None where all is.
        self._changed_at: float | None = None

    @property
    def shown(self) -> tuple[Publication, ...]:
        """All that its slices may show."""
        return (self._publisher.written, self.current)

    @property
    def is_idle(self) -> bool:
        """Whether it has no devices, and there is nothing to write."""
        empty = not any(publication.offers for publication in self.shown)
        return empty and not (self._supply and self._supply.instances)

    @property
    def traces(self) -> Iterator[str]:
        """What tells the devices that its slices may show, or will."""
        for publication in self.shown:
            yield from traces_of(publication)
        for instance in self._deciding.instances if self._deciding else ():
            yield from traces_of_instance(instance)

    def use(self, supply: Supply) -> None:
        """This is what there is now."""
        if supply != self._supply:
            self._supply = supply
            if self._changed_at is None:
                self._changed_at = perf_counter()
            self.passes.ask()

    async def _pass(self) -> float | None:
        if self._supply is None:
            return None
        before, supply = self._publisher.written, self._supply
        publication = await self._decided(supply, before)
        try:
            with self._listeners.writing():
                await self._publisher.write(publication)
        finally:
            self._on_written(publication)
        if self._changed_at is not None and supply is self._supply:
            PUBLISHED_SECONDS.observe(perf_counter() - self._changed_at)
            self._changed_at = None
        if before.offers.keys() - publication.offers.keys():
            self._listeners.gone()
        recheck_at = publication.recheck_at
        return (recheck_at - datetime.now(UTC)).total_seconds() if recheck_at else None

    async def _decided(self, supply: Supply, written: Publication) -> Publication:
        self._deciding = supply
        try:
            self.current = publication = await self._decide(supply, written)
        finally:
            self._deciding = None
        self._listeners.decided()
        return publication


class NodePools:
    """Publishes the devices that only one node sees.

    Attributes:
        slices: The node's, as the API server has them; run by somebody else.
    """

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        tasks: asyncio.TaskGroup,
        listeners: PoolListeners,
    ) -> None:
        fields = f"spec.driver={DRIVER_NAME},spec.nodeName={node}"
        self.slices: Store[SliceView] = Store(
            client,
            SLICES.select(field_selector=fields),
            slice_view,
            indexes={BY_POOL: lambda view: (view.pool,)},
        )
        self._client = client
        self._node = node
        self._tasks = tasks
        self._listeners = listeners
        self._features: Features | None = None
        self.pools: dict[str, LocalPool] = {}
        self._running: dict[str, asyncio.Task[NoReturn]] = {}
        self.allocations = AllocationWatch(client, self._is_ours, tasks, self._claims_changed)

    def start(self, features: Features) -> None:
        """Go on from what an earlier process published; the slices must be in sync."""
        self._features = features
        self.slices.subscribe(self._slice_changed)
        for name in filter(self._is_ours, {self._node, *(view.pool for view in self.slices)}):
            self._open(name)

    @property
    def current(self) -> Mapping[str, Publication]:
        """What was decided last, by pool; what the kubelet plugin prepares from."""
        return {name: pool.current for name, pool in self.pools.items()}

    @property
    def shown_instances(self) -> frozenset[str]:
        """Values of the attribute `instance` of all devices that slices may show."""
        shown = (p.shown_instances for pool in self.pools.values() for p in pool.shown)
        return frozenset().union(*shown)

    @property
    def homes(self) -> Homes:
        """Which pool shows what, see `local_pools`; the node's own, if by a fault two do."""
        pools = sorted(self.pools.items(), key=lambda pool: pool[0] == self._node)
        return {trace: name for name, pool in pools for trace in pool.traces}

    def use(self, supplies: Mapping[str, Supply]) -> None:
        """This is what there is now for these pools."""
        for name, supply in supplies.items():
            (self.pools.get(name) or self._open(name)).use(supply)

    def _is_ours(self, pool: str) -> bool:
        return is_pool_of(self._node, pool)

    def _open(self, name: str) -> LocalPool:
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
        publisher.recall()
        pool = self.pools[name] = LocalPool(
            publisher,
            partial(self._decide, name),
            partial(self._written, name),
            self._listeners,
        )
        run = pool.passes.run()
        self._running[name] = self._tasks.create_task(run, name=f"publish {name}")
        return pool

    async def _decide(self, name: str, supply: Supply, written: Publication) -> Publication:
        assert self._features is not None, "known when there are pools"
        decide = partial(
            publish, allocated=self.allocations.allocated_in(name), now=datetime.now(UTC)
        )
        many = len(supply.instances) + len(written.offers)
        return await worked_out(many, decide, supply, written, self._features)

    def _written(self, name: str, publication: Publication) -> None:
        """Whether it failed or not."""
        self._follow_claims(publication)
        is_stored = bool(self.slices.by_index(BY_POOL, name))
        if name != self._node and self.pools[name].is_idle and not is_stored:
            del self.pools[name]
            self._running.pop(name).cancel()

    def _follow_claims(self, publication: Publication) -> None:
        if publication.unsettled:
            self.allocations.renew()
        elif any(pool.current.away for pool in self.pools.values()):
            self.allocations.turn_on()
        else:
            self.allocations.turn_off()

    def _claims_changed(self) -> None:
        for pool in self.pools.values():
            if pool.current.away:
                pool.passes.ask()

    def _slice_changed(self, change: Change[SliceView]) -> None:
        view = change.old if isinstance(change, Deleted) else change.new
        if (pool := self.pools.get(view.pool)) is not None:
            put_right(change, pool.passes)
        elif self._is_ours(view.pool) and not isinstance(change, Deleted):
            self._open(view.pool)
            self._listeners.unknown()

"""The pools of devices that several nodes see, published by the elected driver.

    Configurations, Instances, Nodes ──shared_pools──► Supply ─┐
    ResourceSlices ──► what was published ─────────────────────┴publish──► ResourceSlices
    ResourceClaims, watched only while a device is away ──► when it, and its Instance, may go

Nothing is written before all of these have been listed, since not heard is not gone. All that is
remembered stands in the slices, so whoever is elected next goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from driver.api import DRIVER_NAME, ConfigurationName
from driver.configurations.configurations import Verdict
from driver.instances.cluster_instances import BY_CONFIGURATION
from driver.instances.slots.lost_nodes import NodeState
from driver.instances.unseen import InstanceSight
from driver.names import configuration_of_pool, is_shared_pool, shared_pool
from driver.plumbing.apiserver import each
from driver.plumbing.apiserver_passes import Passes, put_right
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apiserver_slices import BY_POOL, Pool, PoolPublisher
from driver.publishing.shown.publication import Publication, Supply, claimable_instances, publish
from driver.publishing.shown.shared_pools import Nodes, Urgency, nodes_of, shared_supply, urgency
from driver.publishing.shown.slices import Features
from driver.publishing.written.resource_slices import AllNodesScope, SliceView, slice_view
from kube.api import SLICES, ApiClient, Change, Modified, Store

logger = logging.getLogger(__name__)

GATHER_SECONDS = 0.5
"""How long changes of whom devices are for are gathered."""


@dataclass(frozen=True, slots=True)
class SharedOffer:
    """How the cluster's shared devices are offered.

    Attributes:
        features: What the API server keeps of a device.
        is_dra: Whether claims are the path; if not, what was published is withdrawn.
    """

    features: Features
    is_dra: bool


@dataclass(frozen=True, slots=True)
class SharedWorld:
    """What the pools are made of; the stores are run by somebody else.

    Attributes:
        held: Who holds each Configuration's name.
        instances: All Instances, with the index `BY_CONFIGURATION`.
    """

    held: Callable[[], Mapping[ConfigurationName, Verdict]]
    instances: Store[InstanceSight]
    nodes: Store[NodeState]


class ClusterPools:
    """Publishes one pool for each Configuration that has shared devices."""

    def __init__(
        self,
        client: ApiClient,
        offer: SharedOffer,
        world: SharedWorld,
        on_change: Callable[[], None],
    ) -> None:
        """Create; `on_change` is called when other Instances than before may be removed."""
        self._client = client
        self._offer = offer
        self._world = world
        self._on_change = on_change
        self.passes = Passes(self._pass, name="publishing shared devices")
        self._publishers: dict[str, PoolPublisher] = {}
        self._claimable: frozenset[str] | None = None
        self.allocations: AllocationWatch | None = None
        fields = f"spec.driver={DRIVER_NAME},spec.nodeName="
        self.slices = Store(
            client,
            SLICES.select(field_selector=fields),
            lambda body: _shared_view(slice_view(body)),
            indexes={BY_POOL: lambda view: (view.pool,)},
        )

    @property
    def claimed(self) -> Collection[str] | None:
        """Attribute values of Instances that claims may have; None before that is known."""
        return self._claimable

    def ask(self) -> None:
        """Look at all pools again."""
        self.passes.ask()

    async def run(self) -> None:
        """Publish until cancelled; failures are retried for ever, and logged."""
        async with asyncio.TaskGroup() as tasks:
            self.allocations = AllocationWatch(self._client, is_shared_pool, tasks, self.ask)
            tasks.create_task(self.slices.run())
            stores: tuple[Store[Any], ...] = (
                self.slices,
                self._world.instances,
                self._world.nodes,
            )
            for store in stores:
                await store.synced.wait()
            self.slices.subscribe(lambda change: put_right(change, self.passes))
            self._world.instances.subscribe(self._instance_changed)
            self._world.nodes.subscribe(self._node_changed)
            await self.passes.run()

    def _instance_changed(self, change: Change[InstanceSight]) -> None:
        match urgency(*_old_and_new(change)):
            case Urgency.NOW:
                self.ask()
            case Urgency.SOON:
                self.passes.ask_within(GATHER_SECONDS)
            case Urgency.NEVER:
                pass

    def _node_changed(self, change: Change[NodeState]) -> None:
        if not isinstance(change, Modified) or change.old.hostname != change.new.hostname:
            self.ask()

    async def _pass(self) -> float | None:
        assert self.allocations is not None, "set when it runs"
        now = datetime.now(UTC)
        allocated = self.allocations.allocated()
        decided = {
            name: publish(
                supply,
                publisher.written,
                self._offer.features,
                allocated=None if allocated is None else allocated.get(name, frozenset()),
                now=now,
            )
            for name, supply in self._supplies().items()
            if (publisher := self._publisher(name, supply))
        }
        try:
            await each(decided.items(), self._write)
        finally:
            unsettled = any(publication.unsettled for publication in decided.values())
            self._follow_claims(decided.values(), unsettled=unsettled)
            self._settle(None if unsettled else allocated)
        due = [p.recheck_at for p in decided.values() if p.recheck_at is not None]
        return (min(due) - now).total_seconds() if due else None

    def _supplies(self) -> Mapping[str, Supply]:
        """What there is for each pool: those that may have devices, and those that are shown."""
        held, nodes = self._world.held(), nodes_of(self._world.nodes)
        shown = {configuration_of_pool(view.pool) for view in self.slices}
        known = map(configuration_of_pool, self._publishers)
        return {
            shared_pool(name): self._supply(held.get(name), nodes)
            for name in sorted({*held, *shown, *known})
        }

    def _supply(self, verdict: Verdict | None, nodes: Nodes) -> Supply:
        if verdict is None or not self._offer.is_dra:
            return Supply()
        if verdict.configuration is None:
            return Supply(unheard=frozenset({verdict.name}))
        sights = self._world.instances.by_index(BY_CONFIGURATION, verdict.name)
        shared = (sight for sight in sights if sight.is_shared)
        return shared_supply(verdict.configuration, shared, nodes)

    def _publisher(self, name: str, supply: Supply) -> PoolPublisher | None:
        """Who writes a pool; None where there is nothing to write."""
        if name in self._publishers:
            return self._publishers[name]
        if not supply.instances and not self.slices.by_index(BY_POOL, name):
            return None
        pool = Pool(name=name, scope=AllNodesScope(), stays=False)
        publisher = self._publishers[name] = PoolPublisher(self._client, pool, self.slices)
        publisher.recall()
        return publisher

    async def _write(self, decided: tuple[str, Publication]) -> None:
        name, publication = decided
        await self._publishers[name].write(publication)
        if not publication.offers and not self.slices.by_index(BY_POOL, name):
            del self._publishers[name]

    def _follow_claims(self, decided: Iterable[Publication], *, unsettled: bool) -> None:
        assert self.allocations is not None, "set when it runs"
        if not any(publication.away for publication in decided):
            self.allocations.turn_off()
        elif unsettled:
            self.allocations.renew()
        else:
            self.allocations.turn_on()

    def _settle(self, allocated: Mapping[str, Collection[Any]] | None) -> None:
        """Say which Instances claims may have, by what is written and by what was known before."""
        before = self._claimable
        self._claimable = frozenset().union(
            *(
                claimable_instances(
                    publisher.written,
                    None if allocated is None else allocated.get(name, frozenset()),
                )
                for name, publisher in self._publishers.items()
            )
        )
        if self._claimable != before:
            self._on_change()


def _shared_view(view: SliceView) -> SliceView | None:
    return view if is_shared_pool(view.pool) else None


def _old_and_new(
    change: Change[InstanceSight],
) -> tuple[InstanceSight | None, InstanceSight | None]:
    return getattr(change, "old", None), getattr(change, "new", None)

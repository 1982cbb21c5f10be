"""The cluster, as a node's driver sees it: what it asks for, and what this node shows it.

    Configurations ──► discoveries ──answers──► inventory ──► Instances, ResourceSlices
    ResourceClaims, watched only while a device is away ──► when that device may be removed

Everything is a pass that may be repeated at any time: read the stores, decide, write. Whatever
changes only asks for another pass, so that a burst of events costs one pass, and a pass that
failed is simply done again. Instances, one object for each device, have passes of their own: a
thousand new ones must not keep the next device out of its slice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from driver.adoption import Adopted, feature_gates
from driver.api import DRIVER_NAME, NODE_LABEL, DeviceName, InstanceName, NodeName
from driver.apiserver import (
    CONFIGURATIONS,
    INSTANCES,
    SLICES,
    field_manager,
    probe_features,
    read_owner,
    write_instances,
    write_pool,
)
from driver.apiserver_claims import AllocationWatch
from driver.configurations import judge
from driver.discoveries import Discoveries
from driver.discovery.handlers import Handlers, check_details
from driver.instances import Instance, instance_body, plan_instances, stored_instance
from driver.inventory import Inventory, in_force, inventory_of
from driver.names import attribute_value, label_value
from driver.passes import Passes, until_done
from driver.pools import DesiredPool, PoolPlan, Refused, plan_pool
from driver.publication import (
    Publication,
    either,
    publication_of,
    publish,
    stored_devices,
)
from driver.resource_slices import NodeScope, SliceDevice, slice_device, slice_view
from driver.shards import DeviceGroup
from driver.slice_writes import Owner
from driver.slices import Features
from kube.api import ApiClient, ApiError, Change, Deleted, Store, UnavailableError

logger = logging.getLogger(__name__)

FIRST_ANSWERS_SECONDS = 2.0
"""How long the first pass waits for handlers, so that a start publishes once and not twice."""

DISAGREEMENT_SECONDS = 5.0
"""How soon an own object that somebody else changed is put right."""

_WITHOUT_DRA = Features(consumable_capacity=False, taints=False)


@dataclass(slots=True)
class _Memory:
    """What is kept between passes; losing it costs writes, never a device.

    Attributes:
        features: None where the API server serves no ResourceSlices.
        written: The publication that the API server has; if a write failed, all it may have.
        current: The publication that was decided last; what the kubelet plugin prepares from.
        inventory: What it was decided from.
    """

    features: Features | None = None
    owner: Owner | None = None
    adopted: Adopted = field(default_factory=Adopted)
    written: Publication = field(default_factory=lambda: Publication({}))
    current: Publication = field(default_factory=lambda: Publication({}))
    inventory: Inventory | None = None


class NodeCluster:
    """Keeps this node's Instances and ResourceSlices what its discovery handlers say."""

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        handlers: Handlers,
        tasks: asyncio.TaskGroup,
        *,
        unique_devices_default: bool,
    ) -> None:
        self._client = client
        self._node = node
        self._tasks = tasks
        self._passes = Passes(self._pass, name="publishing")
        self._instance_passes = Passes(self._write_instances, name="writing Instances")
        self._discoveries = Discoveries(handlers, tasks, self._on_answer)
        self._allocations = AllocationWatch(client, node, tasks, self._passes.ask)
        self._memory = _Memory()
        self._first_answers = asyncio.Event()
        self._decided = asyncio.Event()
        self._configurations = Store(
            client,
            CONFIGURATIONS.select(),
            lambda body: judge(body, check_details, unique_devices_default=unique_devices_default),
        )
        label = f"{NODE_LABEL}={label_value(node)}"
        self._instances = Store(client, INSTANCES.select(label_selector=label), stored_instance)
        fields = f"spec.driver={DRIVER_NAME},spec.nodeName={node}"
        self._slices = Store(client, SLICES.select(field_selector=fields), slice_view)

    async def instances(self) -> Mapping[tuple[str, DeviceName], Instance]:
        """What this node can prepare, by pool and device; waits for the first decision."""
        await self._decided.wait()
        return {
            (self._node, name): offer.instance
            for name, offer in self._memory.current.offers.items()
            if offer.instance is not None
        }

    async def run(self) -> None:
        """Publish until cancelled; failures are retried for ever, and logged."""
        await self._start_stores()
        await self._first_answers_or_time()
        self._tasks.create_task(self._instance_passes.run())
        await self._passes.run()

    async def _start_stores(self) -> None:
        stores: list[Store[Any]] = [self._configurations, self._instances]
        self._memory.features = await self._probe()
        if self._memory.features is not None:
            stores.append(self._slices)
        for store in stores:
            self._tasks.create_task(store.run())
        for store in stores:
            await store.synced.wait()
        self._configurations.subscribe(lambda _: self._passes.ask())
        self._instances.subscribe(lambda change: _put_right(change, self._instance_passes))
        self._slices.subscribe(lambda change: _put_right(change, self._passes))
        self._memory.written = publication_of(stored_devices(self._slices, self._node))

    async def _probe(self) -> Features | None:
        """Ask until the API server answers: without an answer nothing can be decided."""
        features = await until_done(
            lambda: probe_features(self._client, self._node),
            name="asking the API server for its features",
        )
        if features is None:
            logger.warning("no ResourceSlices here: only Instances are written")
        return features

    async def _first_answers_or_time(self) -> None:
        self._discoveries.follow(in_force(self._configurations))
        self._on_answer()
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ANSWERS_SECONDS):
                await self._first_answers.wait()

    def _on_answer(self) -> None:
        if self._discoveries.complete:
            self._first_answers.set()
        self._passes.ask()

    async def _pass(self) -> float | None:
        self._discoveries.follow(in_force(self._configurations))
        inventory = inventory_of(self._configurations, self._discoveries.heard, self._node)
        now = datetime.now(UTC)
        publication = publish(
            inventory,
            self._memory.written,
            self._memory.features or _WITHOUT_DRA,
            allocated=self._allocated(),
            now=now,
        )
        self._memory.current, self._memory.inventory = publication, inventory
        self._decided.set()
        self._instance_passes.ask()
        try:
            await self._write_slices(publication)
        finally:
            self._follow_claims(publication)
        return (publication.recheck_at - now).total_seconds() if publication.recheck_at else None

    def _allocated(self) -> frozenset[DeviceName] | None:
        if self._memory.features is None:
            return frozenset()
        return self._allocations.allocated

    async def _write_slices(self, publication: Publication) -> None:
        if self._memory.features is not None:
            devices = tuple(slice_device(offer.body) for offer in publication.offers.values())
            plan = await self._plan(devices)
            before = self._memory.adopted
            try:
                self._memory.adopted = await write_pool(
                    self._client, plan, before, self._slices.note
                )
            except ApiError as error:
                if _may_have_written(plan, error):
                    self._memory.written = either(self._memory.written, publication)
                raise
            _log_written(plan, len(devices), self._memory.adopted.dropped - before.dropped)
        self._memory.written = publication

    async def _plan(self, devices: tuple[SliceDevice, ...]) -> PoolPlan:
        plan = self._plan_for(self._memory.owner or await self._read_owner(), devices)
        if plan.creates:
            # The Node may have been made anew, and slices of the old one are collected with it.
            plan = self._plan_for(await self._read_owner(), devices)
        return plan

    async def _read_owner(self) -> Owner:
        self._memory.owner = await read_owner(self._client, self._node)
        return self._memory.owner

    def _plan_for(self, owner: Owner, devices: tuple[SliceDevice, ...]) -> PoolPlan:
        desired = DesiredPool(
            name=self._node,
            driver=DRIVER_NAME,
            groups=(DeviceGroup(NodeScope(self._node), devices),),
            owner=owner,
        )
        plan = plan_pool(desired, tuple(self._slices), self._memory.adopted)
        if isinstance(plan, Refused):
            logger.error("not published: %s", plan.sentence)
            return PoolPlan()
        return plan

    async def _write_instances(self) -> None:
        """A pass of its own; it follows the last decision, of which there is none at first."""
        inventory = self._memory.inventory
        if inventory is None:
            return
        bodies = [
            instance_body(instance, inventory.configurations[instance.configuration], self._node)
            for instance in inventory.local
        ]
        decisions = plan_instances(
            bodies,
            self._instances,
            unheard=inventory.unheard,
            held=self._held(self._memory.current),
        )
        manager = field_manager(self._node)
        await write_instances(self._client, decisions, manager, self._instances.note)

    def _held(self, publication: Publication) -> frozenset[InstanceName]:
        away = publication.away_instances
        return frozenset(s.name for s in self._instances if attribute_value(s.name) in away)

    def _follow_claims(self, publication: Publication) -> None:
        if not publication.away or self._memory.features is None:
            self._allocations.turn_off()
        else:
            self._allocations.turn_on()
        if publication.unsettled and self._allocated() is not None:
            self._passes.ask()


def _put_right(change: Change[Any], passes: Passes) -> None:
    """What was deleted is written anew at once, and what another wrote only after a while.

    During a rolling update two drivers may write the same objects and not agree: each would
    answer every write of the other.
    """
    if isinstance(change, Deleted):
        passes.ask()
    else:
        passes.ask_within(DISAGREEMENT_SECONDS)


def _may_have_written(plan: PoolPlan, error: ApiError) -> bool:
    unanswered = isinstance(error, UnavailableError) and error.may_have_happened
    return unanswered or len(plan.writes) > 1


def _log_written(plan: PoolPlan, devices: int, dropped: frozenset[str]) -> None:
    if plan.writes:
        logger.info("published devices=%d writes=%d", devices, len(plan.writes))
    if dropped:
        gates = ", ".join(feature_gates(dropped)) or "none known"
        fields = ", ".join(sorted(dropped))
        logger.warning("the API server dropped fields=%s feature_gates=%s", fields, gates)

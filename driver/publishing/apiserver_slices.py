"""One pool of ResourceSlices on the API server: writes what was decided for it.

    supply, written publication ──publish──► Publication ──► groups ──plan_pool──► writes

A pool outlives the process that wrote it: a publisher restores the publication from the slices
that are stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from driver.api import DRIVER_NAME, NodeName
from driver.plumbing.apiserver import delete, each
from driver.plumbing.prometheus import SLICE_WRITES, counted
from driver.plumbing.worker_threads import in_thread_if_many
from driver.publishing.apply.adoption import Adopted, adopt
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.apply.resource_slices import Scope, StoredSlice, counter_set, stored_slice
from driver.publishing.apply.slice_writes import CreateSlice, DeleteSlice, Owner, UpdateSlice
from driver.publishing.desired.groups import groups_of
from driver.publishing.desired.publication import (
    Publication,
    either,
    publication_of,
    stored_devices,
)
from driver.publishing.desired.slices import (
    Features,
    features_of,
    keeps_device_nodes,
    probe_device_nodes,
    probe_slice,
)
from kube.calls.api import (
    ApiClient,
    ApiError,
    InvalidError,
    NotFoundError,
    Preconditions,
    WriteOptions,
)
from kube.kinds import NODES, SLICES
from kube.objects import JsonObject
from kube.shapes.metadata import metadata_of
from kube.stores.api import Store


async def probe_features(client: ApiClient, node: NodeName | None) -> Features | None:
    """What the API server keeps of a device; None if it serves no ResourceSlices.

    The probe is a create with `dryRun: All`, which stores nothing.
    """
    dry_run = WriteOptions(dry_run=True)
    try:
        try:
            stored = await client.create(SLICES, probe_slice(node), options=dry_run)
        except InvalidError:
            probe = probe_slice(node, counters=False)
            stored = await client.create(SLICES, probe, options=dry_run)
    except NotFoundError:
        return None
    found = features_of(stored)
    return found if node else replace(found, device_nodes=await _keeps_device_nodes(client))


async def _keeps_device_nodes(client: ApiClient) -> bool:
    """An API server that drops the fields then refuses the object, with HTTP status 422."""
    dry_run = WriteOptions(dry_run=True)
    try:
        return keeps_device_nodes(
            await client.create(SLICES, probe_device_nodes(), options=dry_run)
        )
    except InvalidError:
        return False


async def read_owner(client: ApiClient, node: NodeName) -> Owner:
    """The Node as the owner of its slices: they are garbage-collected with it."""
    body = await client.get(NODES.at(node))
    return Owner("v1", "Node", node, metadata_of(body).uid)


async def write_pool(
    client: ApiClient, plan: PoolPlan, adopted: Adopted, note: Callable[[JsonObject], None]
) -> Adopted:
    """Carry out a plan, and call `note` with every answer.

    Deletes are sent one after the other, in their order. Updates follow, then creates, several of
    each concurrently: the pool is incomplete until the last of them in any case. Outdated slices
    are deleted last, since readers ignore them by then.

    Raises:
        ApiError: A write failed, and no write was started after it. Read again and plan again.
    """
    for gone in plan.deletes:
        await _delete(client, gone)
    answers: list[tuple[UpdateSlice | CreateSlice, JsonObject]] = []
    failed = asyncio.Event()

    async def write(decision: UpdateSlice | CreateSlice) -> None:
        if failed.is_set():  # An API server that does not answer is not asked for each slice.
            return
        try:
            answer = await _write_slice(client, decision)
        except ApiError:
            failed.set()
            raise
        note(answer)
        answers.append((decision, answer))

    await each(plan.updates, write)
    await each(plan.creates, write)
    await each(plan.outdated, partial(_delete, client))
    for decision, answer in answers:
        stored = stored_slice(answer).content
        adopted = adopt(adopted, decision.index, decision.content, stored)
    return adopted


async def _delete(client: ApiClient, gone: DeleteSlice) -> None:
    with counted(SLICE_WRITES, "delete"):
        seen = Preconditions(gone.uid, gone.resource_version)
        await delete(client, SLICES, gone.name, seen)


async def _write_slice(client: ApiClient, decision: UpdateSlice | CreateSlice) -> JsonObject:
    if isinstance(decision, UpdateSlice):
        with counted(SLICE_WRITES, "update"):
            return await client.replace(SLICES.at(decision.name), decision.body)
    with counted(SLICE_WRITES, "create"):
        return await client.create(SLICES, decision.body)


logger = logging.getLogger(__name__)

BY_POOL = "slices by pool"
"""Name of the index of a store of slices by the pool's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that this process publishes.

    Attributes:
        scope: The nodes that see the devices which have no scope of their own.
        stays: Whether the pool keeps a slice while it has no devices.
        device_nodes: Whether each device may have a scope of its own (KEP-4815).
        read_owner: Reads the owner object, with which the slices are garbage-collected; None if
            the pool has no owner.
    """

    name: str
    scope: Scope
    stays: bool
    device_nodes: bool = False
    read_owner: Callable[[], Awaitable[Owner]] | None = None


class PoolPublisher:
    """Writes one pool.

    Attributes:
        written: The publication that the API server has; after a failed write, all it may have.
    """

    def __init__(self, client: ApiClient, pool: Pool, slices: Store[StoredSlice]) -> None:
        """Create; `slices` is a store of the stored slices, with the index `BY_POOL`."""
        self.written = Publication({})
        self._client = client
        self._pool = pool
        self._slices = slices
        self._owner: Owner | None = None
        self._adopted: Adopted = {}

    def restore(self) -> None:
        """Restore what an earlier process published; the store of slices must be in sync."""
        self.written = publication_of(stored_devices(self._stored()))

    async def write(self, publication: Publication) -> int:
        """Write the pool as it is decided; returns the number of writes.

        Raises:
            ApiError: A write failed. Decide again, and write the new decision.
        """
        plan = await self._plan(publication)
        before = self._adopted
        try:
            self._adopted = await write_pool(self._client, plan, before, self._slices.note)
        except ApiError as error:
            if _may_have_written(plan, error):
                self.written = either(self.written, publication)
            raise
        name, devices, writes = self._pool.name, len(publication.offers), len(plan.writes)
        if writes:
            logger.info("published pool=%s devices=%d writes=%d", name, devices, writes)
        if self._adopted and not before:
            logger.warning("the API server drops fields of ResourceSlices pool=%s", name)
        self.written = publication
        return writes

    async def _plan(self, publication: Publication) -> PoolPlan:
        if not (publication.offers or self._pool.stays):
            return await self._plan_for(None)
        known = self._owner
        plan = await self._plan_for(publication, known or await self._read_owner())
        if plan.creates and known:
            # The owner may have been recreated. Slices of the old one are garbage-collected.
            plan = await self._plan_for(publication, await self._read_owner())
        return plan

    async def _read_owner(self) -> Owner | None:
        if self._pool.read_owner is not None:
            self._owner = await self._pool.read_owner()
        return self._owner

    async def _plan_for(
        self, publication: Publication | None, owner: Owner | None = None
    ) -> PoolPlan:
        many = len(publication.offers) if publication else 0
        views = self._stored()
        return await in_thread_if_many(
            many, _plan, self._pool, publication, owner, views, self._adopted
        )

    def _stored(self) -> tuple[StoredSlice, ...]:
        return self._slices.by_index(BY_POOL, self._pool.name)


def _plan(
    pool: Pool,
    publication: Publication | None,
    owner: Owner | None,
    views: tuple[StoredSlice, ...],
    adopted: Adopted,
) -> PoolPlan:
    if publication is None:
        return plan_pool(None, views, adopted)
    groups = groups_of(publication, pool.scope, views, device_nodes=pool.device_nodes)
    counters = tuple(map(counter_set, publication.counter_sets))
    desired = DesiredPool(
        name=pool.name, driver=DRIVER_NAME, groups=groups, owner=owner, counters=counters
    )
    return plan_pool(desired, views, adopted)


def _may_have_written(plan: PoolPlan, error: ApiError) -> bool:
    return error.may_have_happened or len(plan.writes) > 1

"""One pool of ResourceSlices on the API server, kept what is decided about it.

    supply, what was written ──publish──► Publication ──► groups ──plan_pool──► writes

What a pool shows survives the process that wrote it: a publisher begins with what is stored.
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
from driver.plumbing.worker_threads import worked_out
from driver.publishing.shown.groups import groups_of
from driver.publishing.shown.publication import Publication, either, publication_of, stored_devices
from driver.publishing.shown.slices import (
    Features,
    features_of,
    keeps_device_nodes,
    probe_device_nodes,
    probe_slice,
)
from driver.publishing.written.adoption import Adopted, adopt
from driver.publishing.written.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.written.resource_slices import Scope, StoredSlice, counter_set, stored_slice
from driver.publishing.written.slice_writes import CreateSlice, DeleteSlice, Owner, UpdateSlice
from kube.api import (
    NODES,
    SLICES,
    ApiClient,
    ApiError,
    InvalidError,
    JsonObject,
    NotFoundError,
    Preconditions,
    Store,
    WriteOptions,
)
from kube.shapes.metadata import metadata_of


async def probe_features(client: ApiClient, node: NodeName | None) -> Features | None:
    """What the API server keeps of a device; None where it serves no ResourceSlices.

    The create is a dry run: nothing is stored.
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
    """An error of validation is the answer of an API server that drops the fields first."""
    dry_run = WriteOptions(dry_run=True)
    try:
        return keeps_device_nodes(
            await client.create(SLICES, probe_device_nodes(), options=dry_run)
        )
    except InvalidError:
        return False


async def read_owner(client: ApiClient, node: NodeName) -> Owner:
    """The Node, whose end is the end of its slices."""
    body = await client.get(NODES.at(node))
    return Owner("v1", "Node", node, metadata_of(body).uid)


async def write_pool(
    client: ApiClient, plan: PoolPlan, adopted: Adopted, note: Callable[[JsonObject], None]
) -> Adopted:
    """Carry out a plan, and tell `note` of every answer.

    Deletions go one after the other, in their order; then updates, then creations, each some at
    once: until the last of several is there, the pool is incomplete in any case. What is out of
    date goes last: nobody sees it any more.

    Raises:
        ApiError: A write failed, and no other was begun since; read again and plan again.
    """
    for gone in plan.deletes:
        await _delete(client, gone)
    answers: list[tuple[UpdateSlice | CreateSlice, JsonObject]] = []
    failed = asyncio.Event()

    async def write(decision: UpdateSlice | CreateSlice) -> None:
        if failed.is_set():  # An API server that is away is not asked for each of them.
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
"""Index of a store of slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool that somebody publishes.

    Attributes:
        scope: Who sees those of its devices that do not say it themselves.
        stays: Whether it is there without devices, too.
        device_nodes: Whether its devices may say themselves who sees them.
        read_owner: Asks for the object whose end is the end of the slices; None where there is
            none.
    """

    name: str
    scope: Scope
    stays: bool
    device_nodes: bool = False
    read_owner: Callable[[], Awaitable[Owner]] | None = None


class PoolPublisher:
    """Writes one pool.

    Attributes:
        written: The publication that the API server has; if a write failed, all it may have.
    """

    def __init__(self, client: ApiClient, pool: Pool, slices: Store[StoredSlice]) -> None:
        """`slices` are those that the API server has, with the index `BY_POOL`."""
        self.written = Publication({})
        self._client = client
        self._pool = pool
        self._slices = slices
        self._owner: Owner | None = None
        self._adopted: Adopted = {}

    def recall(self) -> None:
        """Go on from what an earlier process published; the slices must be in sync."""
        self.written = publication_of(stored_devices(self._stored()))

    async def write(self, publication: Publication) -> int:
        """Let the pool show this; how many slices were written for it.

        Raises:
            ApiError: After the first write that fails; decide anew, and write that.
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
            # The owner may have been made anew, and slices of the old one are collected with it.
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
        return await worked_out(many, _plan, self._pool, publication, owner, views, self._adopted)

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

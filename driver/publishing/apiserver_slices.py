"""The API server's ResourceSlices: what it keeps of a device, and the writes that were planned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from driver.api import NodeName
from driver.plumbing.apiserver import delete, each
from driver.plumbing.prometheus import SLICE_WRITES, counted
from driver.publishing.shown.slices import Features, features_of, probe_slice
from driver.publishing.written.adoption import Adopted, adopt
from driver.publishing.written.pools import PoolPlan
from driver.publishing.written.resource_slices import CreateSlice, Owner, UpdateSlice, slice_view
from kube.api import (
    NODES,
    SLICES,
    ApiClient,
    ApiError,
    JsonObject,
    NotFoundError,
    Preconditions,
    WriteOptions,
)


async def probe_features(client: ApiClient, node: NodeName | None) -> Features | None:
    """What the API server keeps of a device; None where it serves no ResourceSlices.

    The create is a dry run: nothing is stored.
    """
    try:
        stored = await client.create(SLICES, probe_slice(node), options=WriteOptions(dry_run=True))
    except NotFoundError:
        return None
    return features_of(stored)


async def read_owner(client: ApiClient, node: NodeName) -> Owner:
    """The Node, whose end is the end of its slices."""
    body = await client.get(NODES.at(node))
    return Owner("v1", "Node", node, body["metadata"]["uid"])


async def write_pool(
    client: ApiClient, plan: PoolPlan, adopted: Adopted, note: Callable[[JsonObject], None]
) -> Adopted:
    """Carry out a plan, and tell `note` of every answer.

    Deletions go one after the other, in their order; then updates, then creations, each some at
    once: until the last of several is there, the pool is incomplete in any case.

    Raises:
        ApiError: A write failed, and no other was begun since; read again and plan again.
    """
    for gone in plan.deletes:
        with counted(SLICE_WRITES, "delete"):
            seen = Preconditions(gone.uid, gone.resource_version)
            await delete(client, SLICES, gone.name, seen)
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
    for decision, answer in answers:
        stored = slice_view(answer).content
        adopted = adopt(adopted, decision.index, decision.content, stored)
    return adopted


async def _write_slice(client: ApiClient, decision: UpdateSlice | CreateSlice) -> JsonObject:
    if isinstance(decision, UpdateSlice):
        with counted(SLICE_WRITES, "update"):
            return await client.replace(SLICES.at(decision.name), decision.body)
    with counted(SLICE_WRITES, "create"):
        return await client.create(SLICES, decision.body)

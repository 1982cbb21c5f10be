"""The API server: carries out what the core decided, one object at a time."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from driver.api import (
    AKRI_GROUP,
    AKRI_VERSION,
    DRIVER_NAME,
    NodeName,
)
from driver.configurations.classes import ApplyClass, ClassDecision, probe_class
from driver.plumbing.metrics import SLICE_WRITES
from driver.plumbing.prometheus import counted
from driver.publishing.shown.slices import Features, features_of, probe_slice
from driver.publishing.written.adoption import Adopted, adopt
from driver.publishing.written.pools import PoolPlan
from driver.publishing.written.resource_slices import slice_view
from driver.publishing.written.slice_writes import CreateSlice, Owner, UpdateSlice
from kube.api import (
    ApiClient,
    ApiError,
    JsonObject,
    NotFoundError,
    Preconditions,
    Resource,
    WriteOptions,
)

CONFIGURATIONS = Resource(AKRI_GROUP, AKRI_VERSION, "configurations")
INSTANCES = Resource(AKRI_GROUP, AKRI_VERSION, "instances")
NODES = Resource("", "v1", "nodes", namespaced=False)
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False)
CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False)
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims")
PODS = Resource("", "v1", "pods")

WRITES_AT_ONCE = 8

_FIELD_MANAGER_LIMIT = 128

logger = logging.getLogger(__name__)

T = TypeVar("T")


def field_manager(node: NodeName) -> str:
    """The name under which a node's driver owns fields: one manager for each node."""
    name = f"{DRIVER_NAME}/{node}"
    if len(name) <= _FIELD_MANAGER_LIMIT:
        return name
    digest = hashlib.blake2b(node.encode(), digest_size=8).hexdigest()
    return f"{name[: _FIELD_MANAGER_LIMIT - len(digest) - 1]}-{digest}"


async def probe_features(client: ApiClient, node: NodeName | None) -> Features | None:
    """What the API server keeps of a device; None where it serves no ResourceSlices.

    The create is a dry run: nothing is stored.
    """
    try:
        stored = await client.create(SLICES, probe_slice(node), options=WriteOptions(dry_run=True))
    except NotFoundError:
        return None
    return features_of(stored)


async def probe_extended_resources(client: ApiClient) -> bool | None:
    """Whether a DeviceClass keeps `extendedResourceName`; None where there are no DeviceClasses.

    The create is a dry run: nothing is stored.
    """
    body = probe_class()
    try:
        stored = await client.create(CLASSES, body, options=WriteOptions(dry_run=True))
    except NotFoundError:
        return None
    return "extendedResourceName" in stored["spec"]


async def read_owner(client: ApiClient, node: NodeName) -> Owner:
    """The Node, whose end is the end of its slices."""
    body = await client.get(NODES.at(node))
    return Owner("v1", "Node", node, body["metadata"]["uid"])


class ClaimReader:
    """ResourceClaims as they are now, see `kubelet_claims.ClaimReader`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        try:
            return await self._client.get(CLAIMS.at(name, namespace), timeout_seconds=5)
        except NotFoundError:
            return None

    async def claims(self) -> Iterable[Mapping[str, Any]]:
        return (await self._client.list(CLAIMS.select())).items


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


async def write_classes(
    client: ApiClient,
    decisions: Iterable[ClassDecision],
    manager: str,
    note: Callable[[JsonObject], None],
) -> None:
    """Carry out all decisions, see `each`."""

    async def write(decision: ClassDecision) -> None:
        if isinstance(decision, ApplyClass):
            path = CLASSES.at(decision.body["metadata"]["name"])
            options = WriteOptions(field_manager=manager)
            note(await client.apply(path, decision.body, force=True, options=options))
        else:
            preconditions = Preconditions(decision.uid, decision.resource_version)
            await delete(client, CLASSES, decision.name, preconditions)

    await each(decisions, write)


async def delete(
    client: ApiClient,
    resource: Resource,
    name: str,
    preconditions: Preconditions,
    namespace: str = "",
) -> None:
    """Delete what may be gone already: the purpose is reached either way."""
    try:
        await client.delete(resource.at(name, namespace), preconditions=preconditions)
    except NotFoundError:
        logger.debug("already deleted %s %s", resource.plural, name)


async def each(items: Iterable[T], write: Callable[[T], Awaitable[None]]) -> None:
    """Do all of them, some at once; one that fails does not keep the others from being tried.

    Raises:
        ApiError: The first failure, when all were tried.
    """
    limit = asyncio.Semaphore(WRITES_AT_ONCE)

    async def limited(item: T) -> None:
        async with limit:
            await write(item)

    results = await asyncio.gather(*map(limited, items), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, ApiError):
            raise failure
    if failures:
        raise failures[0]

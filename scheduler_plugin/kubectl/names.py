"""Names that a cluster has, for whoever types one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from kube.api import (
    INSTANCES,
    NAMESPACES,
    PODS,
    QUEUES,
    SLICES,
    ApiClient,
    ApiError,
    JsonObject,
    KubeconfigError,
    connect,
)

_KINDS = {
    "queues": (QUEUES,),
    "namespaces": (NAMESPACES,),
    "pods": (PODS,),
    "devices": (SLICES, INSTANCES),
}


async def names_of(kind: str, namespace: str, seconds: float) -> list[str]:
    """The names of a kind; none where the cluster does not tell them in time."""
    try:
        async with asyncio.timeout(seconds), connect() as client:
            return sorted({name async for name in _listed(client, kind, namespace)})
    except (ApiError, KubeconfigError, TimeoutError, OSError):
        return []


async def _listed(client: ApiClient, kind: str, namespace: str) -> AsyncIterator[str]:
    for resource in _KINDS[kind]:
        selection = resource.select((namespace or client.namespace) if kind == "pods" else "")
        for obj in (await client.list(selection)).items:
            for name in _names_in(kind, obj):
                yield name


def _names_in(kind: str, obj: JsonObject) -> Iterator[str]:
    devices = (obj.get("spec") or {}).get("devices") if kind == "devices" else None
    if devices is None:
        yield obj["metadata"]["name"]
    for device in devices or ():
        yield device["name"]

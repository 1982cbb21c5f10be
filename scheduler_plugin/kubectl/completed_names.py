"""Names of objects in the cluster, for completion; none if it does not answer in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable

from kube.calls.api import ApiClient, ApiError, KubeconfigError, connect
from kube.kinds import CLAIMS, INSTANCES, NAMESPACES, PODS, QUEUES, SLICES
from kube.objects import JsonObject

SECONDS = 3.0
"""How long the cluster may take to answer: a user waits at the keyboard."""

_KINDS = {
    "queues": (QUEUES,),
    "namespaces": (NAMESPACES,),
    "pods": (PODS,),
    "claims": (CLAIMS,),
    "devices": (SLICES, INSTANCES),
}
_NAMESPACED = frozenset({"pods", "claims"})
"""The kinds that are completed in one namespace; devices are those of all namespaces."""


def completed_names(kind: str, namespace: str) -> list[str]:
    """The names of a kind in a namespace; "" is the current namespace."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(_names_of(kind, namespace))


async def _names_of(kind: str, namespace: str) -> list[str]:
    try:
        async with asyncio.timeout(SECONDS), connect() as client:
            return sorted({name async for name in _listed(client, kind, namespace)})
    except (ApiError, KubeconfigError, TimeoutError, OSError):
        return []


async def _listed(client: ApiClient, kind: str, namespace: str) -> AsyncIterator[str]:
    for resource in _KINDS[kind]:
        where = (namespace or client.namespace) if kind in _NAMESPACED else ""
        for obj in (await client.list(resource.select(where))).items:
            for name in _names_in(kind, obj):
                yield name


def _names_in(kind: str, obj: JsonObject) -> Iterable[str]:
    devices = (obj.get("spec") or {}).get("devices") if kind == "devices" else None
    if devices is None:
        yield obj["metadata"]["name"]
    for device in devices or ():
        yield device["name"]

"""Reads ResourceClaims from the API server when the kubelet asks about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from driver.api import ClaimUid, NodeName
from driver.preparing.files.prepared import ClaimReference, Home
from driver.preparing.grants.claims import Failure
from kube.calls.api import ApiClient, NotFoundError
from kube.kinds import CLAIMS, NAMESPACES, NODES
from kube.shapes.full_claims import FullClaim
from kube.shapes.metadata import metadata_of
from kube.shapes.reading import read_as

API_SECONDS = 10.0
"""Timeout of one read from the API server."""

READS_AT_ONCE = 64

CLUSTER = "kube-system"
"""The namespace that is as old as the cluster: its UID identifies the cluster."""

FoundClaim = FullClaim | Failure | None
"""A current claim; None if it does not exist; a Failure if that is unknown."""


class ClaimReader(Protocol):
    """ResourceClaims from the API server, not from a cache. Any exception means 'unknown'."""

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The current claim; None if it does not exist."""

    async def claim_of(self, uid: ClaimUid) -> Mapping[str, Any] | None:
        """The same by its UID alone, which is much slower."""

    async def home(self) -> Home:
        """The UIDs of this node and cluster."""


class ClaimReads:
    """Reads with a timeout; at most `READS_AT_ONCE` run concurrently."""

    def __init__(self, reader: ClaimReader) -> None:
        self._reader = reader
        self._at_once = asyncio.Semaphore(READS_AT_ONCE)

    async def claim(self, wanted: ClaimReference) -> FoundClaim:
        """The claim by its name or, without a name, by its UID."""
        try:
            async with self._at_once, asyncio.timeout(API_SECONDS):
                if wanted.name:
                    found = await self._reader.claim(wanted.namespace, wanted.name)
                else:
                    found = await self._reader.claim_of(wanted.uid)
                return None if found is None else read_as(FullClaim, found)
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the answer is one
            why = error_text(error)
            return Failure(f"the API server cannot be asked for ResourceClaim {wanted}: {why}")


class ApiClaims:
    """Current ResourceClaims, see `ClaimReader`."""

    def __init__(self, client: ApiClient, node: NodeName) -> None:
        self._client = client
        self._node = node

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        try:
            return await self._client.get(CLAIMS.at(name, namespace), timeout_seconds=5)
        except NotFoundError:
            return None

    async def claim_of(self, uid: ClaimUid) -> Mapping[str, Any] | None:
        claims = (await self._client.list(CLAIMS.select(), timeout_seconds=8)).items
        return next((claim for claim in claims if metadata_of(claim).uid == uid), None)

    async def home(self) -> Home:
        node = await self._client.get(NODES.at(self._node), timeout_seconds=5)
        cluster = await self._client.get(NAMESPACES.at(CLUSTER), timeout_seconds=5)
        return Home(metadata_of(node).uid, metadata_of(cluster).uid)


def error_text(error: Exception) -> str:
    """The text of an exception; the name of its class if it has no text."""
    return str(error) or type(error).__name__

"""The API server's ResourceClaims, read when the kubelet asks about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driver.api import ClaimUid, NodeName
from driver.preparing.files.prepared import Home
from kube.api import CLAIMS, NAMESPACES, NODES, ApiClient, NotFoundError

CLUSTER = "kube-system"
"""The namespace that is as old as the cluster: its UID tells one cluster from the next."""


class ClaimReader:
    """ResourceClaims as they are now, see `kubelet_claims.ClaimReader`."""

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
        return next((claim for claim in claims if claim["metadata"]["uid"] == uid), None)

    async def home(self) -> Home:
        node = await self._client.get(NODES.at(self._node), timeout_seconds=5)
        cluster = await self._client.get(NAMESPACES.at(CLUSTER), timeout_seconds=5)
        return Home(node["metadata"]["uid"], cluster["metadata"]["uid"])

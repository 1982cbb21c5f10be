"""The API server's ResourceClaims, read when the kubelet asks about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driver.api import ClaimUid
from kube.api import CLAIMS, ApiClient, NotFoundError


class ClaimReader:
    """ResourceClaims as they are now, see `kubelet_claims.ClaimReader`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        try:
            return await self._client.get(CLAIMS.at(name, namespace), timeout_seconds=5)
        except NotFoundError:
            return None

    async def claim_of(self, uid: ClaimUid) -> Mapping[str, Any] | None:
        claims = (await self._client.list(CLAIMS.select(), timeout_seconds=8)).items
        return next((claim for claim in claims if claim["metadata"]["uid"] == uid), None)

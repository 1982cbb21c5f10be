"""ResourceClaims that are allocated by hand, as kube-scheduler would allocate them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from bench.dra_drivers import SECONDS, Claims
from driver.kubelet_api.dra.v1 import api_pb2 as v1
from kube.calls.api import ApiClient
from kube.kinds import CLAIMS, SLICES
from kube.objects import JsonObject

AT_ONCE = 16
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Offer:
    """What a driver offers on a node, as its ResourceSlices say."""

    driver: str
    pool: str
    devices: Sequence[str]

    def results(self, devices: Sequence[str], share: str = "") -> list[JsonObject]:
        """Of an allocation of these devices, or of a share of each."""
        more = {"shareID": share} if share else {}
        return [
            {"request": f"req-{n}", "driver": self.driver, "pool": self.pool, "device": d, **more}
            for n, d in enumerate(devices)
        ]


class ClaimMaker:
    """Creates claims, and allocates them devices of an offer."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._places = asyncio.Semaphore(AT_ONCE)
        self._made = 0

    async def offer(self, driver: str, devices: int) -> Offer:
        """Wait until a driver shows as many devices."""
        async with asyncio.timeout(SECONDS):
            while True:
                slices = (await self._client.list(SLICES.select())).items
                specs = [s["spec"] for s in slices if s["spec"]["driver"] == driver]
                names = [d["name"] for spec in specs for d in spec.get("devices") or ()]
                if len(names) >= devices:
                    return Offer(driver, specs[0]["pool"]["name"], sorted(names))
                await asyncio.sleep(POLL_SECONDS)

    async def exclusive(self, offer: Offer, claims: int, devices: int) -> Claims:
        """Claims of as many devices each, that have none in common."""
        parts = [offer.devices[n * devices : (n + 1) * devices] for n in range(claims)]
        return await asyncio.gather(*(self._made_of(offer.results(part)) for part in parts))

    async def shares(self, offer: Offer, claims: int) -> Claims:
        """Claims that share the last device."""
        results = (offer.results(offer.devices[-1:], str(uuid.uuid4())) for _ in range(claims))
        return await asyncio.gather(*(self._made_of(each) for each in results))

    async def _made_of(self, results: list[JsonObject]) -> v1.Claim:
        self._made += 1
        name = f"claim-{self._made}"
        requests = [{"name": r["request"], "exactly": {"deviceClassName": "any"}} for r in results]
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": requests}},
        }
        async with self._places:
            made = await self._client.create(CLAIMS, body)
            status = {"allocation": {"devices": {"results": results}}, "reservedFor": [_POD]}
            path = CLAIMS.at(name, "default", subresource="status")
            await self._client.merge_patch(path, {"status": status})
        return v1.Claim(namespace="default", name=name, uid=made["metadata"]["uid"])

    async def delete(self, claims: Claims) -> None:
        await asyncio.gather(*(self._delete(claim) for claim in claims))

    async def _delete(self, claim: v1.Claim) -> None:
        async with self._places:
            await self._client.delete(CLAIMS.at(claim.name, claim.namespace))


_POD = {"resource": "pods", "name": "pod", "uid": "00000000-0000-4000-8000-000000000000"}

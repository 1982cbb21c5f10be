"""Unprepares claims that no pod of this node uses any more, see `stale_claims`.

    pod-resources, API server ──reconcile──► unprepared, with an Event on the Node

A claim with an unreadable record is prepared anew if the API server still has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import grpc.aio
from google.protobuf.message import DecodeError

from driver.api import ClaimUid, NodeName
from driver.plumbing.apiserver_reconcilers import whole_reconciler
from driver.plumbing.kubelet_channels import list_pod_resources
from driver.plumbing.prometheus import STALE_CLAIMS
from driver.preparing.apiserver_claims import FoundClaim
from driver.preparing.claim_events import pods_of
from driver.preparing.files.prepared import VERSION, ClaimReference, Home, PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.stale_claims import (
    Evidence,
    Listing,
    Staleness,
    is_allocated,
    is_of_other_cluster,
    staleness,
    uids_of,
)
from kube.calls.api import ApiClient
from kube.events.api import Event, ObjectReference
from kube.kinds import PODS
from kube.reconciling.api import After
from kube.shapes.full_claims import FullClaim
from kube.shapes.metadata import NO_METADATA
from kube.shapes.pods import Pod
from kube.shapes.reading import read_as

logger = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
"""How often to check; only claims that the kubelet does not list cost calls to the API server."""


@dataclass(eq=False)
class StaleClaims:
    """Finds stale claims and unprepares them, while `run` runs.

    Attributes:
        grace: How long a claim that the API server lacks must be stale before it is unprepared.
        record: Takes Events and must not block.
    """

    client: ApiClient
    node: NodeName
    kubelet_root: Path
    claims: KubeletClaims
    grace: timedelta
    record: Callable[[Event], None]

    def __post_init__(self) -> None:
        self._socket = self.kubelet_root / "pod-resources" / "kubelet.sock"
        self._selection = PODS.select(field_selector=f"spec.nodeName={self.node}")
        self._queue = whole_reconciler("looking for stale claims", self._reconcile)
        self._since: dict[ClaimUid, float] = {}

    async def run(self) -> NoReturn:
        """Check until cancelled; failures are logged and retried."""
        await self._queue.run()

    async def _reconcile(self) -> After:
        home = await self.claims.home()  # so that the first claim does not wait for it
        claims = self.claims.prepared
        if not claims:
            self._since.clear()
            return After(LOOK_SECONDS)
        listing = await self._listing()
        suspects = [c for c in claims.values() if _is_suspect(c, home, listing)]
        read = await self._read(suspects)
        await self._prepare_unreadable(suspects, read)
        evidence = await self._evidence(suspects, read, listing)
        stale = {
            claim.reference.uid: found
            for claim in suspects
            if (found := staleness(claim, home, evidence[claim.reference.uid], self.grace))
        }
        await self._unprepare_due(stale, home)
        return After(min(LOOK_SECONDS, self.grace.total_seconds() or LOOK_SECONDS))

    async def _listing(self) -> Listing | None:
        """The claims that the kubelet lists; None if it does not answer."""
        # The stubs take memory, so nodes without claims do not import them.
        from driver.kubelet_api.podresources.v1 import api_pb2 as v1

        try:
            answer = v1.ListPodResourcesResponse.FromString(await list_pod_resources(self._socket))
        except (grpc.aio.AioRpcError, DecodeError) as error:
            logger.warning("No listing from the kubelet's %s: %s", self._socket, error)
            return None
        containers = (c for pod in answer.pod_resources for c in pod.containers)
        claims = [claim for container in containers for claim in container.dynamic_resources]
        resources = (resource for claim in claims for resource in claim.claim_resources)
        return Listing(
            frozenset((claim.claim_namespace, claim.claim_name) for claim in claims),
            uids_of(device.name for resource in resources for device in resource.cdi_devices),
        )

    async def _read(self, claims: Iterable[PreparedClaim]) -> Mapping[ClaimUid, FoundClaim]:
        references = [claim.reference for claim in claims]
        found = await asyncio.gather(*map(self.claims.read, references))
        return {reference.uid: f for reference, f in zip(references, found, strict=True)}

    async def _evidence(
        self,
        claims: Collection[PreparedClaim],
        found: Mapping[ClaimUid, FoundClaim],
        listing: Listing | None,
    ) -> Mapping[ClaimUid, Evidence]:
        if not claims:
            return {}
        found_pods = (await self.client.list(self._selection)).items
        pods = [read_as(Pod, obj) for obj in found_pods]
        return {
            uid: Evidence(
                is_listed=None if listing is None else listing.has(claim.reference),
                exists=None if isinstance(there, Failure) else there is not None,
                is_named=any(pods_of(pods, claim.reference)),
                is_allocated=_is_allocated(claim, there),
            )
            for claim in claims
            for uid in (claim.reference.uid,)
            for there in (_same_claim(claim, found[uid]),)
        }

    async def _is_still(self, stale: Staleness, home: Home, claim: PreparedClaim) -> bool:
        """Whether a claim is stale for the same reason as before; it may be in use by now."""
        read = await self._read([claim])
        evidence = await self._evidence([claim], read, await self._listing())
        return staleness(claim, home, evidence[claim.reference.uid], self.grace) == stale

    async def _prepare_unreadable(
        self, claims: Iterable[PreparedClaim], found: Mapping[ClaimUid, FoundClaim]
    ) -> None:
        """Prepare claims with unreadable records, as for a call of the kubelet."""
        for claim in claims:
            uid = claim.reference.uid
            there = _same_claim(claim, found[uid])
            if isinstance(there, FullClaim) and not claim.devices and claim.version <= VERSION:
                metadata = there.metadata or NO_METADATA
                reference = ClaimReference(metadata.namespace or "", metadata.name or "", uid)
                answer = (await self.claims.prepare([reference]))[uid]
                if isinstance(answer, Failure):
                    why = answer.sentence
                    logger.warning("The record of claim %s stays unreadable: %s", uid, why)

    async def _unprepare_due(self, stale: Mapping[ClaimUid, Staleness], home: Home) -> None:
        now = asyncio.get_running_loop().time()
        self._since = {uid: self._since.get(uid, now) for uid in stale}
        for uid, found in stale.items():
            if now - self._since[uid] >= found.grace.total_seconds():
                await self._unprepare(uid, found, home)

    async def _unprepare(self, uid: ClaimUid, found: Staleness, home: Home) -> None:
        claim = await self.claims.cleanup.unprepare_stale(uid, partial(self._is_still, found, home))
        if not isinstance(claim, PreparedClaim):
            if claim is not None:
                logger.warning("Stale claim %s stays: %s", uid, claim.sentence)
            return
        STALE_CLAIMS.inc()
        devices = ", ".join(str(device.allocated) for device in claim.devices) or "its devices"
        sentence = f"ResourceClaim {claim.reference} was prepared here with {devices}: {found.why}."
        logger.warning("Unprepared stale claim: %s", sentence)
        node = ObjectReference(api_version="v1", kind="Node", name=self.node, uid=home.node)
        self.record(Event.warning(node, "StaleClaimReleased", "Unprepare", sentence))


def _same_claim(claim: PreparedClaim, found: FoundClaim) -> FoundClaim:
    """The API server's claim; None if that is a later claim of this name."""
    if isinstance(found, FullClaim) and found.uid != claim.reference.uid:
        return None
    return found


def _is_allocated(claim: PreparedClaim, found: FoundClaim) -> bool | None:
    if isinstance(found, Failure):
        return None
    return found is not None and is_allocated(claim, found)


def _is_suspect(claim: PreparedClaim, home: Home, listing: Listing | None) -> bool:
    if is_of_other_cluster(claim, home) or not claim.devices:
        return True
    return listing is not None and not listing.has(claim.reference)

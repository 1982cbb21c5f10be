"""Settles lost claims, see `lost_claims`: writes their CDI files again, or forgets them.

    ResourceClaims, pods of the API server ──reconcile──► in use: its CDI file
                                                     └──► not in use: unprepared

While the API server is away, and while pods of a claim are being deleted, it stays as it is.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from driver.api import ClaimUid, NodeName
from driver.plumbing.apiserver import each
from driver.plumbing.apiserver_reconcilers import whole_reconciler
from driver.preparing.apiserver_claims import API_SECONDS
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.lost_claims import CONFIRM_SECONDS, Use, use_of
from kube.api import PODS, After, ApiClient

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often it is looked whether a claim is lost; only those that are cost the API server."""


@dataclass(eq=False)
class LostClaims:
    """Settles the lost claims of a node while `run` runs."""

    client: ApiClient
    node: NodeName
    claims: KubeletClaims

    def __post_init__(self) -> None:
        self._selection = PODS.select(field_selector=f"spec.nodeName={self.node}")
        self._queue = whole_reconciler("settling claims whose CDI files are gone", self._reconcile)
        self._running_since: dict[ClaimUid, float] = {}
        self._told: set[ClaimUid] = set()

    async def run(self) -> NoReturn:
        """Settle them until cancelled; what fails is tried again, and logged."""
        await self._queue.run()

    async def _reconcile(self) -> After:
        lost = self.claims.lost
        for uid in self._running_since.keys() - lost.keys():
            del self._running_since[uid]
        for uid in lost.keys() - self._told:
            reference = lost[uid].reference
            logger.warning("CDI file of claim %s is gone; looking who uses the claim", reference)
        self._told = set(lost)
        await each(lost.values(), self._settle)
        return After(LOOK_SECONDS)

    async def _settle(self, claim: PreparedClaim) -> None:
        """What is decided by this look is looked at once more, with all others kept out."""
        use = await self._use(claim)
        if use is Use.NONE or (use is Use.RUNNING and self._is_confirmed(claim.reference.uid)):
            settled = await self.claims.cleanup.settle(
                claim.reference.uid, partial(self._use, claim)
            )
            if settled is Use.RUNNING:
                logger.warning(
                    "Wrote the CDI file of claim %s again: a pod has it", claim.reference
                )
            elif settled is Use.NONE:
                logger.warning("Forgot claim %s: no pod of this node has it", claim.reference)
        elif use is not Use.RUNNING:
            self._running_since.pop(claim.reference.uid, None)

    def _is_confirmed(self, uid: ClaimUid) -> bool:
        now = asyncio.get_running_loop().time()
        return now - self._running_since.setdefault(uid, now) >= CONFIRM_SECONDS

    async def _use(self, claim: PreparedClaim) -> Use | None:
        """None if the API server does not say. Raises what its client raises for a list."""
        found = await self.claims.read(claim.reference)
        if isinstance(found, Failure):
            return None
        pods = await self.client.list(self._selection, timeout_seconds=API_SECONDS)
        return use_of(claim, found, pods.items)

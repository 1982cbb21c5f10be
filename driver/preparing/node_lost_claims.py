"""Reconciles lost claims, see `lost_claims`: writes their CDI files again, or forgets them.

    ResourceClaims, pods of the API server ──reconcile──► in use: its CDI file
                                                     └──► not in use: unprepared

A claim stays as it is while the API server is unavailable, while its pods are terminating, and, if
it is in use, while its file cannot be written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from driver.api import ClaimUid, NodeName
from driver.plumbing.apiserver import each
from driver.plumbing.apiserver_reconcilers import whole_reconciler
from driver.preparing.apiserver_claims import API_SECONDS
from driver.preparing.files.prepared import PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import Failure
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.lost_claims import CONFIRM_SECONDS, Use, use_of
from kube.backoff import Backoff
from kube.calls.api import ApiClient
from kube.kinds import PODS
from kube.reconciling.api import After
from kube.shapes.pods import Pod
from kube.shapes.reading import read_as

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""How often to check for lost claims; the check makes no call to the API server."""

BACKOFF = Backoff(first_seconds=LOOK_SECONDS, cap_seconds=60.0)
"""When to ask the API server again about unchanged lost claims: one list of the node's pods, and
one read of each claim."""

Pods = Sequence[Pod]


@dataclass(eq=False)
class LostClaims:
    """Reconciles the lost claims of a node while `run` runs."""

    client: ApiClient
    node: NodeName
    claims: KubeletClaims

    def __post_init__(self) -> None:
        self._selection = PODS.select(field_selector=f"spec.nodeName={self.node}")
        self._queue = whole_reconciler("settling claims whose CDI files are gone", self._reconcile)
        self._running_since: dict[ClaimUid, float] = {}
        self._known: set[ClaimUid] = set()
        self._uses: dict[ClaimUid, Use | None] = {}
        self._was_writable = True
        self._unchanged = 0
        self._due = float("-inf")

    async def run(self) -> NoReturn:
        """Reconcile until cancelled; failures are logged and retried."""
        await self._queue.run()

    async def _reconcile(self) -> After:
        lost = self.claims.lost
        self._note(lost)
        if lost and asyncio.get_running_loop().time() >= self._due:
            await self._look(lost)
        return After(LOOK_SECONDS)

    def _note(self, lost: PreparedClaims) -> None:
        """Reset the backoff if the lost claims changed, or if files can be written again."""
        is_writable = not self.claims.cleanup.folder_problem
        if lost.keys() != self._known or (is_writable and not self._was_writable):
            self._unchanged, self._due = 0, float("-inf")
        for uid in self._running_since.keys() - lost.keys():
            del self._running_since[uid]
        for uid in lost.keys() - self._known:
            reference = lost[uid].reference
            logger.warning("CDI file of claim %s is missing; checking its use", reference)
        self._known, self._was_writable = set(lost), is_writable

    async def _look(self, lost: PreparedClaims) -> None:
        pods = await self._pods()
        before, self._uses = self._uses, {}
        try:
            await each(lost.values(), partial(self._settle, pods=pods))
        finally:
            self._unchanged = self._unchanged + 1 if self._uses == before else 1
            pause = BACKOFF.delay(self._unchanged, lambda: 1.0)
            self._due = asyncio.get_running_loop().time() + pause

    async def _settle(self, claim: PreparedClaim, pods: Pods) -> None:
        """Check the use of a claim; if that decides, check it again with the claim locked."""
        uid = claim.reference.uid
        use = self._uses[uid] = await self._use(claim, pods)
        if use is not Use.RUNNING:
            self._running_since.pop(uid, None)
        if use is Use.NONE or (use is Use.RUNNING and self._can_be_written(uid)):
            await self._settle_as(use, claim)

    async def _settle_as(self, use: Use, claim: PreparedClaim) -> None:
        still = partial(self._still, use, claim)
        settled = await self.claims.cleanup.settle(claim.reference.uid, still)
        if settled is Use.RUNNING:
            logger.warning("Wrote the CDI file of claim %s again: a pod uses it", claim.reference)
        elif settled is Use.NONE:
            logger.warning("Forgot claim %s: no pod of this node uses it", claim.reference)

    def _can_be_written(self, uid: ClaimUid) -> bool:
        now = asyncio.get_running_loop().time()
        is_confirmed = now - self._running_since.setdefault(uid, now) >= CONFIRM_SECONDS
        return is_confirmed and not self.claims.cleanup.folder_problem

    async def _still(self, use: Use, claim: PreparedClaim) -> Use | None:
        """The use of a claim if it is unchanged; else None."""
        return use if await self._use(claim, await self._pods()) is use else None

    async def _use(self, claim: PreparedClaim, pods: Pods) -> Use | None:
        """The use of a claim; None if the API server cannot be asked."""
        found = await self.claims.read(claim.reference)
        return None if isinstance(found, Failure) else use_of(claim, found, pods)

    async def _pods(self) -> Pods:
        """The pods of this node. Raises what the client raises."""
        found = await self.client.list(self._selection, timeout_seconds=API_SECONDS)
        return [read_as(Pod, obj) for obj in found.items]

"""Tells on ResourceClaims what of each device was prepared.

    prepared claims ──reconcile──► status.devices, applied as this node's own

No claim waits for it, and none fails with it: it is what people look at, not what containers get.
What an earlier process prepared is compared with what is stored: a node that starts again reads
its claims, and writes only those that say something else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NoReturn

from driver.api import ClaimUid, NodeName
from driver.plumbing.apiserver import each, field_manager
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.preparing.device_status import is_stored, status_apply
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.kubelet_claims import KubeletClaims
from kube.api import (
    CLAIMS,
    After,
    ApiClient,
    ConflictError,
    Done,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    Result,
    WriteOptions,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds.

    Attributes:
        settle: After which it is written, so that it is no part of a pod's start, and pods that
            end at once cost no write.
        refused: After which it is tried again where the API server refused it to this account.
    """

    settle: float = 2.0
    refused: float = 300.0


TIMES = Times()


class ClaimStatuses:
    """Keeps `status.devices` of the prepared claims what this node knows."""

    def __init__(self, client: ApiClient, node: NodeName, claims: KubeletClaims) -> None:
        self._client = client
        self._claims = claims
        self._options = WriteOptions(field_manager=field_manager(node))
        self._queue = whole_reconciler("telling claims of their devices", self._reconcile)
        self._told: dict[ClaimUid, PreparedClaim] = {}
        self._is_refused = False
        self._is_first = True
        claims.on_prepared(lambda: self._queue.add_after(ALL, TIMES.settle))

    async def run(self) -> NoReturn:
        """Tell until cancelled; what fails is tried again, and logged."""
        await self._queue.run()

    async def _reconcile(self) -> Result:
        claims = self._claims.prepared_now
        for uid in self._told.keys() - claims.keys():
            del self._told[uid]
        self._is_refused = False
        await each((c for uid, c in claims.items() if self._told.get(uid) != c), self._tell)
        self._is_first = False
        # A pause, since each claim that is prepared adds the key anew.
        return After(0.0, pause=TIMES.refused) if self._is_refused else Done()

    async def _tell(self, claim: PreparedClaim) -> None:
        if self._is_refused:
            return
        reference = claim.reference
        if self._is_first and await self._is_stored(claim):
            self._told[reference.uid] = claim
            return
        path = CLAIMS.at(reference.name, reference.namespace, "status")
        body = status_apply(claim)
        try:
            await self._client.apply(path, body, force=True, options=self._options)
        except (ConflictError, NotFoundError) as error:
            logger.debug("claim %s is another by now: %s", reference, error)
        except InvalidError as error:
            level = logging.DEBUG if _is_deallocated(error) else logging.WARNING
            logger.log(level, "status.devices of claim %s not written: %s", reference, error)
        except ForbiddenError as error:
            logger.warning("status.devices of claims not written: %s", error)
            self._is_refused = True
            return
        self._told[reference.uid] = claim

    async def _is_stored(self, claim: PreparedClaim) -> bool:
        found = await self._claims.read(claim.reference)
        return found is not None and not isinstance(found, Failure) and is_stored(claim, found)


def _is_deallocated(error: InvalidError) -> bool:
    """Whether the claim has none of these devices any more: its pods ended meanwhile.

    What is wrong with an entry as a whole, and not with a field of it, is that its device is not
    allocated to the claim.
    """
    return bool(error.causes) and all(
        cause.get("reason") == "FieldValueInvalid" and str(cause.get("field")).endswith("]")
        for cause in error.causes
    )

"""Writes the devices of prepared claims into the status of their ResourceClaims.

    prepared claims ──reconcile──► status.devices, applied with this node's field manager

No claim waits for this, and none fails with it: the status is for people, not for containers. A
driver that restarts reads its claims first, and writes only a status that differs.
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
from kube.calls.api import (
    ApiClient,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    WriteOptions,
)
from kube.kinds import CLAIMS
from kube.reconciling.api import After, Done, Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Delays, in seconds.

    Attributes:
        settle: How long a write is delayed, so that it does not slow down the start of a pod, and
            pods that end at once cost no write.
        refused: When to retry after the API server refused the permission.
    """

    settle: float = 2.0
    refused: float = 300.0


TIMES = Times()


class ClaimStatuses:
    """Keeps `status.devices` of the prepared claims up to date."""

    def __init__(self, client: ApiClient, node: NodeName, claims: KubeletClaims) -> None:
        self._client = client
        self._claims = claims
        self._options = WriteOptions(field_manager=field_manager(node))
        self._queue = whole_reconciler("telling claims of their devices", self._reconcile)
        self._written: dict[ClaimUid, PreparedClaim] = {}
        self._is_refused = False
        self._is_first = True
        claims.on_prepared(lambda: self._queue.add_after(ALL, TIMES.settle))

    async def run(self) -> NoReturn:
        """Write until cancelled; failures are logged and retried."""
        await self._queue.run()

    async def _reconcile(self) -> Result:
        claims = self._claims.prepared_now
        for uid in self._written.keys() - claims.keys():
            del self._written[uid]
        self._is_refused = False
        await each((c for uid, c in claims.items() if self._written.get(uid) != c), self._write)
        self._is_first = False
        # A pause, since each claim that is prepared adds the key anew.
        return After(0.0, pause=TIMES.refused) if self._is_refused else Done()

    async def _write(self, claim: PreparedClaim) -> None:
        if self._is_refused:
            return
        reference = claim.reference
        if self._is_first and await self._is_stored(claim):
            self._written[reference.uid] = claim
            return
        path = CLAIMS.at(reference.name, reference.namespace, "status")
        body = status_apply(claim)
        try:
            await self._client.apply(path, body, force=True, options=self._options)
        except (ConflictError, NotFoundError) as error:
            logger.debug("claim %s was deleted or replaced: %s", reference, error)
        except InvalidError as error:
            level = logging.DEBUG if _is_deallocated(error) else logging.WARNING
            logger.log(level, "status.devices of claim %s not written: %s", reference, error)
        except ForbiddenError as error:
            logger.warning("status.devices of claim %s not written: %s", reference, error)
            if error.missing_right:
                self._is_refused = True
                return
        self._written[reference.uid] = claim

    async def _is_stored(self, claim: PreparedClaim) -> bool:
        found = await self._claims.read(claim.reference)
        return found is not None and not isinstance(found, Failure) and is_stored(claim, found)


def _is_deallocated(error: InvalidError) -> bool:
    """Whether the claim no longer has these devices: its pods ended meanwhile.

    An error about an entry as a whole, and not about a field, means that the device is not
    allocated to the claim.
    """
    return bool(error.causes) and all(
        cause.get("reason") == "FieldValueInvalid" and str(cause.get("field")).endswith("]")
        for cause in error.causes
    )

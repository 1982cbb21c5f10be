"""Writes the devices of prepared claims into the status of their ResourceClaims.

    prepared claims, devices ──reconcile──► status.devices, applied with this node's field manager

No claim waits for this, and none fails with it: the status is for people, not for containers. A
driver that restarts reads its claims first, and writes only a status that differs.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import NoReturn

from driver.api import ClaimUid, NodeName
from driver.plumbing.apiserver import each, field_manager
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.preparing.device_status import (
    Conditions,
    DeviceKey,
    Readinesses,
    conditions_in,
    is_stored,
    key_of,
    status_apply,
    stored_conditions,
)
from driver.preparing.files.prepared import ClaimReference, PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.device_views import DevicesView, InstanceSource
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.ready_conditions import Readiness, readiness
from driver.preparing.write_limits import with_write, write_wait
from kube.calls.api import (
    ApiClient,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    WriteOptions,
)
from kube.kinds import CLAIMS
from kube.objects import JsonObject
from kube.reconciling.api import After, Done, Result
from kube.shapes.full_claims import FullClaim
from kube.wall_clock import wall_clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Times:
    """Delays, in seconds.

    Attributes:
        settle: How long a write is delayed, so that it does not slow down the start of a pod, and
            pods that end at once cost no write.
        refused: When to retry after the API server refused the permission.
        window: In which a claim is written `MOST_WRITES` times at most, see `write_limits`.
    """

    settle: float = 2.0
    refused: float = 300.0
    window: float = 60.0


TIMES = Times()


@dataclass(frozen=True, slots=True)
class _Written:
    """What a claim was told last, the conditions with their times, and when it was written."""

    claim: PreparedClaim
    ready: Readinesses
    conditions: Conditions
    times: tuple[float, ...] = ()


class ClaimStatuses:
    """Keeps `status.devices` of the prepared claims up to date."""

    def __init__(
        self, client: ApiClient, node: NodeName, claims: KubeletClaims, source: InstanceSource
    ) -> None:
        self._client = client
        self._node = node
        self._claims = claims
        self._source = source
        self._options = WriteOptions(field_manager=field_manager(node))
        self._queue = whole_reconciler("telling claims of their devices", self._reconcile)
        self._written: dict[ClaimUid, _Written] = {}
        self._is_refused = False
        self._is_first = True
        claims.on_prepared(self._forget_released)
        for tells in (claims.on_prepared, source.on_changed):
            tells(lambda: self._queue.add_after(ALL, TIMES.settle))

    async def run(self) -> NoReturn:
        """Write until cancelled; failures are logged and retried.

        Devices are ready or not only after the first discovery, so nothing is written before.
        """
        await self._source.decided()
        await self._queue.run()

    async def _reconcile(self) -> Result:
        claims, view = self._claims.prepared_now, self._source.view
        if view is None:
            return Done()
        self._is_refused = False
        ready = {uid: self._readinesses(claim, view) for uid, claim in claims.items()}
        changed = [c for uid, c in claims.items() if not self._is_written(c, ready[uid])]
        waits = {claim.reference.uid: self._wait(claim) for claim in changed}
        due = (claim for claim in changed if not waits[claim.reference.uid])
        await each(due, lambda claim: self._write(claim, ready[claim.reference.uid]))
        self._is_first = False
        if self._is_refused:
            # A pause, since each claim that is prepared adds the key anew.
            return After(0.0, pause=TIMES.refused)
        later = min(filter(None, waits.values()), default=0.0)
        return After(later) if later else Done()

    def _forget_released(self) -> None:
        """Forget claims at once: a claim may be allocated and prepared again within a moment."""
        for uid in self._written.keys() - self._claims.prepared.keys():
            del self._written[uid]

    def _wait(self, claim: PreparedClaim) -> float:
        written = self._written.get(claim.reference.uid)
        return write_wait(written.times, _now(), TIMES.window) if written is not None else 0.0

    def _readinesses(self, claim: PreparedClaim, view: DevicesView) -> Readinesses:
        written = self._written.get(claim.reference.uid)
        before = written.ready if written is not None else {}
        found: dict[DeviceKey, Readiness] = {}
        for device in claim.devices:
            key, now = key_of(device.allocated), readiness(device, view, self._node)
            found[key] = now if now.is_known else before.get(key, now)
        return found

    def _is_written(self, claim: PreparedClaim, ready: Readinesses) -> bool:
        written = self._written.get(claim.reference.uid)
        return written is not None and (written.claim, written.ready) == (claim, ready)

    async def _write(self, claim: PreparedClaim, ready: Readinesses) -> None:
        if self._is_refused:
            return
        reference = claim.reference
        before = self._written.get(reference.uid)
        known = before.conditions if before is not None else {}
        if self._is_first and (found := await self._found(claim)) is not None:
            known = stored_conditions(claim, found)
            if is_stored(claim, ready, found):
                self._written[reference.uid] = _Written(claim, ready, known)
                return
        body = status_apply(claim, ready, known, wall_clock())
        is_told = await self._apply(reference, body)
        # A claim that was released meanwhile may be prepared again, and is told again then.
        if is_told and self._claims.prepared.get(reference.uid) is claim:
            times = with_write(before.times if before is not None else (), _now())
            self._written[reference.uid] = _Written(claim, ready, conditions_in(body), times)

    async def _apply(self, reference: ClaimReference, body: JsonObject) -> bool:
        """Apply; returns whether there is nothing more to write."""
        path = CLAIMS.at(reference.name, reference.namespace, "status")
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
                return False
        return True

    async def _found(self, claim: PreparedClaim) -> FullClaim | None:
        """The claim of the API server; None if it is gone or cannot be read."""
        found = await self._claims.read(claim.reference)
        return None if isinstance(found, Failure) else found


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_deallocated(error: InvalidError) -> bool:
    """Whether the claim no longer has these devices: its pods ended meanwhile.

    An error about an entry as a whole, and not about a field, means that the device is not
    allocated to the claim.
    """
    return bool(error.causes) and all(
        cause.get("reason") == "FieldValueInvalid" and str(cause.get("field")).endswith("]")
        for cause in error.causes
    )

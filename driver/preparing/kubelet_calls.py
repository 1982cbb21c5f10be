"""The kubelet's calls, which name several claims: each claim is processed on its own.

An error with one claim is the answer for that claim alone. Work continues if the kubelet cancels
the call: it calls again, and then gets the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from driver.api import ClaimUid
from driver.plumbing.kubelet_sockets import finish
from driver.preparing.apiserver_claims import FoundClaim
from driver.preparing.files.cdi import unusable_properties
from driver.preparing.files.prepared import ClaimReference, PreparedClaim
from driver.preparing.grants.claims import Failure, consumer_groups, consumers, reference_problem
from driver.preparing.grants.rival_claims import Renewal
from kube.processes.api import log_context, note_span

logger = logging.getLogger(__name__)

CLAIM_SECONDS = 40.0
"""Timeout before the first write. The kubelet times out after 45 s, and learns no reason."""

T = TypeVar("T")

Work = Callable[[ClaimReference], Awaitable[T]]


class ClaimCalls:
    """The running calls of the kubelet."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._locks: WeakValueDictionary[ClaimUid, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def one_at_a_time(self, uid: ClaimUid) -> AsyncIterator[asyncio.Timeout]:
        """Lock a claim against other calls, for `CLAIM_SECONDS`. Raises TimeoutError."""
        lock = self._locks.setdefault(uid, asyncio.Lock())  # collected when no call uses it
        async with asyncio.timeout(CLAIM_SECONDS) as deadline, lock:
            yield deadline

    async def each(
        self, wanted: Iterable[ClaimReference], work: Work[T]
    ) -> Mapping[ClaimUid, T | Failure]:
        """The answer for each claim; a claim that is named twice is processed once."""
        references = {reference.uid: reference for reference in wanted}
        tasks = [asyncio.create_task(_answered(r, work)) for r in references.values()]
        self._running.update(tasks)
        for task in tasks:
            task.add_done_callback(self._running.discard)
        if tasks:
            await asyncio.wait(tasks)  # unlike gather, this does not cancel them
        return {uid: task.result() for uid, task in zip(references, tasks, strict=True)}

    async def finish(self, seconds: float) -> None:
        """Wait up to `seconds` for running calls; then cancel them."""
        await finish(self._running, seconds)


async def _answered(wanted: ClaimReference, work: Work[T]) -> T | Failure:
    if problem := reference_problem(wanted):
        return problem
    try:
        with log_context(claimUID=wanted.uid):
            return await work(wanted)
    except TimeoutError:
        return Failure(f"ResourceClaim {wanted} was not served within {CLAIM_SECONDS:.0f} s")
    except OSError as error:  # of the lock's file, as on a disk that cannot be written
        logger.error("Claim %s failed: %s", wanted, error)  # noqa: TRY400
        return Failure(f"the driver failed: {error}")
    except Exception as error:
        logger.exception("Claim %s failed", wanted)
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Failure(f"the driver failed, and its log says where: {text}")


def report_prepared(
    wanted: ClaimReference,
    found: FoundClaim,
    answer: PreparedClaim | Failure,
    before: PreparedClaim | None,
    began: int,
) -> None:
    """Log and trace a call. `began`: its start in ns. `before`: the record before it."""
    claim = None if found is None or isinstance(found, Failure) else found
    pods = () if claim is None else consumers(claim)
    groups = () if claim is None else consumer_groups(claim)
    named = {"podGroups": ",".join(groups)} if groups else {}
    with log_context(podUIDs=",".join(pods), **named):
        _log_prepared(answer, before)
    failure = answer.sentence if isinstance(answer, Failure) else ""
    note_span("NodePrepareResources", began, pods, failure=failure, claim_uid=wanted.uid)


def _log_prepared(claim: PreparedClaim | Failure, before: PreparedClaim | None) -> None:
    if isinstance(claim, Failure):
        return
    if before and before.allocation != claim.allocation:
        logger.warning("Claim %s was allocated anew; its old devices are free", claim.reference)
    devices = [f"{d.allocated.pool}/{d.allocated.device}" for d in claim.devices]
    logger.info("Prepared claim %s: %s", claim.reference, ", ".join(devices))
    if unusable := unusable_properties(claim):
        logger.warning("Claim %s: no environment variables: %s", claim.reference, unusable)


def log_renewed(renewals: Iterable[Renewal]) -> None:
    """Log which claims were planned anew."""
    for renewal in renewals:
        devices = [f"{d.allocated} {d.withheld or 'is up to date'}" for d in renewal.after.devices]
        logger.info("Planned claim %s anew: %s", renewal.after.reference, ", ".join(devices))

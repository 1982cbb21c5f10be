"""The claims that the kubelet asks about: looked up, prepared, unprepared; each on its own.

Whatever happens to one claim becomes that claim's answer and nobody else's. Work goes on when the
kubelet hangs up: it asks again, and is then told the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from driver.api import ClaimUid
from driver.calls import finish
from driver.cdi import unusable_properties
from driver.claims import (
    AllocatedClaim,
    Failure,
    Instances,
    allocated_claim,
    is_prepared,
    plan_prepare,
    reference_problem,
)
from driver.disk import real_path
from driver.instances import Instance
from driver.node import Node
from driver.prepared import ClaimReference, PreparedClaim, PreparedClaims

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

API_SECONDS = 10.0
"""For one read from the API server."""

INSTANCES_SECONDS = 20.0
"""For the first discovery, just after a start."""

CLAIM_SECONDS = 40.0
"""For all that may have to wait. The kubelet gives up after 45 s, and would learn no reason."""

READS_AT_ONCE = 64


class ClaimReader(Protocol):
    """ResourceClaims of the API server, not from a cache; any exception means 'cannot say'."""

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """A claim as it is now; None if it does not exist."""

    async def claims(self) -> Iterable[Mapping[str, Any]]:
        """All claims; asked for only when checkpoint and CDI files are lost."""


class InstanceSource(Protocol):
    """The devices that this node can prepare."""

    async def instances(self) -> Instances:
        """By pool and device, offline ones included; waits until the first discovery is over."""


class KubeletClaims:
    """Carries out what the kubelet asks for.

    Attributes:
        pools: The pools whose devices only this node prepares; may be replaced at any time.
    """

    def __init__(
        self,
        node: Node,
        reader: ClaimReader,
        source: InstanceSource,
        *,
        pools: frozenset[str],
    ) -> None:
        self.pools = pools
        self._node = node
        self._reader = reader
        self._source = source
        self._locks: WeakValueDictionary[ClaimUid, asyncio.Lock] = WeakValueDictionary()
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self._running: set[asyncio.Task[Any]] = set()

    async def prepare(
        self, wanted: Iterable[ClaimReference]
    ) -> Mapping[ClaimUid, PreparedClaim | Failure]:
        """An answer for each claim; asked again, the same one."""
        return await self._each(wanted, self._prepare)

    async def unprepare(
        self, wanted: Iterable[ClaimReference]
    ) -> Mapping[ClaimUid, PreparedClaim | Failure | None]:
        """An answer for each claim; one that is not prepared is fine."""
        return await self._each(wanted, self._unprepare)

    async def recover(self) -> None:
        """Take over from an earlier process; call once, before the kubelet can ask."""
        await self._node.recover(self._find_allocated)

    async def finish(self, seconds: float) -> None:
        """Let what runs come to an end, for this long."""
        await finish(self._running, seconds)

    async def _each(
        self,
        wanted: Iterable[ClaimReference],
        work: Callable[[ClaimReference], Awaitable[_Answer]],
    ) -> Mapping[ClaimUid, _Answer | Failure]:
        references = {reference.uid: reference for reference in wanted}
        tasks = [asyncio.create_task(_answered(r, work)) for r in references.values()]
        self._running.update(tasks)
        for task in tasks:
            task.add_done_callback(self._running.discard)
        if tasks:
            await asyncio.wait(tasks)  # which, unlike gather, leaves them alone when cancelled
        return {uid: task.result() for uid, task in zip(references, tasks, strict=True)}

    async def _prepare(self, wanted: ClaimReference) -> PreparedClaim | Failure:
        # Other processes are kept out from the first look to the last write, lest one of them
        # unprepares the claim in between.
        async with (
            asyncio.timeout(CLAIM_SECONDS) as deadline,
            self._lock(wanted.uid),
            self._node.alone() as prepared,
        ):
            claim = await self._allocation(wanted, prepared)
            if isinstance(claim, Failure):
                return claim
            known = is_prepared(claim, prepared, self._node.boot_id)
            instances = {} if known else await self._instances(claim)
            if isinstance(instances, Failure):
                return instances
            deadline.reschedule(None)  # a write that has begun is waited for
            plan = partial(plan_prepare, claim, instances, boot_id=self._node.boot_id)
            granted = await self._node.grant(plan)
        _log_prepared(granted, prepared.get(wanted.uid))
        return granted

    async def _unprepare(self, wanted: ClaimReference) -> PreparedClaim | Failure | None:
        async with (
            asyncio.timeout(CLAIM_SECONDS) as deadline,
            self._lock(wanted.uid),
            self._node.alone(),
        ):
            deadline.reschedule(None)
            released = await self._node.release(wanted.uid)
        if isinstance(released, PreparedClaim):
            logger.info("Unprepared claim %s", wanted)
        return released

    def _lock(self, uid: ClaimUid) -> asyncio.Lock:
        """One at a time for each claim; it is gone when nobody waits for it."""
        return self._locks.setdefault(uid, asyncio.Lock())

    async def _allocation(
        self, wanted: ClaimReference, prepared: PreparedClaims
    ) -> AllocatedClaim | Failure:
        """The claim's allocation; what is granted already is kept up without the API server."""
        try:
            async with self._reads, asyncio.timeout(API_SECONDS):
                claim = await self._reader.claim(wanted.namespace, wanted.name)
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the answer is one
            reason = f"the API server cannot be asked for ResourceClaim {wanted}: {_said(error)}"
            known = prepared.get(wanted.uid)
            if known is None:
                return Failure(reason)
            logger.warning("Answered from the checkpoint: %s", reason)
            return AllocatedClaim(wanted, tuple(device.allocated for device in known.devices))
        return allocated_claim(claim, wanted, self.pools)

    async def _instances(self, claim: AllocatedClaim) -> Instances | Failure:
        """Those of the claim, as far as they are known."""
        try:
            async with asyncio.timeout(INSTANCES_SECONDS):
                known = await self._source.instances()
        except TimeoutError:
            return Failure("the devices of this node are not discovered yet")
        keys = ((device.pool, device.device) for device in claim.devices)
        return {key: _with_real_paths(known[key]) for key in keys if key in known}

    async def _find_allocated(self, lost: frozenset[ClaimUid]) -> Iterable[AllocatedClaim]:
        async with asyncio.timeout(API_SECONDS):
            bodies = await self._reader.claims()
        references = {
            ClaimReference(m["namespace"], m["name"], m["uid"]): body
            for body in bodies
            if (m := body["metadata"])["uid"] in lost
        }
        found = (allocated_claim(body, r, self.pools) for r, body in references.items())
        return [claim for claim in found if isinstance(claim, AllocatedClaim)]


async def _answered(
    wanted: ClaimReference, work: Callable[[ClaimReference], Awaitable[_Answer]]
) -> _Answer | Failure:
    if problem := reference_problem(wanted):
        return problem
    try:
        return await work(wanted)
    except TimeoutError:
        return Failure(f"ResourceClaim {wanted} was not served within {CLAIM_SECONDS:.0f} s")
    except Exception as error:
        logger.exception("Claim %s failed", wanted)
        return Failure(f"the driver failed: {error!r}")


def _with_real_paths(instance: Instance) -> Instance:
    """A CDI device node must not be a symbolic link, such as those in `/dev/serial/by-id`."""
    specs = (replace(spec, host_path=real_path(spec.host_path)) for spec in instance.device_specs)
    return replace(instance, device_specs=tuple(specs))


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _log_prepared(claim: PreparedClaim | Failure, before: PreparedClaim | None) -> None:
    if isinstance(claim, Failure):
        return
    if before and before.allocation != claim.allocation:
        logger.warning("Claim %s was allocated anew; its old devices are free", claim.reference)
    devices = [f"{d.allocated.pool}/{d.allocated.device}" for d in claim.devices]
    logger.info("Prepared claim %s: %s", claim.reference, ", ".join(devices))
    if unusable := unusable_properties(claim):
        logger.warning("Claim %s: no environment variables: %s", claim.reference, unusable)

"""The claims that the kubelet asks about: looked up, prepared, unprepared; each on its own.

Whatever happens to one claim becomes that claim's answer and nobody else's. Work goes on when the
kubelet hangs up: it asks again, and is then told the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol

from driver.api import ClaimUid
from driver.handlers.limits import mount_refusal
from driver.instances.instances import Instance
from driver.plumbing.disk import real_path, real_paths
from driver.preparing.files.prepared import (
    AllocatedDevice,
    ClaimReference,
    Home,
    PreparedClaim,
    PreparedClaims,
)
from driver.preparing.grants.claims import (
    AllocatedClaim,
    Failure,
    allocated_claim,
    as_prepared,
    consumers,
    is_prepared,
    plan_prepare,
)
from driver.preparing.grants.disk_grants import Node
from driver.preparing.grants.renewals import (
    Resolve,
    concerned,
    current,
    renew,
    with_real_paths,
)
from driver.preparing.grants.rival_claims import Renewal, kept_apart
from driver.preparing.grants.sight import InstanceSource, Sight
from driver.preparing.grants.whereabouts import Whereabouts
from driver.preparing.kubelet_calls import ClaimCalls, log_prepared, log_renewed
from driver.preparing.node_cleanup import Cleanup
from kube.api import naming, note_span, now_ns

logger = logging.getLogger(__name__)

API_SECONDS = 10.0
"""For one read from the API server."""

INSTANCES_SECONDS = 20.0
"""For the first discovery, just after a start."""

KNOWN_SECONDS = 5.0
"""The same, for what is granted already: then it is given as it was, for not heard is not gone."""

READS_AT_ONCE = 64


class ClaimReader(Protocol):
    """ResourceClaims of the API server, not from a cache; any exception means 'cannot say'."""

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """A claim as it is now; None if it does not exist."""

    async def claim_of(self, uid: ClaimUid) -> Mapping[str, Any] | None:
        """The same by its UID alone, which takes far longer."""

    async def home(self) -> Home:
        """Which node and cluster this is; asked once."""


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Paths of the host.

    Attributes:
        mounts: Below which folders may be mounted.
        resolve: Where paths lead.
    """

    mounts: tuple[str, ...] = ()
    resolve: Resolve = real_path


PLAIN_PATHS = HostPaths()

OnRenewed = Callable[[tuple[Renewal, ...]], None]
"""Hears of claims whose containers get something else from now on; returns at once."""


class KubeletClaims:
    """Carries out what the kubelet asks for.

    Attributes:
        pools: The pools whose devices only this node prepares, see `claims.allocated_claim`; may
            be replaced at any time.
        calls: What runs now.
        cleanup: What becomes of claims that the kubelet does not ask about.
    """

    def __init__(
        self,
        node: Node,
        reader: ClaimReader,
        source: InstanceSource,
        *,
        pools: frozenset[str],
        paths: HostPaths = PLAIN_PATHS,
    ) -> None:
        self.pools = pools
        self._node = node
        self._reader = reader
        self._source = source
        self._paths = paths
        self._on_renewed: list[OnRenewed] = []
        self._on_prepared: list[Callable[[], None]] = []
        self._renewed: Whereabouts | None = None
        self._reads = asyncio.Semaphore(READS_AT_ONCE)
        self.calls = ClaimCalls()
        self.cleanup = Cleanup(node, self.calls, self._note_prepared)

    async def prepare(
        self, wanted: Iterable[ClaimReference]
    ) -> Mapping[ClaimUid, PreparedClaim | Failure]:
        """An answer for each claim; asked again, the same one."""
        return await self.calls.each(wanted, self._prepare)

    async def unprepare(
        self, wanted: Iterable[ClaimReference]
    ) -> Mapping[ClaimUid, PreparedClaim | Failure | None]:
        """An answer for each claim; one that is not prepared is fine."""
        return await self.calls.each(wanted, self._unprepare)

    def on_renewed(self, listener: OnRenewed) -> None:
        self._on_renewed.append(listener)

    def on_prepared(self, listener: Callable[[], None]) -> None:
        """Call back whenever what is prepared may be something else."""
        self._on_prepared.append(listener)

    def _note_prepared(self) -> None:
        for listener in self._on_prepared:
            listener()

    @property
    def prepared(self) -> PreparedClaims:
        """The claims that are prepared now."""
        return self._node.prepared

    @property
    def prepared_now(self) -> PreparedClaims:
        """Those of which all is known."""
        doubtful = self._node.doubtful
        return {uid: c for uid, c in self._node.prepared.items() if uid not in doubtful}

    @property
    def lost(self) -> PreparedClaims:
        """Those of which all is known, and whose CDI file is gone."""
        return self._node.lost

    @property
    def doubtful(self) -> PreparedClaims:
        """Those of which not all is known: nothing new is prepared meanwhile."""
        return self._node.doubtful

    @property
    def where(self) -> Whereabouts | None:
        """By what they were planned last; None if they never were."""
        return self._renewed

    async def recover(self) -> None:
        """Take over from an earlier process; call once, before the kubelet can ask.

        Devices may have moved since: they are looked at first, if they can be.
        """
        await self._node.recover()
        if not self._node.prepared:
            return
        try:
            await self._discovered(KNOWN_SECONDS)
            await self.renew()
        except OSError:
            logger.exception("What is prepared cannot be planned anew yet")

    async def renew(self, *, again: bool = False, whole: bool = True) -> None:
        """Plan anew what is prepared, by where its devices are now.

        Args:
            again: Even if nobody said that anything changed.
            whole: All of it, and not only what changed since the last time.

        Raises:
            OSError: If it cannot be written; call again.
        """
        sight = self._source.sight
        if sight is None or (self._is_renewed(sight) and not again):
            return
        async with self._node.exclusively():
            await self._renew(whole=whole)

    async def _renew(self, *, whole: bool = True) -> None:
        # Whoever waited for another process may see more by now.
        if (sight := self._source.sight) is None:
            return
        only = None
        if not whole and self._renewed is not None:
            only = concerned(self._node.prepared, sight.where, self._renewed)
        plan = partial(
            renew,
            where=sight.where,
            resolve=cache(self._paths.resolve),  # of a thousand claims many have one device
            refuse_mount=self._refuse_mount,
            only=only,
        )
        renewals = await self._node.renew(plan, sight.instance, only)
        self._renewed = sight.where
        if not renewals:
            return
        log_renewed(renewals)
        for listener in self._on_renewed:
            listener(renewals)
        self._note_prepared()

    def _is_renewed(self, sight: Sight) -> bool:
        return sight.where is self._renewed and self._node.is_up_to_date

    async def _prepare(self, wanted: ClaimReference) -> PreparedClaim | Failure:
        # Other processes are kept from this claim from the first look to the last write, and from
        # the others only while those are read and written: what is waited for may take long.
        began = now_ns()
        uid = wanted.uid
        async with self.calls.one_at_a_time(uid) as deadline, self._node.alone_with(uid):
            found = await self.read(wanted)
            if not isinstance(found, Failure):
                await self._learn_home()
            await self._discovered_for(found, wanted)
            async with self._node.exclusively() as prepared:
                deadline.reschedule(None)  # a write that has begun is waited for
                claim = self._allocation(found, wanted, prepared)
                granted = claim if isinstance(claim, Failure) else await self._grant(claim)
        pods = () if found is None or isinstance(found, Failure) else consumers(found)
        with naming(podUIDs=",".join(pods)):
            log_prepared(granted, prepared.get(wanted.uid))
        failure = granted.sentence if isinstance(granted, Failure) else ""
        note_span("NodePrepareResources", began, pods, failure=failure, claim_uid=wanted.uid)
        self._note_prepared()
        return granted

    async def home(self) -> Home:
        """Which node and cluster this is. Raises what a client raises."""
        if isinstance(self._node.home, str):
            self._node.home = await self._reader.home()
        return self._node.home

    async def _learn_home(self) -> None:
        """As long as the API server does not say, nothing new is granted."""
        try:
            await self.home()
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the answer is one
            self._node.home = _said(error)

    async def _grant(self, claim: AllocatedClaim) -> PreparedClaim | Failure:
        known = is_prepared(claim, self._node.prepared)
        if self._source.sight is None and not known:
            return Failure("the devices of this node are not discovered yet")
        if known and (problem := await self._renewal_problem()):
            return problem
        return await self._node.grant(partial(self._plan, claim), self._instance)

    async def _unprepare(self, wanted: ClaimReference) -> PreparedClaim | Failure | None:
        async with (
            self.calls.one_at_a_time(wanted.uid) as deadline,
            self._node.alone_with(wanted.uid),
            self._node.exclusively(),
        ):
            deadline.reschedule(None)
            released = await self._node.release(wanted.uid)
        if isinstance(released, PreparedClaim):
            logger.info("Unprepared claim %s", released.reference)
            self._note_prepared()
        return released

    async def read(self, wanted: ClaimReference) -> Mapping[str, Any] | Failure | None:
        """The claim as it is now; a failure if the API server cannot be asked."""
        try:
            async with self._reads, asyncio.timeout(API_SECONDS):
                if not wanted.name:
                    return await self._reader.claim_of(wanted.uid)
                return await self._reader.claim(wanted.namespace, wanted.name)
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the answer is one
            said = _said(error)
            return Failure(f"the API server cannot be asked for ResourceClaim {wanted}: {said}")

    def _allocation(
        self,
        found: Mapping[str, Any] | Failure | None,
        wanted: ClaimReference,
        prepared: PreparedClaims,
    ) -> AllocatedClaim | Failure:
        """The claim's allocation; what is granted already is kept up without the API server."""
        if not isinstance(found, Failure):
            return allocated_claim(found, wanted, self.pools)
        known = prepared.get(wanted.uid)
        if known is None or not known.devices:
            return found
        logger.warning("Answered from its record: %s", found.sentence)
        devices = tuple(device.allocated for device in known.devices)
        return AllocatedClaim(wanted, devices, known.pod_claim)

    async def _discovered_for(
        self, found: Mapping[str, Any] | Failure | None, wanted: ClaimReference
    ) -> None:
        """Wait for the first discovery, as long as that can make a difference."""
        if self._source.sight is not None:
            return
        async with self._node.exclusively() as prepared:
            claim = self._allocation(found, wanted, prepared)
            if isinstance(claim, Failure):
                return
            known = is_prepared(claim, prepared)
        await self._discovered(KNOWN_SECONDS if known else INSTANCES_SECONDS)

    async def _discovered(self, seconds: float) -> None:
        """Wait for the first discovery, but no longer than this."""
        if self._source.sight is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._source.decided()

    async def _renewal_problem(self) -> Failure | None:
        sight = self._source.sight
        try:
            if sight is not None and not self._is_renewed(sight):
                await self._renew()
        except OSError as error:
            return Failure(f"the node cannot record what it grants: {error}")
        return None

    def _instance(self, allocated: AllocatedDevice) -> Instance | None:
        sight = self._source.sight
        return sight.instance(allocated) if sight else None

    def _plan(self, claim: AllocatedClaim, prepared: PreparedClaims) -> PreparedClaim | Failure:
        """By what is known when the plan's turn comes: `renew` may have come before it."""
        sight, boot_id = self._source.sight, self._node.boot_id
        if is_prepared(claim, prepared):
            return as_prepared(prepared[claim.reference.uid])
        known = {(d.pool, d.device): self._instance(d) for d in claim.devices}
        found = {key: instance for key, instance in known.items() if instance}
        instances = {key: with_real_paths(i, self._paths.resolve) for key, i in found.items()}
        planned = plan_prepare(claim, instances, prepared, boot_id, self._refuse_mount)
        if sight is None or isinstance(planned, Failure):
            return planned
        if all(sight.where.named(i.name) is i for i in found.values()):
            return planned
        # What is published still may be where another device is by now.
        moved = Renewal(
            planned, current(planned, sight.where, self._paths.resolve, self._refuse_mount)
        )
        others = (Renewal(c, c) for uid, c in prepared.items() if uid != claim.reference.uid)
        return as_prepared(next(kept_apart([moved, *others])).after)

    def _refuse_mount(self, path: str) -> str | None:
        return mount_refusal(path, self._paths.mounts, real_paths([path]))


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__

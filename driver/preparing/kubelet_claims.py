"""Prepares and unprepares the claims that the kubelet asks about, each on its own.

An error with one claim is the answer for that claim alone. Work continues if the kubelet cancels
the call: it calls again, and then gets the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial

from driver.api import ClaimUid
from driver.instances.instances import Instance
from driver.preparing.apiserver_claims import ClaimReader, ClaimReads, FoundClaim, error_text
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
    is_prepared,
)
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.device_views import DevicesView, InstanceSource
from driver.preparing.grants.disk_grants import Node
from driver.preparing.grants.disk_host import on_this_host
from driver.preparing.grants.plans import plan
from driver.preparing.grants.renewals import OnHost, concerned, renew
from driver.preparing.grants.rival_claims import Renewal
from driver.preparing.kubelet_calls import ClaimCalls, log_renewed, report_prepared
from driver.preparing.node_cleanup import Cleanup
from kube.processes.api import now_ns

logger = logging.getLogger(__name__)

INSTANCES_SECONDS = 20.0
"""How long a new claim waits for the first discovery after a start."""

KNOWN_SECONDS = 5.0
"""The same for a prepared claim; then it keeps its devices: an unknown device is not absent."""

OnRenewed = Callable[[tuple[Renewal, ...]], None]
"""Gets the claims whose containers get other devices from now on; must not block."""


class KubeletClaims:
    """Prepares and unprepares claims for the kubelet.

    Attributes:
        pools: The pools whose devices only this node prepares, see `claims.allocated_claim`; may
            be replaced at any time.
        calls: The running calls.
        cleanup: Cleans up claims that the kubelet does not ask about.
    """

    def __init__(
        self,
        node: Node,
        reader: ClaimReader,
        source: InstanceSource,
        *,
        pools: frozenset[str],
        on_host: OnHost | None = None,
    ) -> None:
        self.pools = pools
        self._node = node
        self._reader, self._reads = reader, ClaimReads(reader)
        self._source = source
        self._on_host = on_host or on_this_host()
        self._on_renewed: list[OnRenewed] = []
        self._on_prepared: list[Callable[[], None]] = []
        self._renewed: DeviceLocator | None = None
        self.calls = ClaimCalls()
        self.cleanup = Cleanup(node, self.calls, self._note_prepared)

    async def prepare(
        self, wanted: Iterable[ClaimReference]
    ) -> Mapping[ClaimUid, PreparedClaim | Failure]:
        """The answer for each claim; a repeated call gets the same answer."""
        return await self.calls.each(wanted, self._prepare)

    async def unprepare(
        self, wanted: Iterable[ClaimReference]
    ) -> Mapping[ClaimUid, PreparedClaim | Failure | None]:
        """The answer for each claim; None for a claim that is not prepared."""
        return await self.calls.each(wanted, self._unprepare)

    def on_renewed(self, listener: OnRenewed) -> None:
        self._on_renewed.append(listener)

    def on_prepared(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the prepared claims may have changed."""
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
        """The prepared claims whose records are completely known."""
        doubtful = self._node.doubtful
        return {uid: c for uid, c in self._node.prepared.items() if uid not in doubtful}

    @property
    def lost(self) -> PreparedClaims:
        """The claims whose records are completely known, and whose CDI files are missing."""
        return self._node.lost

    @property
    def doubtful(self) -> PreparedClaims:
        """The claims whose records are partly unknown: no new claim is prepared meanwhile."""
        return self._node.doubtful

    @property
    def where(self) -> DeviceLocator | None:
        """The device locator of the last renewal; None before the first."""
        return self._renewed

    async def home(self) -> Home:
        """The UIDs of this node and cluster. Raises what a client raises."""
        if isinstance(self._node.home, str):
            self._node.home = await self._reader.home()
        return self._node.home

    async def read(self, wanted: ClaimReference) -> FoundClaim:
        """The current claim; a Failure if the API server cannot be asked."""
        return await self._reads.claim(wanted)

    async def recover(self) -> None:
        """Take over from an earlier process; call once, before the kubelet can call.

        Devices may have moved since. So this waits for the first discovery, up to `KNOWN_SECONDS`.
        """
        await self._node.recover()
        if not self._node.prepared:
            return
        try:
            await self._discovered(KNOWN_SECONDS)
            await self.renew()
        except OSError:
            logger.exception("Prepared claims cannot be planned anew yet")

    async def renew(self, *, again: bool = False, whole: bool = True) -> None:
        """Plan the prepared claims anew, with the current locations of their devices.

        Args:
            again: Also if no change was reported.
            whole: True: all claims. False: only those that changed since the last time.

        Raises:
            OSError: If a file cannot be written; call again.
        """
        view = self._source.view
        if view is None or (self._is_renewed(view) and not again):
            return
        async with self._node.exclusively():
            await self._renew(whole=whole)

    async def _renew(self, *, whole: bool = True) -> None:
        # The devices may have changed while this waited for the lock.
        if (view := self._source.view) is None:
            return
        only = None
        if not whole and self._renewed is not None:
            only = concerned(self._node.prepared, view.where, self._renewed)
        plan = partial(
            renew,
            where=view.where,
            resolve=cache(self._on_host.resolve),  # many of a thousand claims have one device
            refuse_mount=self._on_host.refuse_mount,
            only=only,
        )
        renewals = await self._node.renew(plan, view.instance, only)
        self._renewed = view.where
        if not renewals:
            return
        log_renewed(renewals)
        for listener in self._on_renewed:
            listener(renewals)
        self._note_prepared()

    def _is_renewed(self, view: DevicesView) -> bool:
        return view.where is self._renewed and self._node.is_up_to_date

    async def _prepare(self, wanted: ClaimReference) -> PreparedClaim | Failure:
        """Read the claim, wait for devices, read the records, plan, write the record, answer.

        The CDI file has the record, so one write is the grant, see `records`. Other processes are
        locked out of this claim from the first read to the last write. They are locked out of the
        other claims only while records are read and written, because the waits may take long.
        """
        began = now_ns()
        async with (
            self.calls.one_at_a_time(wanted.uid) as deadline,
            self._node.alone_with(wanted.uid),
        ):
            found = await self._read(wanted)
            await self._wait_for_devices(found, wanted)
            async with self._node.exclusively() as prepared:
                deadline.reschedule(None)  # from here on wait for the write
                before = prepared.get(wanted.uid)
                answer = await self._grant(self._allocation(found, wanted, before))
        report_prepared(wanted, found, answer, before, began)
        self._note_prepared()
        return answer

    async def _read(self, wanted: ClaimReference) -> FoundClaim:
        """Read the current claim, and the UIDs of this node and cluster."""
        found = await self.read(wanted)
        if not isinstance(found, Failure):
            try:
                await self.home()
            except Exception as error:  # noqa: BLE001 - whatever a client raises, the answer is one
                self._node.home = error_text(error)  # no new claim is granted meanwhile
        return found

    async def _wait_for_devices(self, found: FoundClaim, wanted: ClaimReference) -> None:
        """Wait for the first discovery, if the claim needs it."""
        if self._source.view is not None:
            return
        prepared = self._node.prepared
        claim = self._allocation(found, wanted, prepared.get(wanted.uid))
        if not isinstance(claim, Failure):
            known = is_prepared(claim, prepared)
            await self._discovered(KNOWN_SECONDS if known else INSTANCES_SECONDS)

    def _allocation(
        self, found: FoundClaim, wanted: ClaimReference, known: PreparedClaim | None
    ) -> AllocatedClaim | Failure:
        """The claim's allocation; from its record if the API server cannot be asked."""
        if not isinstance(found, Failure):
            return allocated_claim(found, wanted, self.pools)
        if known is None or not known.devices:
            return found
        logger.warning("Answered a claim from its record: %s", found.sentence)
        devices = tuple(device.allocated for device in known.devices)
        return AllocatedClaim(wanted, devices, known.pod_claim)

    async def _grant(self, claim: AllocatedClaim | Failure) -> PreparedClaim | Failure:
        """Plan and record a claim; a prepared claim is brought up to date first."""
        if isinstance(claim, Failure):
            return claim
        if is_prepared(claim, self._node.prepared):
            try:
                await self._bring_up_to_date()
            except OSError as error:
                return Failure(f"the node cannot record what it grants: {error}")
        elif self._source.view is None:
            return Failure("the devices of this node are not discovered yet")
        return await self._node.grant(partial(self._plan, claim), self._instance)

    def _plan(self, claim: AllocatedClaim, prepared: PreparedClaims) -> PreparedClaim | Failure:
        """Plan with the current devices: `renew` may have run since the claim was read."""
        return plan(claim, prepared, self._source.view, self._node.boot_id, self._on_host)

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

    async def _discovered(self, seconds: float) -> None:
        """Wait up to `seconds` for the first discovery."""
        if self._source.view is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._source.decided()

    async def _bring_up_to_date(self) -> None:
        """Plan the prepared claims anew if devices changed since. Raises OSError."""
        view = self._source.view
        if view is not None and not self._is_renewed(view):
            await self._renew()

    def _instance(self, allocated: AllocatedDevice) -> Instance | None:
        view = self._source.view
        return view.instance(allocated) if view else None

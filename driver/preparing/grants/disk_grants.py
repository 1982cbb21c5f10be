"""What this node has granted: the record of each claim in its CDI file, and device metadata.

What a kill between two writes leaves behind is told in `records`. While an old and a new process
overlap (a rolling update), each reads the files again when the other was inside the lock. A claim
whose file is gone is lost, see `RecordFiles`: it keeps its devices until it is known whether the
other process released it, or the file was removed by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from driver.api import ClaimUid, NodeName
from driver.plumbing.disk_lock import ProcessLock
from driver.plumbing.worker_threads import to_the_end
from driver.preparing.files import cdi
from driver.preparing.files.disk_records import Files
from driver.preparing.files.disk_rescue import NAME as RESCUED
from driver.preparing.files.metadata import Known, nothing_known
from driver.preparing.files.prepared import VERSION, Home, PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grant_files import GrantFiles
from driver.preparing.grants.rival_claims import Renewal

SLOW_SECONDS = 0.02
"""A disk that took longer is waited for in a thread the next time, so that others go on."""

Plan = Callable[[PreparedClaims], PreparedClaim | Failure]
"""What to grant, given what is granted when the plan's turn comes."""

Renew = Callable[[PreparedClaims], Mapping[ClaimUid, Renewal]]
"""What is to change of what is granted, so that it is right again; see `renewals`."""

T = TypeVar("T")


class Node:
    """The claims that are prepared on this node.

    Attributes:
        boot_id: The boot that claims are prepared in.
        home: Where they are prepared, or why that is not known. Nothing new is granted before.
        files: Where they are written down.
    """

    def __init__(
        self, name: NodeName, boot_id: str, *, data: Files, cdi_files: Files, lock: ProcessLock
    ) -> None:
        """`data` is the driver's own folder, where an earlier driver had its checkpoint."""
        self.boot_id = boot_id
        self.home: Home | str = "the API server was not asked yet"
        self.files = GrantFiles(name, boot_id, data=data, cdi_files=cdi_files)
        self._lock = lock
        self._writing = asyncio.Lock()
        self._is_slow = False

    @property
    def folder_problem(self) -> str:
        """Why CDI files cannot be written; "" if they can."""
        return self.files.folder_problem

    @property
    def metadata_problem(self) -> str:
        """Why device metadata cannot be written; "" if it can."""
        return self.files.metadata_problem

    @property
    def rescue_problem(self) -> str:
        """Why it is not known which claims without CDI files another process kept."""
        return self.files.rescue_problem

    @property
    def is_up_to_date(self) -> bool:
        """Whether no file is withheld that could not be written."""
        return not self.files.records.withheld

    @property
    def prepared(self) -> PreparedClaims:
        """The claims that are prepared now, as far as this process has read."""
        return self.files.records.claims

    @property
    def doubtful(self) -> PreparedClaims:
        """Those of which not all is known."""
        return self.files.records.doubtful

    @property
    def lost(self) -> PreparedClaims:
        """Those of which all is known, and whose CDI file is gone, see `settle`."""
        return {uid: self.prepared[uid] for uid in self.files.records.lost}

    def glance(self) -> Iterator[PreparedClaim]:
        """What is prepared, without the lock: enough for a hint. Raises OSError.

        Nothing of it stays in memory: until `recover` another process may release it.
        """
        return self.files.glance()

    async def recover(self) -> None:
        """Read what an earlier process left; call once, before anything else."""

        async def entered(_: bool) -> None:
            await to_the_end(self.files.recover)

        async with self._lock.held(entered):
            pass

    @asynccontextmanager
    async def exclusively(self) -> AsyncIterator[PreparedClaims]:
        """Keep other processes out, and be up to date; required to grant and to release."""
        async with self._lock.held(self._refresh):
            yield self.prepared

    async def _refresh(self, is_foreign: bool) -> None:
        if is_foreign or self.files.has_checkpoint:
            await to_the_end(self.files.read)

    def alone_with(self, uid: ClaimUid) -> AbstractAsyncContextManager[None]:
        """Keep other processes from this claim; entered before `exclusively`, if at all.

        Between the first look at a claim and the last write none of them may unprepare it.
        """
        return self._lock.held_for(uid)

    async def grant(self, plan: Plan, known: Known = nothing_known) -> PreparedClaim | Failure:
        """Carry out a plan: device metadata, then the CDI file that mounts it."""
        async with self._writing:
            if self.rescue_problem:
                self.files.adopt_rescued()
            granted = plan(self.prepared)
            if isinstance(granted, PreparedClaim) and not self._is_granted(granted):
                granted = self._new(granted)
            if isinstance(granted, Failure):
                return granted
            try:
                await self._disk(partial(self.files.put, granted, known))
            except OSError as error:
                return Failure(f"the node cannot record what it grants: {error}")
            return granted

    def _is_granted(self, claim: PreparedClaim) -> bool:
        return self.prepared.get(claim.reference.uid) == claim

    def _new(self, granted: PreparedClaim) -> PreparedClaim | Failure:
        """Nothing new is granted while it is not known which devices some claim has."""
        if self.rescue_problem:
            return Failure(
                "it is not known which claims are prepared on this node, so that nothing new is:"
                f" {self.rescue_problem}"
            )
        if self.files.records.doubtful:
            self.files.records.read()  # a file may have been removed by hand
        for uid, claim in self.files.records.doubtful.items():
            if uid != granted.reference.uid or claim.version > VERSION:
                return self._in_doubt(claim)
        if isinstance(self.home, str):
            return Failure(f"it is not known which node and cluster this is: {self.home}")
        return replace(granted, home=self.home)

    async def release(self, uid: ClaimUid) -> PreparedClaim | Failure | None:
        """Forget a claim: CDI file, then metadata. None if it was not prepared."""
        async with self._writing:
            claim = self.prepared.get(uid)
            if claim is not None and claim.version > VERSION:
                return self._in_doubt(claim)
            try:
                if claim is None:
                    self.files.rescue.note_released(uid)
                else:
                    await self._disk(partial(self.files.remove, claim))
            except OSError as error:
                return Failure(f"the node cannot record what it releases: {error}")
            return claim

    async def settle(self, uid: ClaimUid, *, is_in_use: bool) -> bool:
        """Write the CDI file of a claim that is lost, or forget the claim. Raises OSError.

        Returns:
            False if it is not lost: it has a file by now, or was released.
        """
        async with self._writing:
            if (claim := self.lost.get(uid)) is None:
                return False
            await self._disk(
                partial(self.files.put_record if is_in_use else self.files.remove, claim)
            )
            await self._disk(self.files.keep_rescued)
            return True

    def _in_doubt(self, claim: PreparedClaim) -> Failure:
        uid = claim.reference.uid
        place = f"CDI file {cdi.file_name(uid)}" if self.files.records.has_file(uid) else RESCUED
        return Failure(
            f"the record of claim {uid} in {place} {claim.doubt}: nothing new is prepared on this"
            " node until that claim has ended, or a driver runs that can read it"
        )

    async def renew(
        self,
        plan: Renew,
        known: Known = nothing_known,
        only: Collection[ClaimUid] | None = None,
    ) -> tuple[Renewal, ...]:
        """Carry out what a plan changes: CDI files, then device metadata.

        Args:
            plan: What is to change.
            known: The Instance of an allocated device.
            only: Claims whose metadata may be another; None for all.

        Raises:
            OSError: If something cannot be written. CDI files that are no longer right are withheld
                then, and will be written by the next call, which is to follow.
        """
        async with self._writing:
            doubtful = self.files.records.doubtful
            changes = plan({u: c for u, c in self.prepared.items() if u not in doubtful})
            failures = await self._disk(lambda: list(self.files.carry_out(changes, known, only)))
        if failures:
            raise failures[-1]
        renewals, self.files.renewals = tuple(self.files.renewals), []
        return renewals

    async def _disk(self, work: Callable[[], T]) -> T:
        """A quick disk is waited for at once: a change of threads takes longer than that."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await to_the_end(work) if self._is_slow else work()
        finally:
            self._is_slow = clock() - began > SLOW_SECONDS

"""The claims that this node has granted, locked against other processes.

`disk_grant_files` writes them. While an old and a new process overlap (a rolling update), each
reads the files again after the other has held the lock. A claim whose file is missing is lost, see
`RecordFiles`: it keeps its devices until it is known whether the other process released it, or a
person removed the file.
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
from driver.plumbing.worker_threads import in_shielded_thread
from driver.preparing.files import cdi
from driver.preparing.files.disk_records import Files
from driver.preparing.files.disk_rescue import NAME as RESCUED
from driver.preparing.files.metadata import Known, nothing_known
from driver.preparing.files.prepared import VERSION, Home, PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grant_files import GrantFiles
from driver.preparing.grants.rival_claims import Renewal

SLOW_SECONDS = 0.02
"""After a write that took longer, the next write runs in a thread, so that others continue."""

Plan = Callable[[PreparedClaims], PreparedClaim | Failure]
"""The plan for a claim, from the claims that are prepared when it runs."""

Renew = Callable[[PreparedClaims], Mapping[ClaimUid, Renewal]]
"""The changes of prepared claims that bring them up to date; see `renewals`."""

T = TypeVar("T")


class Node:
    """The claims that are prepared on this node.

    Attributes:
        boot_id: The current boot.
        home: The UIDs of this node and cluster, or why they are unknown. No new claim is granted
            while they are unknown.
        files: Their files.
    """

    def __init__(
        self, name: NodeName, boot_id: str, *, data: Files, cdi_files: Files, lock: ProcessLock
    ) -> None:
        """`data` is the driver's own folder, where an earlier driver stored its checkpoint."""
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
        """Why the rescued records of other processes are unknown; "" if they are known."""
        return self.files.rescue_problem

    @property
    def is_up_to_date(self) -> bool:
        """Whether no file is withheld because it could not be written."""
        return not self.files.records.withheld

    @property
    def prepared(self) -> PreparedClaims:
        """The prepared claims, as of the last read of this process."""
        return self.files.records.claims

    @property
    def doubtful(self) -> PreparedClaims:
        """The claims with partly unknown records."""
        return self.files.records.doubtful

    @property
    def lost(self) -> PreparedClaims:
        """The claims with complete records and missing CDI files, see `settle`."""
        return {uid: self.prepared[uid] for uid in self.files.records.lost}

    def peek(self) -> Iterator[PreparedClaim]:
        """The prepared claims, read without the lock, as a hint. Raises OSError.

        They are not kept in memory: another process may release them until `recover`.
        """
        return self.files.peek()

    async def recover(self) -> None:
        """Read the files of an earlier process; call once, before all other calls."""

        async def entered(_: bool) -> None:
            await in_shielded_thread(self.files.recover)

        async with self._lock.held(entered):
            pass

    @asynccontextmanager
    async def exclusively(self) -> AsyncIterator[PreparedClaims]:
        """Lock other processes out, and read their changes; required to grant and to release."""
        async with self._lock.held(self._refresh):
            yield self.prepared

    async def _refresh(self, is_foreign: bool) -> None:
        if is_foreign or self.files.has_checkpoint:
            await in_shielded_thread(self.files.read)

    def alone_with(self, uid: ClaimUid) -> AbstractAsyncContextManager[None]:
        """Lock other processes out of this claim; enter it before `exclusively`, if at all.

        Between the first read of a claim and the last write no other process may unprepare it.
        """
        return self._lock.held_for(uid)

    async def grant(self, plan: Plan, known: Known = nothing_known) -> PreparedClaim | Failure:
        """Carry out a plan: write device metadata, then the CDI file that mounts it."""
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
        """The new claim, or a Failure while the devices of any claim are unknown."""
        if self.rescue_problem:
            return Failure(
                "the prepared claims of this node are unknown, so no new claim is prepared:"
                f" {self.rescue_problem}"
            )
        if self.files.records.doubtful:
            self.files.records.read()  # a person may have removed a file
        for uid, claim in self.files.records.doubtful.items():
            if uid != granted.reference.uid or claim.version > VERSION:
                return self._in_doubt(claim)
        if isinstance(self.home, str):
            return Failure(f"the UIDs of this node and cluster are unknown: {self.home}")
        return replace(granted, home=self.home)

    async def release(self, uid: ClaimUid) -> PreparedClaim | Failure | None:
        """Remove a claim: CDI file, then metadata. None if it was not prepared."""
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
        """Write the CDI file of a lost claim that is in use, or forget the claim. Raises OSError.

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
            f"the record of claim {uid} in {place} {claim.doubt}: no new claim is prepared on"
            " this node until that claim has ended, or a driver runs that can read it"
        )

    async def renew(
        self,
        plan: Renew,
        known: Known = nothing_known,
        only: Collection[ClaimUid] | None = None,
    ) -> tuple[Renewal, ...]:
        """Carry out the changes of a plan: write CDI files, then device metadata.

        Args:
            plan: Returns the changes.
            known: Returns the Instance of an allocated device.
            only: Claims whose metadata may have changed; None for all.

        Raises:
            OSError: If a file cannot be written. Outdated CDI files are then withheld; the caller
                must call again, which writes them.
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
        """Run `work` in a thread if the disk is slow; a fast write is faster than a thread."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await in_shielded_thread(work) if self._is_slow else work()
        finally:
            self._is_slow = clock() - began > SLOW_SECONDS

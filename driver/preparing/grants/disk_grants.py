"""What this node has granted: the record of each claim in its CDI file, and device metadata.

What a kill between two writes leaves behind is told in `records`. While an old and a new process
overlap (a rolling update), each reads the files again when the other was inside the lock. A claim
whose file is gone is lost, see `RecordFiles`: it keeps its devices until it is known whether the
other process released it, or the file was removed by hand.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from driver.api import ClaimUid, NodeName
from driver.plumbing.disk import ProcessLock
from driver.plumbing.worker_threads import to_the_end
from driver.preparing.files import cdi
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.disk_places import RecordPlaces
from driver.preparing.files.disk_records import Files
from driver.preparing.files.metadata import Known, nothing_known
from driver.preparing.files.prepared import VERSION, Home, PreparedClaim, PreparedClaims
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.rival_claims import Renewal

logger = logging.getLogger(__name__)

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
        folder_problem: Why CDI files cannot be written, as a part of a sentence; "" if they can,
            as far as is known: by the last write of one, or by a look at their folder.
        metadata_problem: The same of device metadata.
        metadata: What containers can read of their devices; None if they get none of it. To be set
            before `recover`.
    """

    def __init__(
        self, name: NodeName, boot_id: str, *, data: Files, cdi_files: Files, lock: ProcessLock
    ) -> None:
        """`data` is the driver's own folder, where an earlier driver had its checkpoint."""
        self.boot_id = boot_id
        self.home: Home | str = "the API server was not asked yet"
        self.folder_problem = ""
        self.metadata_problem = ""
        self.metadata: MetadataFiles | None = None
        self._places = RecordPlaces(name, boot_id, data, cdi_files, self._dump)
        self._records = self._places.files
        self._lock = lock
        self._writing = asyncio.Lock()
        self._is_slow = False
        self._renewals: list[Renewal] = []

    @property
    def rescue_problem(self) -> str:
        """Why nothing new is granted: see `RecordPlaces.problem`; "" if nothing speaks for that."""
        return self._places.problem

    @property
    def is_up_to_date(self) -> bool:
        """Whether no file is withheld that could not be written."""
        return not self._records.withheld

    @property
    def prepared(self) -> PreparedClaims:
        """The claims that are prepared now, as far as this process has read."""
        return self._records.claims

    @property
    def doubtful(self) -> PreparedClaims:
        """Those of which not all is known."""
        return self._records.doubtful

    @property
    def lost(self) -> PreparedClaims:
        """Those of which all is known, and whose CDI file is gone, see `settle`."""
        return {uid: self.prepared[uid] for uid in self._records.lost}

    def glance(self) -> Iterator[PreparedClaim]:
        """What is prepared, without the lock: enough for a hint. Raises OSError."""
        return self._places.glance()

    async def recover(self) -> None:
        """Read what an earlier process left; call once, before anything else."""

        async def entered(_: bool) -> None:
            await to_the_end(self._recover)

        async with self._lock.held(entered):
            pass

    def _recover(self) -> None:
        self._places.read()
        for error in _tried(self._places.keep_rescued):
            logger.error("Records without CDI files cannot be kept: %s", error)
        if self.metadata is not None:
            self.metadata.tidy(self.prepared.values())
        self._records.tidy()

    @asynccontextmanager
    async def exclusively(self) -> AsyncIterator[PreparedClaims]:
        """Keep other processes out, and be up to date; required to grant and to release."""
        async with self._lock.held(self._refresh):
            yield self.prepared

    async def _refresh(self, is_foreign: bool) -> None:
        if is_foreign or self._places.has_checkpoint():
            await to_the_end(self._places.read)

    def alone_with(self, uid: ClaimUid) -> AbstractAsyncContextManager[None]:
        """Keep other processes from this claim; entered before `exclusively`, if at all.

        Between the first look at a claim and the last write none of them may unprepare it.
        """
        return self._lock.held_for(uid)

    def _dump(self, claim: PreparedClaim) -> bytes:
        return cdi.dump(claim, None if self.metadata is None else self.metadata.path)

    async def grant(self, plan: Plan, known: Known = nothing_known) -> PreparedClaim | Failure:
        """Carry out a plan: device metadata, then the CDI file that mounts it."""
        async with self._writing:
            if self.rescue_problem:
                self._places.adopt_rescued()
            granted = plan(self.prepared)
            if isinstance(granted, PreparedClaim) and not self._is_granted(granted):
                granted = self._new(granted)
            if isinstance(granted, Failure):
                return granted
            try:
                await self._disk(partial(self._put, granted, known))
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
        if self._records.doubtful:
            self._records.read()  # a file may have been removed by hand
        for uid, claim in self._records.doubtful.items():
            if uid != granted.reference.uid or claim.version > VERSION:
                return self._in_doubt(claim)
        if isinstance(self.home, str):
            return Failure(f"it is not known which node and cluster this is: {self.home}")
        return replace(granted, home=self.home)

    def _put(self, claim: PreparedClaim, known: Known) -> None:
        try:
            self._keep_metadata(claim, known)
        except OSError as error:
            self.metadata_problem = str(error)
            raise
        self.metadata_problem = ""
        self._put_record(claim)

    def _put_record(self, claim: PreparedClaim) -> None:
        """Nothing is known of the folder by a file that is right already."""
        try:
            if self._records.put(claim):
                self.folder_problem = ""
        except OSError as error:
            self.folder_problem = str(error)
            raise

    async def release(self, uid: ClaimUid) -> PreparedClaim | Failure | None:
        """Forget a claim: CDI file, then metadata. None if it was not prepared."""
        async with self._writing:
            claim = self.prepared.get(uid)
            if claim is not None and claim.version > VERSION:
                return self._in_doubt(claim)
            try:
                if claim is None:
                    self._places.note_released(uid)
                else:
                    await self._disk(partial(self._remove, claim))
            except OSError as error:
                return Failure(f"the node cannot record what it releases: {error}")
            return claim

    def _remove(self, claim: PreparedClaim) -> None:
        self._places.remove(claim.reference.uid)
        if self.metadata is not None:
            self.metadata.remove(claim)

    async def settle(self, uid: ClaimUid, *, is_in_use: bool) -> bool:
        """Write the CDI file of a claim that is lost, or forget the claim. Raises OSError.

        Returns:
            False if it is not lost: it has a file by now, or was released.
        """
        async with self._writing:
            if (claim := self.lost.get(uid)) is None:
                return False
            await self._disk(partial(self._put_record if is_in_use else self._remove, claim))
            await self._disk(self._places.keep_rescued)
            return True

    def _in_doubt(self, claim: PreparedClaim) -> Failure:
        uid = claim.reference.uid
        place = self._places.place_of(uid)
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
            doubtful = self._records.doubtful
            changes = plan({u: c for u, c in self.prepared.items() if u not in doubtful})
            failures = await self._disk(lambda: list(self._carry_out(changes, known, only)))
        if failures:
            raise failures[-1]
        renewals, self._renewals = tuple(self._renewals), []
        return renewals

    def _carry_out(
        self,
        changes: Mapping[ClaimUid, Renewal],
        known: Known,
        only: Collection[ClaimUid] | None,
    ) -> Iterator[OSError]:
        """One that fails keeps no other from being carried out."""
        if only is None:
            self._records.look()
        lost = frozenset(self._records.lost)
        for uid in dict.fromkeys((*self._records.withheld, *changes)):
            claim = changes[uid].after if uid in changes else self.prepared[uid]
            if uid in lost:
                self._records.hold(claim)
                self._renewals.append(changes[uid])
            elif failures := _tried(partial(self._records.put, claim)):
                yield from (*failures, *_tried(partial(self._records.withhold, uid)))
            elif uid in changes:
                self._renewals.append(changes[uid])
        for uid in self.prepared if only is None else only:
            if (kept := self.prepared.get(uid)) is not None:
                yield from _tried(partial(self._keep_metadata, kept, known))
        yield from _tried(self._mind_folder)

    def _mind_folder(self) -> None:
        """See whether files can be written, and keep the records of claims that have none."""
        had_failed = bool(self.folder_problem)
        self.folder_problem = self._records.problem(thoroughly=had_failed)
        if self.metadata_problem and self.metadata is not None:
            self.metadata_problem = self.metadata.problem()
        self._places.adopt_rescued()
        self._places.keep_rescued()

    def _keep_metadata(self, claim: PreparedClaim, known: Known) -> None:
        if self.metadata is not None and not claim.doubt:
            self.metadata.keep(claim, known)

    async def _disk(self, work: Callable[[], T]) -> T:
        """A quick disk is waited for at once: a change of threads takes longer than that."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await to_the_end(work) if self._is_slow else work()
        finally:
            self._is_slow = clock() - began > SLOW_SECONDS


def _tried(work: Callable[[], object]) -> tuple[OSError, ...]:
    try:
        work()
    except OSError as error:
        return (error,)
    return ()

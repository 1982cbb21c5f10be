"""What this node has granted: checkpoint and CDI files, kept as one.

The order of writes, and what a kill between two of them leaves behind, is told in `checkpoint`.
While an old and a new process overlap (a rolling update), each reads the checkpoint again when
the other has written it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from driver.api import ClaimUid, NodeName
from driver.plumbing.disk import ProcessLock
from driver.preparing.files import cdi
from driver.preparing.files.checkpoint import Unreadable
from driver.preparing.files.disk_checkpoint import CheckpointFile, Files
from driver.preparing.files.disk_metadata import MetadataFiles
from driver.preparing.files.metadata import Known, nothing_known
from driver.preparing.files.prepared import (
    ClaimReference,
    PreparedClaim,
    PreparedClaims,
    lost_claim,
)
from driver.preparing.grants.claims import Conflict, Failure
from driver.preparing.grants.renewals import Renewal

logger = logging.getLogger(__name__)

Plan = Callable[[PreparedClaims], PreparedClaim | Failure]
"""What to grant, given what is granted when the plan's turn comes."""

Renew = Callable[[PreparedClaims], Mapping[ClaimUid, Renewal]]
"""What is to change of what is granted, so that it is right again; see `renewals`."""


class Node:
    """The claims that are prepared on this node.

    Attributes:
        boot_id: The boot that claims are prepared in from now on.
        metadata: What containers can read of their devices; None if they get none of it. To be set
            before `recover`.
    """

    def __init__(
        self, name: NodeName, boot_id: str, *, data: Files, cdi_files: Files, lock: ProcessLock
    ) -> None:
        self.boot_id = boot_id
        self.metadata: MetadataFiles | None = None
        self.checkpoint = CheckpointFile(data, name)
        self._cdi = cdi_files
        self._lock = lock
        self._written: dict[ClaimUid, tuple[PreparedClaim, object]] = {}
        self._leaving: set[ClaimUid] = set()
        self._unwritten: dict[ClaimUid, None] = {}
        self._renewals: list[Renewal] = []

    @property
    def is_up_to_date(self) -> bool:
        """Whether no other process wrote the checkpoint since, and no CDI file is to be written."""
        return not self._unwritten and not self.checkpoint.is_foreign()

    @property
    def prepared(self) -> PreparedClaims:
        """The claims that are prepared now, as far as this process has read."""
        return self.checkpoint.claims

    @property
    def claims_prepared(self) -> int:
        """How many those are."""
        return len(self.checkpoint.claims)

    async def recover(self) -> None:
        """Read what an earlier process left; call once, before anything else."""

        async def entered() -> None:
            await asyncio.to_thread(self._read)
            await asyncio.to_thread(self._tidy)

        async with self._lock.held(entered):
            pass

    @asynccontextmanager
    async def exclusively(self) -> AsyncIterator[PreparedClaims]:
        """Keep other processes out, and be up to date; required to grant and to release."""
        async with self._lock.held(self._refresh):
            yield self.checkpoint.claims

    def alone_with(self, uid: ClaimUid) -> AbstractAsyncContextManager[None]:
        """Keep other processes from this claim; entered before `exclusively`, if at all.

        Between the first look at a claim and the last write none of them may unprepare it.
        """
        return self._lock.held_for(uid)

    @property
    def _metadata_path(self) -> cdi.MetadataPath | None:
        return None if self.metadata is None else self.metadata.path

    async def _refresh(self) -> None:
        if self.checkpoint.is_foreign():
            await asyncio.to_thread(self._read)

    async def grant(self, plan: Plan, known: Known = nothing_known) -> PreparedClaim | Failure:
        """Carry out a plan: checkpoint, then device metadata, then the CDI file that mounts it.

        Nothing new is granted while nobody knows which devices some claim has.
        """
        try:
            step = partial(_with, plan, self._lost())
            granted: PreparedClaim | Failure = await self.checkpoint.commit(step)
            if isinstance(granted, PreparedClaim):
                self._keep_metadata(granted, known)
                self._put_file(granted.reference.uid)
        except OSError as error:
            return Failure(f"the node cannot record what it grants: {error}")
        return granted

    def _lost(self) -> frozenset[ClaimUid]:
        """Claims of which only the UID is known; one whose file somebody removed holds nothing."""
        claims = self.checkpoint.claims.values()
        lost = {c.reference.uid for c in claims if not c.devices and c.boot_id == self.boot_id}
        return frozenset(lost & self._cdi_contents().keys()) if lost else frozenset()

    async def release(self, uid: ClaimUid) -> PreparedClaim | Failure | None:
        """Forget a claim: CDI file, then checkpoint. None if it was not prepared."""
        self._leaving.add(uid)
        try:
            self._remove_file(uid)
            if self.metadata is not None and (claim := self.checkpoint.claims.get(uid)):
                self.metadata.remove(claim)
            step = partial(_without, uid)
            released: PreparedClaim | None = await self.checkpoint.commit(step)
        except OSError as error:
            return Failure(f"the node cannot record what it releases: {error}")
        finally:
            self._leaving.discard(uid)
        return released

    async def renew(self, plan: Renew, known: Known = nothing_known) -> tuple[Renewal, ...]:
        """Carry out what a plan changes: checkpoint, then CDI files, then device metadata.

        Raises:
            OSError: If something cannot be written. CDI files that are no longer right are gone
                then, or will be written by the next call, which is to follow.
        """
        try:
            changes = await self.checkpoint.commit(partial(_renewed, plan))
        except OSError:
            self._for_each(plan(self.checkpoint.claims), self._withdraw)
            raise
        self._renewals += changes.values()
        self._unwritten.update(dict.fromkeys(changes))
        self._for_each(self._unwritten, self._complete)
        self._for_each(self.checkpoint.claims, partial(self._tell, known))
        renewals, self._renewals = tuple(self._renewals), []
        return renewals

    def _for_each(self, uids: Iterable[ClaimUid], work: Callable[[ClaimUid], None]) -> None:
        """One that fails keeps no other from being carried out."""
        failure: OSError | None = None
        for uid in tuple(uids):
            try:
                work(uid)
            except OSError as error:
                failure = error
        if failure is not None:
            raise failure

    def _tell(self, known: Known, uid: ClaimUid) -> None:
        claim = self.checkpoint.claims[uid]
        if claim.boot_id == self.boot_id and uid not in self._leaving:
            self._keep_metadata(claim, known)

    def _keep_metadata(self, claim: PreparedClaim, known: Known) -> None:
        if self.metadata is not None:
            self.metadata.keep(claim, known)

    def _withdraw(self, uid: ClaimUid) -> None:
        """Remove a CDI file until the checkpoint can be written, and it after that."""
        self._unwritten[uid] = None
        self._remove_file(uid)

    def _complete(self, uid: ClaimUid) -> None:
        self._put_file(uid)
        self._unwritten.pop(uid, None)

    def _put_file(self, uid: ClaimUid) -> None:
        """Write what the checkpoint says now, unless the file is that already.

        It waits for no disk, and so not for a thread either.
        """
        claim = self.checkpoint.claims.get(uid)
        if claim is None or uid in self._leaving:
            return
        name = cdi.file_name(uid)
        if self._written.get(uid) != (claim, self._cdi.signature(name)):
            self._cdi.write(name, cdi.dump(claim, self._metadata_path))
            self._note_file(claim)

    def _remove_file(self, uid: ClaimUid) -> None:
        self._written.pop(uid, None)
        self._cdi.remove(cdi.file_name(uid))

    def _note_file(self, claim: PreparedClaim) -> None:
        uid = claim.reference.uid
        self._written[uid] = (claim, self._cdi.signature(cdi.file_name(uid)))

    def _read(self) -> None:
        """Read the checkpoint, or rebuild it from CDI files."""
        if self.checkpoint.read():
            return
        claims = dict(self.checkpoint.claims)
        for uid, text in self._cdi_contents().items():
            match cdi.load(text, uid):
                case PreparedClaim() as claim:
                    claims[uid] = claim
                case Unreadable(reason):
                    logger.error("CDI file %s is unreadable: %s", cdi.file_name(uid), reason)
                    claims.setdefault(uid, lost_claim(uid, self.boot_id))
        if claims:
            logger.error("Rebuilt the checkpoint from CDI files: %d claims", len(claims))
            self.checkpoint.rebuild(claims)

    def _tidy(self) -> None:
        """Make the CDI files those of the checkpoint.

        Claims of an earlier boot get theirs when they are planned again.
        """
        if self.metadata is not None:
            self.metadata.tidy(self.checkpoint.claims.values())
        claims, files = self.checkpoint.claims, self._cdi_contents()
        lost = {uid for uid, claim in claims.items() if not claim.devices}
        current = {uid for uid, c in claims.items() if c.boot_id == self.boot_id} - lost
        for uid in sorted(current):
            content = cdi.dump(claims[uid], self._metadata_path)
            if files.get(uid) == content:
                self._note_file(claims[uid])
            else:
                self._put_right(uid, content)
        for uid in sorted(files.keys() - current - lost):
            self._put_right(uid, None)

    def _put_right(self, uid: ClaimUid, content: bytes | None) -> None:
        """Write a CDI file, or remove it."""
        name = cdi.file_name(uid)
        try:
            if content is not None:
                logger.warning("CDI file %s is missing or differs; writing it anew", name)
                self._cdi.write(name, content)
            else:
                logger.warning("CDI file %s is of no claim prepared in this boot; removing", name)
                self._cdi.remove(name)
        except OSError:
            logger.exception("CDI file %s cannot be put right", name)

    def _cdi_contents(self) -> Mapping[ClaimUid, bytes]:
        """Our files; those of others are none of our business."""
        return {
            uid: text
            for name in self._cdi.names()
            if (uid := cdi.claim_of(name)) and (text := self._cdi.read(name)) is not None
        }


def _with(
    plan: Plan, lost: frozenset[ClaimUid], claims: PreparedClaims
) -> tuple[PreparedClaims, PreparedClaim | Failure]:
    granted = plan(claims)
    if isinstance(granted, Failure) or claims.get(granted.reference.uid) == granted:
        return claims, granted
    if others := lost - {granted.reference.uid}:
        return claims, _unknown(claims[min(others)].reference)
    return {**claims, granted.reference.uid: granted}, granted


def _unknown(holder: ClaimReference) -> Conflict:
    name = cdi.file_name(holder.uid)
    return Conflict(
        f"the checkpoint was lost, and CDI file {name} is unreadable: which devices it is for is"
        " known when the API server tells; it holds none once its claim is unprepared, or the file"
        " removed",
        holder,
    )


def _renewed(
    plan: Renew, claims: PreparedClaims
) -> tuple[PreparedClaims, Mapping[ClaimUid, Renewal]]:
    changes = plan(claims)
    if not changes:
        return claims, changes
    return {**claims, **{uid: renewal.after for uid, renewal in changes.items()}}, changes


def _without(uid: ClaimUid, claims: PreparedClaims) -> tuple[PreparedClaims, PreparedClaim | None]:
    if uid not in claims:
        return claims, None
    return {key: claim for key, claim in claims.items() if key != uid}, claims[uid]

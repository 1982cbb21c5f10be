"""What this node has granted: memory, checkpoint and CDI files, kept as one.

Memory follows the disk and is never ahead of it. The order of writes, and what a kill between two
of them leaves behind, is told in `checkpoint`. While an old and a new process overlap (a rolling
update), each reads the checkpoint again when the other has written it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from driver import cdi, checkpoint
from driver.api import ClaimUid, NodeName
from driver.cdi import RemoveFile, WriteFile
from driver.checkpoint import Unreadable
from driver.claims import AllocatedClaim, Failure, held_claim
from driver.disk import ProcessLock
from driver.prepared import PreparedClaim, PreparedClaims

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.json"

Plan = Callable[[PreparedClaims], PreparedClaim | Failure]
"""What to grant, given what is granted when the plan's turn comes."""

FindAllocated = Callable[[frozenset[ClaimUid]], Awaitable[Iterable[AllocatedClaim]]]
"""The allocations of these claims, as the API server has them."""

_Step = Callable[[PreparedClaims], tuple[PreparedClaims, Any]]


class Files(Protocol):
    """A folder of files that are replaced whole or not at all; see `disk.Folder`."""

    def names(self) -> list[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def signature(self, name: str) -> object: ...
    def write(self, name: str, content: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def move_aside(self, name: str) -> str: ...


class Node:
    """The claims that are prepared on this node.

    Attributes:
        boot_id: The boot that claims are prepared in from now on.
    """

    def __init__(
        self, name: NodeName, boot_id: str, *, data: Files, cdi_files: Files, lock: ProcessLock
    ) -> None:
        self.boot_id = boot_id
        self._name = name
        self._data = data
        self._cdi = cdi_files
        self._lock = lock
        self._prepared: PreparedClaims = {}
        self._signature: object = None
        self._writing = asyncio.Lock()
        self._waiting: list[tuple[_Step, asyncio.Future[Any]]] = []

    async def recover(self, find_allocated: FindAllocated) -> None:
        """Read what an earlier process left; call once, before anything else.

        Args:
            find_allocated: Asked only about claims of which checkpoint and CDI file are both
                unreadable.
        """

        async def entered() -> None:
            lost = await asyncio.to_thread(self._read)
            if lost:
                await self._hold(lost, find_allocated)
            await asyncio.to_thread(self._tidy)

        async with self._lock.held(entered):
            pass

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[PreparedClaims]:
        """Keep other processes out, and be up to date; required to grant and to release."""
        async with self._lock.held(self._refresh):
            yield self._prepared

    async def _refresh(self) -> None:
        if self._signature != self._data.signature(CHECKPOINT):
            await asyncio.to_thread(self._read)

    async def grant(self, plan: Plan) -> PreparedClaim | Failure:
        """Carry out a plan: checkpoint, then CDI file."""
        try:
            granted: PreparedClaim | Failure = await self._commit(partial(_with, plan))
            if isinstance(granted, PreparedClaim):
                name = cdi.file_name(granted.reference.uid)
                await asyncio.to_thread(self._cdi.write, name, cdi.dump(granted))
        except OSError as error:
            return Failure(f"the node cannot record what it grants: {error}")
        return granted

    async def release(self, uid: ClaimUid) -> PreparedClaim | Failure | None:
        """Forget a claim: CDI file, then checkpoint. None if it was not prepared."""
        try:
            await asyncio.to_thread(self._cdi.remove, cdi.file_name(uid))
            released: PreparedClaim | None = await self._commit(partial(_without, uid))
        except OSError as error:
            return Failure(f"the node cannot record what it releases: {error}")
        return released

    async def _commit(self, step: _Step) -> Any:
        """Take a step of the checkpoint, in one write with all others that wait for the disk."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((step, done))
        async with self._writing:
            if not done.done():
                batch, self._waiting = self._waiting, []
                try:
                    await self._take(batch)
                finally:
                    for _, other in batch:
                        other.cancel()  # only those that a cancelled write left without an answer
        return done.result()

    async def _take(self, batch: list[tuple[_Step, asyncio.Future[Any]]]) -> None:
        try:
            await self._take_together(batch)
        except OSError as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            # On a full disk a step that shrinks the checkpoint may still succeed.
            for each in batch:
                await self._take([each])

    async def _take_together(self, batch: list[tuple[_Step, asyncio.Future[Any]]]) -> None:
        claims, answers = self._prepared, []
        for step, done in batch:
            try:
                claims, outcome = step(claims)
                answers.append(partial(done.set_result, outcome))
            except Exception as error:  # noqa: BLE001 - it is raised again where the step is from
                answers.append(partial(done.set_exception, error))
        if claims is not self._prepared:
            await asyncio.to_thread(self._write, claims)
        for answer in answers:
            answer()

    def _write(self, claims: PreparedClaims) -> None:
        """Raises OSError, and then memory is as before."""
        self._data.write(CHECKPOINT, checkpoint.dump(claims, self._name))
        self._prepared, self._signature = claims, self._data.signature(CHECKPOINT)

    def _read(self) -> frozenset[ClaimUid]:
        """Read the checkpoint, or rebuild it; says of which claims nothing could be read."""
        text = self._data.read(CHECKPOINT)
        loaded = None if text is None else checkpoint.load(text, self._name)
        if isinstance(loaded, Unreadable):
            aside = self._data.move_aside(CHECKPOINT)
            logger.error("Checkpoint is unreadable: %s; moved to %s", loaded.reason, aside)
        elif loaded is not None:
            self._prepared, self._signature = loaded, self._data.signature(CHECKPOINT)
            return frozenset()
        return self._rebuild()

    def _rebuild(self) -> frozenset[ClaimUid]:
        self._signature = None
        claims = dict(self._prepared)
        lost: set[ClaimUid] = set()
        for name, text in self._cdi_contents().items():
            uid = cdi.claim_of(name)
            if uid is None:
                continue
            match cdi.load(text, uid):
                case PreparedClaim() as claim:
                    claims[uid] = claim
                case Unreadable(reason):
                    logger.error("CDI file %s is unreadable: %s", name, reason)
                    lost.add(uid)
        if claims or lost:
            logger.error("Rebuilt the checkpoint from CDI files: %d claims", len(claims))
            self._keep(claims)
        return frozenset(lost)

    def _keep(self, claims: PreparedClaims) -> None:
        """Go on with what was rebuilt, even if the disk is full: the CDI files still have it."""
        self._prepared = claims
        try:
            self._write(claims)
        except OSError:
            logger.exception("The rebuilt checkpoint cannot be written")

    async def _hold(self, lost: frozenset[ClaimUid], find_allocated: FindAllocated) -> None:
        try:
            found = [held_claim(claim) for claim in await find_allocated(lost)]
        except Exception:
            logger.exception("Claims %s are lost until the kubelet asks for them", sorted(lost))
            return
        claims = {**self._prepared, **{claim.reference.uid: claim for claim in found}}
        logger.error("Rebuilt %d of %d lost claims from the API", len(found), len(lost))
        await asyncio.to_thread(self._keep, claims)

    def _tidy(self) -> None:
        """Make the CDI files those of the checkpoint."""
        for step in cdi.plan_files(self._prepared, self._cdi_contents(), self.boot_id):
            try:
                self._carry_out(step)
            except OSError:
                logger.exception("CDI file %s cannot be put right", step.name)

    def _carry_out(self, step: WriteFile | RemoveFile) -> None:
        match step:
            case WriteFile(name, content):
                logger.warning("CDI file %s is missing or differs; writing it anew", name)
                self._cdi.write(name, content)
            case RemoveFile(name):
                logger.warning("CDI file %s is of no claim prepared in this boot; removing", name)
                self._cdi.remove(name)

    def _cdi_contents(self) -> Mapping[str, bytes]:
        ours = (name for name in self._cdi.names() if cdi.claim_of(name))
        return {name: text for name in ours if (text := self._cdi.read(name)) is not None}


def _with(plan: Plan, claims: PreparedClaims) -> tuple[PreparedClaims, PreparedClaim | Failure]:
    granted = plan(claims)
    if isinstance(granted, Failure) or claims.get(granted.reference.uid) == granted:
        return claims, granted
    return {**claims, granted.reference.uid: granted}, granted


def _without(uid: ClaimUid, claims: PreparedClaims) -> tuple[PreparedClaims, PreparedClaim | None]:
    if uid not in claims:
        return claims, None
    return {key: claim for key, claim in claims.items() if key != uid}, claims[uid]

"""The checkpoint on disk: claims that wait for the disk at one time share one write.

Memory follows the disk and is never ahead of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from driver.api import NodeName
from driver.preparing.files import checkpoint
from driver.preparing.files.checkpoint import Unreadable
from driver.preparing.files.prepared import PreparedClaims

logger = logging.getLogger(__name__)

NAME = "checkpoint.json"

SLOW_SECONDS = 0.02
"""A disk that took longer is waited for in a thread the next time, so that others go on."""

Step = Callable[[PreparedClaims], tuple[PreparedClaims, Any]]
"""From what is prepared to what shall be, and an answer; the same object if nothing changes."""

_Waiting = tuple[Step, asyncio.Future[Any]]


class Files(Protocol):
    """A folder of files that are replaced whole or not at all; see `disk.Folder`."""

    def names(self) -> list[str]: ...
    def read(self, name: str) -> bytes | None: ...
    def signature(self, name: str) -> object: ...
    def write(self, name: str, content: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def move_aside(self, name: str) -> str: ...


class CheckpointFile:
    """The checkpoint of a node.

    Attributes:
        claims: What the file says, or what was rebuilt when it could not be read.
    """

    def __init__(self, files: Files, node: NodeName) -> None:
        self.claims: PreparedClaims = {}
        self._files = files
        self._node = node
        self._signature: object = None
        self._is_slow = False
        self.writing = asyncio.Lock()
        self.waiting: list[_Waiting] = []

    def is_foreign(self) -> bool:
        """Whether the file is no longer the one that was read or written last."""
        return self._signature != self._files.signature(NAME)

    def read(self) -> bool:
        """Read the file; if it is missing or unreadable, `claims` stay as they are."""
        self._signature = None
        text = self._files.read(NAME)
        loaded = None if text is None else checkpoint.load(text, self._node)
        if isinstance(loaded, Unreadable):
            aside = self._files.move_aside(NAME)
            logger.error("Checkpoint is unreadable: %s; moved to %s", loaded.reason, aside)
            return False
        if loaded is None:
            return False
        self.claims, self._signature = loaded, self._files.signature(NAME)
        return True

    def rebuild(self, claims: PreparedClaims) -> None:
        """Go on with these, even if the disk is full."""
        self.claims = claims
        try:
            self._write(claims)
        except OSError:
            logger.exception("The rebuilt checkpoint cannot be written")

    async def commit(self, step: Step) -> Any:
        """Take a step, and return its answer when it is on the disk.

        Raises:
            OSError: If it cannot be written; nothing has changed then.
        """
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.append((step, done))
        async with self.writing:
            if not done.done():
                await asyncio.sleep(0)  # whoever comes at this moment shares the write
                batch, self.waiting = self.waiting, []
                try:
                    await self._take(batch)
                finally:
                    for _, other in batch:
                        other.cancel()  # only those that a cancelled write left without an answer
        return done.result()

    async def _take(self, batch: list[_Waiting]) -> None:
        try:
            await self._take_together(batch)
        except OSError as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            # On a full disk a step that shrinks the checkpoint may still succeed.
            for each in batch:
                await self._take([each])

    async def _take_together(self, batch: list[_Waiting]) -> None:
        claims, answers = self.claims, []
        for step, done in batch:
            try:
                claims, answer = step(claims)
                answers.append(partial(done.set_result, answer))
            except Exception as error:  # noqa: BLE001 - it is raised again where the step is from
                answers.append(partial(done.set_exception, error))
        if claims is not self.claims:
            await self._store(claims)
        for tell in answers:
            tell()

    async def _store(self, claims: PreparedClaims) -> None:
        """A quick disk is waited for at once: a change of threads takes longer than that."""
        clock = asyncio.get_running_loop().time
        began = clock()
        if self._is_slow:
            await asyncio.to_thread(self._write, claims)
        else:
            self._write(claims)
        self._is_slow = clock() - began > SLOW_SECONDS

    def _write(self, claims: PreparedClaims) -> None:
        self._files.write(NAME, checkpoint.dump(claims, self._node))
        self.claims, self._signature = claims, self._files.signature(NAME)

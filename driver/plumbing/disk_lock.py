"""A lock file on the disk of the node, which one process holds at a time."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from driver.plumbing.disk import opened

LOCK_POLL_SECONDS = 0.02
HELD_SECONDS = 1.0
"""How long a process that is never empty keeps others out."""

STRUCT_FLOCK = "hhqqi0q"
"""fcntl.h's: type, whence, start, length, pid."""

MARK_BYTES = 16

Entered = Callable[[bool], Awaitable[None]]
"""Is told whether another process may have been inside since this one was."""


class ProcessLock:
    """A lock file that one process holds at a time; a process that dies lets go of it.

    Within the process any number of tasks may be inside at once. A process that is never empty
    lets others in all the same: it keeps its tasks out for a moment from time to time. In the file
    is the mark of the process that was inside last.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = os.urandom(MARK_BYTES)
        self._entering = asyncio.Lock()
        self._inside = 0
        self._left = asyncio.Event()
        self._descriptor = -1
        self._due = 0.0

    @asynccontextmanager
    async def held(self, entered: Entered) -> AsyncIterator[None]:
        """Be inside. The first task to enter runs `entered` before any other follows.

        Whoever is inside must not enter once more.
        """
        async with self._entering:
            await self._let_others_in()
            if self._inside == 0:
                await self._enter(entered)
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                os.close(self._descriptor)  # which also unlocks
                self._left.set()

    @asynccontextmanager
    async def held_for(self, key: str) -> AsyncIterator[None]:
        """Keep other processes out of what concerns one key, however long that takes.

        It is taken before the lock itself, never after it.
        """
        start = int.from_bytes(hashlib.sha256(key.encode()).digest()[:7])
        descriptor = await self._opened_when(partial(_lock_byte, start=start))
        try:
            yield
        finally:
            os.close(descriptor)

    async def _let_others_in(self) -> None:
        if self._inside and asyncio.get_running_loop().time() >= self._due:
            while self._inside:
                self._left.clear()
                await self._left.wait()
            await asyncio.sleep(2 * LOCK_POLL_SECONDS)

    async def _enter(self, entered: Entered) -> None:
        self._descriptor = await self._opened_when(_lock_all)
        self._due = asyncio.get_running_loop().time() + HELD_SECONDS
        try:
            is_own = os.pread(self._descriptor, MARK_BYTES, 0) == self._mark
            await entered(not is_own)
            if not is_own:
                self._sign()
        except BaseException:
            os.close(self._descriptor)
            raise

    def _sign(self) -> None:
        """On a full disk it is nobody's mark: then each process looks what there is."""
        try:
            os.pwrite(self._descriptor, self._mark, 0)
        except OSError:
            os.ftruncate(self._descriptor, 0)

    async def _opened_when(self, lock: Callable[[int], None]) -> int:
        """The file, open and locked; closing it lets go of that."""
        descriptor = opened(str(self._path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            while True:
                try:
                    lock(descriptor)
                except BlockingIOError:
                    await asyncio.sleep(LOCK_POLL_SECONDS)
                else:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise


def _lock_all(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_byte(descriptor: int, start: int) -> None:
    """One byte, for as long as this descriptor is open; none of them needs to be there.

    Linux keeps these apart from `_lock_all`, so that the two do not meet in one file.
    """
    wanted = struct.pack(STRUCT_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, 1, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)

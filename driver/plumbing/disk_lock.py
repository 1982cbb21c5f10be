"""A lock file on the node's disk, which one process holds at a time."""

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
"""How long a process whose tasks enter without a pause keeps other processes out."""

STRUCT_FLOCK = "hhqqi0q"
"""`struct flock` of fcntl.h: type, whence, start, length, pid."""

MARK_BYTES = 16

Entered = Callable[[bool], Awaitable[None]]
"""Gets whether another process may have held the lock since this process held it."""


class ProcessLock:
    """A lock file that one process holds at a time; the lock ends with its process.

    Any number of tasks of that process may share the lock. If they never all leave it, the process
    makes new tasks wait from time to time, so that another process gets the lock. The file holds
    the mark of the process that held the lock last.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = os.urandom(MARK_BYTES)
        self._entering = asyncio.Lock()
        self._inside = 0
        self._all_left = asyncio.Event()
        self._descriptor = -1
        self._due = 0.0

    @asynccontextmanager
    async def held(self, entered: Entered) -> AsyncIterator[None]:
        """Hold the lock. The first task to enter runs `entered` before another task follows.

        A task that holds the lock must not enter again.
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
                self._all_left.set()

    @asynccontextmanager
    async def held_for(self, key: str) -> AsyncIterator[None]:
        """Hold a lock between processes for one key, without a limit of time.

        A task takes it before `held`, never while it holds that.
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
                self._all_left.clear()
                await self._all_left.wait()
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
        """Write this process's mark; on a full disk none, so that all processes read anew."""
        try:
            os.pwrite(self._descriptor, self._mark, 0)
        except OSError:
            os.ftruncate(self._descriptor, 0)

    async def _opened_when(self, lock: Callable[[int], None]) -> int:
        """The open and locked file; closing it releases the lock."""
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
    """Lock one byte while this descriptor is open; the file may be shorter.

    Linux keeps such locks apart from that of `_lock_all`, so both can be used on one file.
    """
    wanted = struct.pack(STRUCT_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, start, 1, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)

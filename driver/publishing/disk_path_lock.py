"""Lock of the path: all drivers of one node offer devices by the same path.

During an update of the DaemonSet two processes run for a while. Two processes with the same path
work together. If one published through DRA what the other gives away through the device plugin, a
device would be granted twice. So a process with another path waits until all running processes
have ended, however they end.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from pathlib import Path

from driver.offer_paths import OfferPath

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.1


class PathLock:
    """A file that names the path. Each process that takes the path holds a shared lock of it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._descriptor = -1

    async def take(self, path: OfferPath) -> None:
        """Wait until no process has taken another path, and take this one until the process ends.

        Raises:
            OSError: If the file cannot be written.
        """
        self._file.parent.mkdir(parents=True, exist_ok=True)
        logged = False
        while not self._is_taken(path):
            if not logged:
                logger.info("waiting until no driver of this node takes another path=%s", path)
            logged = True
            await asyncio.sleep(POLL_SECONDS)

    def _is_taken(self, path: OfferPath) -> bool:
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        taken = False
        try:
            taken = _locks(descriptor, path)
        finally:
            if not taken:
                os.close(descriptor)
        self._descriptor = descriptor
        return taken


def _locks(descriptor: int, path: OfferPath) -> bool:
    """Lock the file for this path; returns whether that succeeded."""
    try:
        if not _says(descriptor, path):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, path.encode(), 0)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # Changing the kind of a lock releases it for a moment, so the file is read again.
    return _says(descriptor, path)


def _says(descriptor: int, path: OfferPath) -> bool:
    return os.pread(descriptor, len(path.encode()) + 1, 0) == path.encode()

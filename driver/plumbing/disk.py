"""The node's disk: files that are replaced whole or not at all, and a lock between processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

LOCK_POLL_SECONDS = 0.02
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """What identifies this boot of the machine; the same in all of its containers."""
    return BOOT_ID.read_text().strip()


def real_path(path: str) -> str:
    """Where a path leads; itself, if it leads nowhere."""
    return os.path.realpath(path)


class Folder:
    """A folder in which a file is what one writer wrote, even after a crash or a power cut.

    It is made when something is written; until then it counts as empty.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """Create.

        Args:
            path: Of the folder.
            durable: False for files that are written anew after each boot: nothing waits for the
                disk, and a power cut may leave anything.
        """
        self._path = path
        self._durable = durable

    def names(self) -> list[str]:
        """Names of all files, ours and others'."""
        try:
            with os.scandir(self._path) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        """Content of a file; None if there is none."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def signature(self, name: str) -> object:
        """Differs if the file was replaced in between."""
        try:
            status = (self._path / name).stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def write(self, name: str, content: bytes) -> None:
        """Replace a file, and return when a power cut could no longer undo it, if `durable`.

        Raises:
            OSError: If that failed; the file is then the old one, or the new one whole.
        """
        # Neither kubelet nor container runtime reads a name like this one. It is always the same,
        # so that what a killed process left behind is overwritten.
        temporary = self._path / f".{name}.tmp"
        self._path.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb", opener=_private) as file:
                file.write(content)
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
            os.replace(temporary, self._path / name)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        self._sync()

    def remove(self, name: str) -> None:
        """Remove a file; none of that name is fine."""
        with suppress(FileNotFoundError):
            (self._path / name).unlink()
            self._sync()

    def move_aside(self, name: str) -> str:
        """Rename a file to the first `<name>.corrupt-<n>` that is free, and return that."""
        taken = set(self.names())
        aside = next(c for n in range(len(taken) + 1) if (c := f"{name}.corrupt-{n}") not in taken)
        os.rename(self._path / name, self._path / aside)
        self._sync()
        return aside

    def _sync(self) -> None:
        if not self._durable:
            return
        with _opened(self._path) as descriptor:
            os.fsync(descriptor)


def _private(path: str, flags: int) -> int:
    """Properties of devices may be secrets: for root only."""
    return os.open(path, flags, 0o600)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class ProcessLock:
    """A lock file that one process holds at a time; a process that dies lets go of it.

    Within the process any number of tasks may be inside at once.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entering = asyncio.Lock()
        self._inside = 0
        self._descriptor = -1

    @asynccontextmanager
    async def held(self, entered: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Be inside. The first task to enter runs `entered` before any other follows."""
        async with self._entering:
            if self._inside == 0:
                self._descriptor = await self._acquired()
                try:
                    await entered()
                except BaseException:
                    os.close(self._descriptor)
                    raise
            self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if self._inside == 0:
                os.close(self._descriptor)  # which also unlocks

    async def _acquired(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(LOCK_POLL_SECONDS)
                else:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise


def real_paths(paths: Iterable[str]) -> dict[str, str | None]:
    """Where paths lead through all links; None for what is not there, as seen from here."""
    return {path: _strict_real_path(path) for path in paths}


def _strict_real_path(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None

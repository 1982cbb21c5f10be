"""The node's disk: files that are replaced atomically."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

logger = logging.getLogger(__name__)

ABANDONED_SECONDS = 60.0
"""An older temporary file counts as left by a killed process. A writer that takes longer fails, and
retries."""

PROBE_BYTES = 8192
"""The size of a large CDI file of a claim."""

_TEMPORARY = re.compile(r"\.(moorage\.dev|akri\.sh)-.*\.tmp")
"""Names of `temporary_in`, and of earlier versions, which added to the name of a file."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """The id of this boot of the machine; it is the same in all containers."""
    return BOOT_ID.read_text().strip()


def real_path(path: str) -> str:
    """The target of a path through all links; the path itself if the target does not exist."""
    return os.path.realpath(path)


def temporary_in(folder: str) -> str:
    """A unique path for a file that is renamed once it is complete.

    Neither the kubelet nor a container runtime reads a file with such a name. It has no process id,
    because the drivers of two pods have the same one.
    """
    return f"{folder}/.moorage.dev-{os.urandom(8).hex()}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a file has a temporary name."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_abandoned(folder: str) -> None:
    """Remove temporary files that killed processes left; younger ones may be in use."""
    before = time.time() - ABANDONED_SECONDS  # noqa: TID251  the clock of file times
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in filter(lambda entry: is_temporary(entry.name), entries):
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    logger.warning("Removing a killed process's temporary file: %s", entry.path)
                    os.unlink(entry.path)


class Folder:
    """A folder whose files are always complete, even after a crash or a power cut.

    The first write creates the folder; until then it counts as empty.

    Args:
        path: Its path.
        lasting: True: a written file survives a power cut. False: after a power cut a file may have
            any content, also a part; for files that no boot needs.
    """

    def __init__(self, path: Path, *, lasting: bool = True) -> None:
        self._path = path
        self._prefix = f"{path}/"  # `Path` is slow
        self._lasting = lasting
        self._tidied = False

    def names(self) -> list[str]:
        """Names of all files, also of files that other programs wrote."""
        try:
            with os.scandir(self._path) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if the file does not exist."""
        try:
            return Path(self._prefix + name).read_bytes()
        except FileNotFoundError:
            return None

    def signature(self, name: str) -> object:
        """A value that changes when the file is replaced; None if the file does not exist."""
        try:
            status = os.stat(self._prefix + name)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def write(self, name: str, content: bytes) -> None:
        """Replace a file atomically; return after it is durable, if the folder is `lasting`.

        Raises:
            OSError: If that failed; the file is then the complete old or the complete new one.
        """
        self._remove_abandoned()
        temporary = temporary_in(str(self._path))
        descriptor = opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if self._lasting:
                    os.fsync(descriptor)
            os.replace(temporary, self._prefix + name)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._sync()

    def _remove_abandoned(self) -> None:
        """Remove temporary files once, with the first write of this process."""
        if self._tidied:
            return
        self._tidied = True
        try:
            remove_abandoned(str(self._path))
        except OSError as error:
            logger.warning("temporary files stay: folder=%s error=%s", self._path, error)

    def problem(self, *, thoroughly: bool = False) -> str:
        """A part of a sentence: why no file can be written here; "" if no problem is found.

        Args:
            thoroughly: Write a file, too, which detects a full disk, and wakes processes that watch
                the folder.
        """
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            if os.stat(self._path).st_nlink == 0:  # the folder of the mount was removed
                return f"{self._path} was removed on the node"
            if not os.access(self._path, os.W_OK | os.X_OK):
                return f"{self._path} is read-only"
            if thoroughly:
                self._try()
        except OSError as error:
            return f"{self._path}: {error.strerror or error}"
        return ""

    def _try(self) -> None:
        temporary = temporary_in(str(self._path))
        try:
            Path(temporary).write_bytes(bytes(PROBE_BYTES))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def remove(self, name: str) -> None:
        """Remove a file; a file that does not exist is fine."""
        with suppress(FileNotFoundError):
            os.unlink(self._prefix + name)
            self._sync()

    def rename(self, name: str, other: str) -> None:
        """Rename a file, and replace a file of that name; this needs no space on the disk.

        Raises:
            OSError: If that failed, also because the file does not exist.
        """
        os.replace(self._prefix + name, self._prefix + other)
        self._sync()

    def _sync(self) -> None:
        if not self._lasting:
            return
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def opened(path: str, flags: int) -> int:
    """Open a file for root only, because devices' properties may be secret; create its folder."""
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def real_paths(paths: Iterable[str]) -> dict[str, str | None]:
    """The targets of paths through all links; None for a path that this process does not see."""
    return {path: _strict_real_path(path) for path in paths}


def _strict_real_path(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None

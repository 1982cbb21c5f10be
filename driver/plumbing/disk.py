"""The node's disk: files that are replaced whole or not at all."""

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
"""After this time a temporary file is one that a killed process left. A writer that takes longer
fails, and writes again."""

PROBE_BYTES = 8192
"""As a claim's file may have."""

_TEMPORARY = re.compile(r"\.(moorage\.dev|akri\.sh)-.*\.tmp")
"""Ours: those of `temporary_in`, and those of earlier versions, which added to a file's name."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """What identifies this boot of the machine; the same in all of its containers."""
    return BOOT_ID.read_text().strip()


def real_path(path: str) -> str:
    """Where a path leads; itself, if it leads nowhere."""
    return os.path.realpath(path)


def temporary_in(folder: str) -> str:
    """A path for what is to be renamed once it is whole; no other process or call has the same.

    Neither kubelet nor container runtime reads a name like this one. Process ids would not do: the
    drivers of two pods have the same.
    """
    return f"{folder}/.moorage.dev-{os.urandom(8).hex()}.tmp"


def is_temporary(name: str) -> bool:
    """Whether a file has such a name."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_abandoned(folder: str) -> None:
    """Remove temporary files that killed processes left; others may be written at this moment."""
    before = time.time() - ABANDONED_SECONDS  # noqa: TID251  as files have it
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in filter(lambda entry: is_temporary(entry.name), entries):
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    logger.warning("Removing %s, which a killed process left", entry.path)
                    os.unlink(entry.path)


class Folder:
    """A folder in which a file is what one writer wrote, even after a crash or a power cut.

    It is made when something is written; until then it counts as empty.

    Args:
        path: Where it is.
        lasting: Whether a power cut leaves the new file, once it is written. If not, anything may
            be there afterwards, also half a file: what matters to nobody after a boot.
    """

    def __init__(self, path: Path, *, lasting: bool = True) -> None:
        self._path = path
        self._prefix = f"{path}/"  # `Path` takes its time
        self._lasting = lasting
        self._tidied = False

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
            return Path(self._prefix + name).read_bytes()
        except FileNotFoundError:
            return None

    def signature(self, name: str) -> object:
        """Differs if the file was replaced in between."""
        try:
            status = os.stat(self._prefix + name)
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def write(self, name: str, content: bytes) -> None:
        """Replace a file, and return when a power cut leaves as much of it as is to survive.

        Raises:
            OSError: If that failed; the file is then the old one, or the new one whole.
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
        """Once, with the first write of this process."""
        if self._tidied:
            return
        self._tidied = True
        try:
            remove_abandoned(str(self._path))
        except OSError as error:
            logger.warning("what killed processes left in %s stays error=%s", self._path, error)

    def problem(self, *, thoroughly: bool = False) -> str:
        """Why nothing can be written here, as a part of a sentence; "" if nothing speaks for that.

        Args:
            thoroughly: Write a file, too, which tells of a full disk; who watches the folder is
                woken by that.
        """
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            if os.stat(self._path).st_nlink == 0:  # a mount of what is no more
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
        """Remove a file; none of that name is fine."""
        with suppress(FileNotFoundError):
            os.unlink(self._prefix + name)
            self._sync()

    def rename(self, name: str, other: str) -> None:
        """Give a file another name, whoever has that; it takes no room on the disk.

        Raises:
            OSError: If that failed, as for a file that is not there.
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
    """Open a file for root only, since properties of devices may be secrets; its folder is made."""
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)


def real_paths(paths: Iterable[str]) -> dict[str, str | None]:
    """Where paths lead through all links; None for what is not there, as seen from here."""
    return {path: _strict_real_path(path) for path in paths}


def _strict_real_path(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):
        return None

"""The host's `/dev`, as this process sees it: the targets of its links, and its device nodes.

A container has its own `/dev`. The driver's pod has the host's at another path, read-only. So this
module follows links, such as those in `/dev/serial/by-id`, part by part as the host does. A
container without privileges may stat device nodes, but open only those that every container may
open, such as `null` and the console. `/dev/pts` and `/dev/shm` are empty in its pod.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from driver.plumbing.device_nodes import FileKind, PathTarget

DEV = "/dev"
MOUNTS = Path("/proc/self/mountinfo")
MOST_LINKS = 40
"""Links of one path that are followed at most, as in the kernel."""


def own_dev(mounts: Path = MOUNTS) -> Path | None:
    """This process's `/dev` if it is the host's, which is a devtmpfs; else None.

    Args:
        mounts: A file as `/proc/self/mountinfo`: the fifth field of a line is the mount point, the
            first one behind ` - ` the file system.
    """
    found = ""
    with suppress(OSError):
        for line in mounts.read_text().splitlines():
            fields, _, after = line.partition(" - ")
            if fields.split()[4:5] == [DEV]:
                found = (after.split() or [""])[0]
    return Path(DEV) if found == "devtmpfs" else None


class HostDev:
    """Resolves paths of the host; those in `/dev` by the host's `/dev`.

    Args:
        folder: Where this process sees the host's `/dev`; None if it does not. Then, and outside
            `/dev`, paths are resolved in this process's own file system.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def resolve(self, path: str) -> str:
        """The target of a path; the path itself if the target is unknown."""
        with suppress(ValueError):  # a NUL byte
            return (self._followed(path) if self._sees(path) else os.path.realpath(path)) or path
        return path

    def here(self, path: str) -> str:
        """The path at which this process sees a path of the host, if it sees it."""
        return f"{self._folder}{path.removeprefix(DEV)}" if self._sees(path) else path

    def look(self, paths: Iterable[str]) -> dict[str, PathTarget]:
        """What is at the paths of device nodes."""
        return {path: self._look(path) for path in paths}

    def _look(self, path: str) -> PathTarget:
        try:
            leads = self._followed(path) if self._sees(path) else _strict(path)
        except ValueError:  # a NUL byte
            return PathTarget(None, FileKind.UNKNOWN)
        if leads is None:
            return PathTarget(None, FileKind.MISSING if self._sees(path) else FileKind.UNKNOWN)
        return PathTarget(leads, self._seen(leads))

    def _seen(self, real: str) -> FileKind:
        try:
            mode = os.stat(self.here(real)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return FileKind.MISSING if self._sees(real) else FileKind.UNKNOWN
        except OSError:
            return FileKind.UNKNOWN
        return FileKind.NODE if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else FileKind.OTHER

    def _sees(self, path: str) -> bool:
        return self._folder is not None and _is_in_dev(path)

    def _followed(self, path: str) -> str | None:
        """The target of a path in `/dev`, by the host's links; None for a loop of links."""
        rest, found, links = _parts(path), list[str](), 0
        while rest:
            part = rest.pop()
            if part == "..":
                del found[-1:]
                continue
            target = self._target("/".join(("", *found, part)))
            if target is None:
                found.append(part)
                continue
            links += 1
            if links > MOST_LINKS:
                return None
            if target.startswith("/"):
                found.clear()
            rest.extend(_parts(target))
        return "/".join(("", *found))

    def _target(self, path: str) -> str | None:
        """The target of a link in the host's `/dev`; None for any other path."""
        if _is_in_dev(path):
            with suppress(OSError):
                return os.readlink(f"{self._folder}{path.removeprefix(DEV)}")
        return None


def _parts(path: str) -> list[str]:
    """The parts of a path, the last one first."""
    return [part for part in path.split("/") if part not in ("", ".")][::-1]


def _is_in_dev(path: str) -> bool:
    return path == DEV or path.startswith(f"{DEV}/")


def _strict(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except OSError:
        return None

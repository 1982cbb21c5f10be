"""Resolves paths of the host to device nodes: their numbers, and their names in the kernel.

A discovery handler in a process of its own reports a device node by a path, which may be a link,
such as those in `/dev/serial/by-id`. If the driver's pod does not see the host's `/dev`, the links
of udevd are in `/run/udev/links`, and the names of the kernel are in sysfs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from driver.plumbing.disk_dev import HostDev

SYSFS = Path("/sys")
LINKS = Path("/run/udev/links")

_DEV = "/dev/"
_KINDS = {"b": "block", "c": "char"}
"""Kinds of devices: the letter in udevd's database, and the folder in `/dev` and `/sys/dev`."""


class HostNodes:
    """The host's device nodes at one moment."""

    def __init__(
        self, sysfs: Path = SYSFS, links: Path = LINKS, dev: HostDev | None = None
    ) -> None:
        self._dev = dev or HostDev()
        self._sysfs = sysfs
        self._links = links
        self._names: frozenset[str] = frozenset()
        with suppress(OSError):
            self._names = frozenset(os.listdir(links))

    def at(self, path: str) -> Collection[str]:
        """Numbers and real paths of the nodes that a path may lead to; empty if none is known.

        If several devices claim a link in udevd's database, all of them count: which of them has
        the link changes with time.
        """
        seen = _seen(self._dev.here(self._dev.resolve(path)))
        numbers = {*seen, *_named(path), *self._linked(path)}
        return numbers | {node for number in numbers if (node := self._node(number))}

    def _linked(self, path: str) -> Iterator[str]:
        """Numbers by udevd's database: a folder for each link, with an entry for each claimant.

        Before systemd 250 the name of the folder began with the slash.
        """
        name = path.removeprefix(_DEV).replace("\\", r"\x5c").replace("/", r"\x2f")
        for folder in {name, rf"\x2f{name}"} & self._names:
            with suppress(OSError):
                entries = os.listdir(self._links / folder)
                yield from (entry for entry in entries if entry[:1] in _KINDS and ":" in entry)

    def _node(self, number: str) -> str | None:
        """The path of the device node with a number, as the kernel names it."""
        with suppress(OSError, ValueError):
            folder = self._sysfs / "dev" / _KINDS[number[0]] / number[1:]
            for line in (folder / "uevent").read_text().splitlines():
                if line.startswith("DEVNAME="):
                    return f"{_DEV}{line.removeprefix('DEVNAME=')}"
        return None


def _seen(path: str) -> Iterator[str]:
    """The number by the file system, if this process sees the host's `/dev`."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    kind = "b" if stat.S_ISBLK(status.st_mode) else "c" if stat.S_ISCHR(status.st_mode) else ""
    if kind:
        yield f"{kind}{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def _named(path: str) -> Iterator[str]:
    """The number in a path such as `/dev/char/188:0`."""
    for kind, folder in _KINDS.items():
        number = path.removeprefix(f"{_DEV}{folder}/")
        if number != path and number.replace(":", "", 1).isdecimal():
            yield f"{kind}{number}"

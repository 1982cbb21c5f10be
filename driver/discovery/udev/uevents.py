"""Device events as the kernel and udevd write them.

The kernel sends `add@/devices/…` and `KEY=value` pairs, each ended by NUL. udevd sends its answer
with a header of its own (`libudev`, since udev 150), to another group of the same socket.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

_UDEVD_MAGIC = b"libudev\0" + struct.pack(">I", 0xFEEDCAFE)
_UDEVD_HEADER = struct.Struct(f"={len(_UDEVD_MAGIC)}sIII")
"""Magic, size of the header, offset and length of the properties."""


class Source(IntEnum):
    """The sender of an event; the numbers are netlink's multicast groups, each a bit."""

    KERNEL = 1
    UDEVD = 2


class Uevent(NamedTuple):
    """An event: a device may have changed.

    Attributes:
        old_path: The former path of a device that moved.
        action: `add`, `remove`, `change` …
        number: The kernel's number; udevd's answer has the same. 0: it has none.
        source: Its sender.
    """

    path: str
    subsystem: str
    old_path: str | None = None
    action: str = ""
    number: int = 0
    source: Source = Source.KERNEL


def sys_name_of(path: str) -> str:
    """A device's name; in sysfs a `!` stands for the `/` of names such as `cciss/c0d0`."""
    return path.rsplit("/", 1)[-1].replace("!", "/")


def parse_uevent(message: bytes) -> Uevent | None:
    """The event in a message; None if the message is not an event."""
    is_udevds = message.startswith(_UDEVD_MAGIC)
    pairs = _of_udevd(message) if is_udevds else message.split(b"\0")[1:]
    properties = {key: value for key, _, value in (pair.partition(b"=") for pair in pairs)}
    path = properties.get(b"DEVPATH")
    if not path:
        return None
    old_path, number = properties.get(b"DEVPATH_OLD"), properties.get(b"SEQNUM", b"")
    return Uevent(
        _text(path),
        _text(properties.get(b"SUBSYSTEM", b"")),
        None if old_path is None else _text(old_path),
        _text(properties.get(b"ACTION", b"")),
        int(number) if number.isdigit() else 0,
        Source.UDEVD if is_udevds else Source.KERNEL,
    )


def _of_udevd(message: bytes) -> list[bytes]:
    if len(message) < _UDEVD_HEADER.size:
        return []
    _, _, offset, length = _UDEVD_HEADER.unpack_from(message)
    return message[offset : offset + length].split(b"\0")


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")

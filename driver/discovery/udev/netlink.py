"""Device events from the kernel or from udevd, over netlink.

The kernel sends `add@/devices/…` and `KEY=value` pairs, all ended by NUL. udevd sends what it made
of them behind a header of its own (`libudev`, since udev 150), to another group of the same socket.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

_UDEVD_MAGIC = b"libudev\0" + struct.pack(">I", 0xFEEDCAFE)
_UDEVD_HEADER = struct.Struct(f"={len(_UDEVD_MAGIC)}sIII")
"""Magic, size of the header, offset and length of the properties."""


class Uevent(NamedTuple):
    """Says that a device may have changed.

    Attributes:
        old_path: Where the device was, if it moved.
    """

    path: str
    subsystem: str
    old_path: str | None = None


def sys_name_of(path: str) -> str:
    """A device's name; in sysfs a `!` stands for the `/` of names such as `cciss/c0d0`."""
    return path.rsplit("/", 1)[-1].replace("!", "/")


def parse_uevent(message: bytes) -> Uevent | None:
    """An event, or None where the message is none."""
    properties = {
        key: value for key, _, value in (pair.partition(b"=") for pair in _pairs(message))
    }
    path = properties.get(b"DEVPATH")
    if not path:
        return None
    old_path = properties.get(b"DEVPATH_OLD")
    return Uevent(
        _text(path),
        _text(properties.get(b"SUBSYSTEM", b"")),
        None if old_path is None else _text(old_path),
    )


def _pairs(message: bytes) -> list[bytes]:
    if not message.startswith(_UDEVD_MAGIC):
        return message.split(b"\0")[1:]
    if len(message) < _UDEVD_HEADER.size:
        return []
    _, _, offset, length = _UDEVD_HEADER.unpack_from(message)
    return message[offset : offset + length].split(b"\0")


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")


_NETLINK_KOBJECT_UEVENT = 15
_SO_RCVBUFFORCE = 33
_LONGEST_MESSAGE = 64 * 1024
_AT_ONCE = 512


class Source(IntEnum):
    """Who is listened to; the numbers are netlink's multicast groups."""

    KERNEL = 1
    UDEVD = 2


class EventsLostError(Exception):
    """Raised when the kernel dropped events since the receive buffer was full."""


def udevd_source(control: Path = Path("/run/udev/control")) -> Source:
    """Choose udevd where one runs whose events can be heard, else the kernel.

    udevd's control socket must exist and belong to this network namespace: udevd's events stay in
    its own, and the file outlives a udevd that was killed.
    """
    if not control.exists():
        return Source.KERNEL
    sockets = Path("/proc/net/unix").read_text(errors="surrogateescape")
    listening = any(line.endswith(f" {control}") for line in sockets.splitlines())
    return Source.UDEVD if listening else Source.KERNEL


class UeventSocket(socket.socket):
    """A netlink socket that hears all device events from its creation on.

    Not pyudev's Monitor: that reports a full buffer as an error without a number, and reads the
    device's data with each event, where here an event only says what to look at. For the same
    reason the sender need not be checked: a forged event makes this process look once more.
    """

    def __init__(self, source: Source, receive_buffer_bytes: int) -> None:
        super().__init__(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_KOBJECT_UEVENT)
        try:
            self._enlarge(receive_buffer_bytes)
            self.setblocking(False)
            self.bind((0, source))
        except BaseException:
            self.close()
            raise

    def _enlarge(self, size: int) -> None:
        self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        with contextlib.suppress(PermissionError):  # CAP_NET_ADMIN goes beyond rmem_max
            self.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)

    def receive(self) -> list[Uevent]:
        """Events that are there; not all at once if they are very many.

        Raises:
            EventsLostError: If events are missing before those that can still be received.
        """
        events = []
        for _ in range(_AT_ONCE):
            try:
                event = parse_uevent(self.recv(_LONGEST_MESSAGE))
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    raise EventsLostError from error
                raise
            if event is not None:
                events.append(event)
        return events

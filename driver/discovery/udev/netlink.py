"""Device events from the kernel and from udevd, over netlink."""

from __future__ import annotations

import contextlib
import errno
import socket
from pathlib import Path

from driver.discovery.udev.uevents import Source, Uevent, parse_uevent

_NETLINK_KOBJECT_UEVENT = 15
_SO_RCVBUFFORCE = 33
_LONGEST_MESSAGE = 64 * 1024
_AT_ONCE = 512


class EventsLostError(Exception):
    """Raised when the kernel dropped events, because the receive buffer was full."""


def udevd_source(control: Path = Path("/run/udev/control")) -> Source:
    """udevd, if one runs and its events reach this process, else the kernel.

    udevd's control socket must exist, and a process of this network namespace must listen there.
    udevd's events stay in its network namespace, and the file outlives a udevd that was killed.
    """
    if not control.exists():
        return Source.KERNEL
    sockets = Path("/proc/net/unix").read_text(errors="surrogateescape")
    listening = any(line.endswith(f" {control}") for line in sockets.splitlines())
    return Source.UDEVD if listening else Source.KERNEL


class UeventSocket(socket.socket):
    """A netlink socket that receives all device events of the kernel and of udevd.

    One socket for both keeps their order: udevd's answer to an event comes after the event.

    pyudev's Monitor does not fit: it reports a full buffer as an error without a number, and reads
    the device's data with each event; here an event is only a hint which device to read. The sender
    is not checked: sending takes CAP_NET_ADMIN over the network namespace, and root on the host can
    write udevd's database directly.
    """

    def __init__(self, receive_buffer_bytes: int) -> None:
        super().__init__(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_KOBJECT_UEVENT)
        try:
            self._enlarge(receive_buffer_bytes)
            self.setblocking(False)
            self.bind((0, Source.KERNEL | Source.UDEVD))
        except BaseException:
            self.close()
            raise

    def _enlarge(self, size: int) -> None:
        self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        with contextlib.suppress(PermissionError):  # CAP_NET_ADMIN goes beyond rmem_max
            self.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size)

    def receive(self) -> list[Uevent]:
        """The pending events, up to `_AT_ONCE`.

        Raises:
            EventsLostError: If events before the next pending ones were lost.
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

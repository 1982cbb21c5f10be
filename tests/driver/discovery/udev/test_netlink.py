"""Events from the kernel, over a real netlink socket."""

from __future__ import annotations

import errno
import socket
import time
from pathlib import Path

import pytest

from driver.discovery.udev.netlink import (
    EventsLostError,
    UeventSocket,
    udevd_source,
)
from driver.discovery.udev.uevents import Source
from tests.driver.discovery.udev.loops import Loops


def received(events: UeventSocket, path: str) -> bool:
    """Whether an event of this device comes; others may come from anywhere."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if any(e[:2] == (path, "block") and e.number for e in events.receive()):
            return True
        time.sleep(0.01)
    return False


def test_events_since_its_creation_are_heard(loops: Loops) -> None:
    events = UeventSocket(1024 * 1024)
    try:
        loops.plug(0)

        assert received(events, loops.path(0))
        assert events.fileno() > 0
    finally:
        events.close()


def test_a_full_buffer_is_told_and_the_next_events_are_heard(loops: Loops) -> None:
    events = UeventSocket(1)
    try:
        for index in range(16):
            loops.plug(index)
        with pytest.raises(EventsLostError):
            events.receive()

        while events.receive():
            pass
        loops.plug(16)

        assert received(events, loops.path(16))
    finally:
        events.close()


def test_the_buffer_is_as_large_as_was_asked_for() -> None:
    events = UeventSocket(16 * 1024 * 1024)
    try:
        duplicate = socket.socket(fileno=events.fileno())
        size = duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        duplicate.detach()
    finally:
        events.close()

    limit = int(Path("/proc/sys/net/core/rmem_max").read_text())
    assert size >= 2 * min(limit, 16 * 1024 * 1024)


def test_a_closed_socket_is_an_error() -> None:
    events = UeventSocket(1)
    events.close()

    with pytest.raises(OSError) as raised:  # noqa: PT011
        events.receive()
    assert raised.value.errno == errno.EBADF


def test_without_udevd_the_kernel_is_listened_to(tmp_path: Path) -> None:
    stale = tmp_path / "control"
    stale.write_text("")

    assert udevd_source(tmp_path / "absent") is Source.KERNEL
    assert udevd_source(stale) is Source.KERNEL


def test_udevd_is_listened_to_while_its_control_socket_lives(tmp_path: Path) -> None:
    control = tmp_path / "control"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(control))
        listener.listen()

        assert udevd_source(control) is Source.UDEVD

    assert udevd_source(control) is Source.KERNEL

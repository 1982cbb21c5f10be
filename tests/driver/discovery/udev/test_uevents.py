"""Events as netlink carries them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.discovery.udev.uevents import Source, Uevent, parse_uevent, sys_name_of

KERNEL = (
    b"add@/devices/virtual/block/loop7\0ACTION=add\0DEVPATH=/devices/virtual/block/loop7\0"
    b"SUBSYSTEM=block\0MAJOR=7\0MINOR=7\0DEVNAME=loop7\0DEVTYPE=disk\0DISKSEQ=9\0SEQNUM=1234\0"
)


def from_udevd(properties: bytes, *, offset: int = 40, length: int | None = None) -> bytes:
    length = len(properties) if length is None else length
    head = b"libudev\0" + struct.pack(">I", 0xFEEDCAFE) + struct.pack("=III", 40, offset, length)
    return head.ljust(40, b"\0") + properties


def test_an_event_of_the_kernel_is_read() -> None:
    path = "/devices/virtual/block/loop7"

    assert parse_uevent(KERNEL) == Uevent(path, "block", action="add", number=1234)


def test_an_event_of_udevd_is_read() -> None:
    message = from_udevd(
        b"ACTION=add\0DEVPATH=/devices/x\0SUBSYSTEM=usb\0ID_SERIAL=a=b\0TAGS=:a:\0SEQNUM=7\0"
    )

    assert parse_uevent(message) == Uevent(
        "/devices/x", "usb", action="add", number=7, source=Source.UDEVD
    )


def test_a_number_that_is_none_is_0() -> None:
    event = parse_uevent(KERNEL.replace(b"1234", "²".encode()))

    assert event is not None
    assert event.number == 0


def test_a_move_names_both_places() -> None:
    message = b"move@/b\0DEVPATH=/devices/b\0SUBSYSTEM=net\0DEVPATH_OLD=/devices/a\0"

    assert parse_uevent(message) == Uevent("/devices/b", "net", old_path="/devices/a")


def test_names_are_those_of_rules() -> None:
    assert sys_name_of("/devices/pci/block/cciss!c0d0") == "cciss/c0d0"


def test_bytes_that_are_no_text_are_kept() -> None:
    event = parse_uevent(b"add@/devices/\xff\0DEVPATH=/devices/\xff\0SUBSYSTEM=block\0")

    assert event is not None
    assert event.path.encode(errors="surrogateescape") == b"/devices/\xff"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        b"libudev\0",
        b"add@/devices/x\0ACTION=add\0",
        b"add@/devices/x\0DEVPATH=\0",
        from_udevd(b""),
        from_udevd(b"DEVPATH=/devices/x", offset=2**31),
        from_udevd(b"DEVPATH=/devices/x", length=0),
        from_udevd(b"")[:20],
    ],
)
def test_what_is_no_event_is_none(message: bytes) -> None:
    assert parse_uevent(message) is None


@given(st.binary() | st.binary().map(from_udevd) | st.binary().map(lambda tail: KERNEL + tail))
def test_any_message_is_an_event_or_none(message: bytes) -> None:
    event = parse_uevent(message)

    assert event is None or event.path

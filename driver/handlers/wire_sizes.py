"""Counts the devices and their parts in an answer of a handler, before it is parsed.

Two bytes of an answer can be a device, or a part of one, which takes more than fifty bytes in
memory: 8 MiB of empty devices took 208 MiB, of empty device nodes 240 MiB. Counting takes no
memory, and stops at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from driver.handlers.report_limits import PARTS_OF_A_DEVICE, too_many

_SMALL = 16 * 1024
"""Bytes of an answer that needs no count: it is small in memory in any case."""

_DEVICES = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def excess(answer: bytes, most_devices: int) -> str | None:
    """A sentence: which limit an answer exceeds; None if it may be parsed.

    Args:
        answer: A serialized `v0.DiscoverResponse`.
        most_devices: Devices that it may have.
    """
    if len(answer) <= _SMALL:
        return None
    devices, parts = 0, 0
    try:
        for number, start, end in _fields(answer, 0, len(answer)):
            devices += number == _DEVICES
            parts += sum(1 for _ in _fields(answer, start, end)) if number == _DEVICES else 1
            if devices > most_devices:
                return too_many(most_devices)
            if parts > most_devices * PARTS_OF_A_DEVICE:
                return f"Its devices have more than {most_devices * PARTS_OF_A_DEVICE} properties."
    except (IndexError, ValueError):
        return "Its answer is invalid."
    return None


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number, start and end of each field of a message."""
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _varint(data, at)
            after = at + length
        elif kind == _VARINT:
            _, after = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            after = at + (4 if kind == _FIXED32 else 8)
        else:
            raise ValueError("it is no message")
        if after > end:
            raise ValueError("it is no message")
        yield tag >> 3, at, after
        at = after


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift > 63:
            raise ValueError("it is no message")

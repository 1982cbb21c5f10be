"""Loop devices: real block devices that can be plugged and unplugged, with real events.

Numbers are taken far from the kernel's own, and each is taken by trying, so that several demos
and test runs on one machine do not meet.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CONTROL = Path("/dev/loop-control")

# Requests of linux/loop.h.
_ADD, _REMOVE = 0x4C80, 0x4C81
_SET_FD, _CLEAR_FD = 0x4C00, 0x4C01

# Above the numbers that tests of discovery choose by themselves; the kernel has 20 bits.
_LOWEST, _HIGHEST = 990_000, 1 << 20
_TRIES = 100

_BUSY_SECONDS = 10.0
_BUSY_POLL_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class LoopDevice:
    """A loop device that this process made."""

    number: int

    @property
    def name(self) -> str:
        """As the kernel and udev rules know it."""
        return f"loop{self.number}"

    @property
    def path(self) -> Path:
        return Path("/dev") / self.name

    def attach(self, backing_file: Path) -> None:
        """Let the device have this file's content; the kernel tells of a change."""
        with _opened(self.path) as device, _opened(backing_file) as file:
            fcntl.ioctl(device, _SET_FD, file)

    def detach(self) -> None:
        """The reverse of `attach`; does nothing where nothing is attached."""
        try:
            with _opened(self.path) as device:
                fcntl.ioctl(device, _CLEAR_FD, 0)
        except OSError as error:
            if error.errno not in (errno.ENXIO, errno.ENOENT):
                raise


def plug(number: int | None = None) -> LoopDevice:
    """Make a loop device, and its device node with it; a free number if none is given."""
    if number is not None:
        _control(_ADD, number)
        return LoopDevice(number)
    for _ in range(_TRIES):
        try:
            return plug(random.randrange(_LOWEST, _HIGHEST))
        except FileExistsError:
            continue
    raise FileExistsError(f"no free loop device found in {_TRIES} tries")


def unplug(device: LoopDevice) -> None:
    """Remove the device, when nobody has it open any more; does nothing where it is gone.

    Others, udevd or a driver, may look at a device for a moment; the kernel tells nobody when
    they have closed it.
    """
    device.detach()
    deadline = time.monotonic() + _BUSY_SECONDS
    while not _removed(device) and time.monotonic() < deadline:
        time.sleep(_BUSY_POLL_SECONDS)
    if device.path.exists():
        raise OSError(errno.EBUSY, "somebody keeps it open", str(device.path))


def _removed(device: LoopDevice) -> bool:
    try:
        _control(_REMOVE, device.number)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.ENODEV):
            raise
        return error.errno == errno.ENODEV
    return True


@contextmanager
def plugged(number: int | None = None) -> Iterator[LoopDevice]:
    """A loop device for a while."""
    device = plug(number)
    try:
        yield device
    finally:
        unplug(device)


def _control(request: int, number: int) -> None:
    with _opened(CONTROL) as control:
        fcntl.ioctl(control, request, number)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

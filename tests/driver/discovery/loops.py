"""Loop devices: real devices with real events, made and removed at will."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CONTROL = Path("/dev/loop-control")
_SET_FD, _CLR_FD, _ADD, _REMOVE = 0x4C00, 0x4C01, 0x4C80, 0x4C81


class Loops:
    """Up to 2,000 loop devices; processes that run side by side have numbers of their own."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._plugged: set[int] = set()
        self.first = 2_000 * (1 + os.getpid() % 490)

    @property
    def glob(self) -> str:
        """Matches the names of all that this process may plug."""
        thousands = self.first // 1000
        return f"loop{thousands}[0-9][0-9][0-9]|loop{thousands + 1}[0-9][0-9][0-9]"

    def name(self, index: int) -> str:
        return f"loop{self.first + index}"

    def path(self, index: int) -> str:
        """The device's path in sysfs, its id."""
        return f"/devices/virtual/block/{self.name(index)}"

    def plug(self, index: int) -> None:
        fcntl.ioctl(self._control, _ADD, self.first + index)
        self._plugged.add(index)

    def unplug(self, index: int) -> None:
        """Remove a device; others (udevd) may have it open for a moment."""
        for _ in range(200):
            try:
                fcntl.ioctl(self._control, _REMOVE, self.first + index)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
                time.sleep(0.01)
            else:
                break
        self._plugged.discard(index)

    def stir(self, index: int) -> None:
        """Let the kernel say that a device changed, though it did not."""
        Path(f"/sys{self.path(index)}/uevent").write_text("change")

    def unplug_all(self) -> None:
        for index in sorted(self._plugged):
            self.unplug(index)

    @contextmanager
    def backed(self, index: int, file: Path) -> Iterator[None]:
        """Give a device a backing file for a while; the kernel tells with `change` events."""
        device = os.open(f"/dev/{self.name(index)}", os.O_RDWR)
        backing = os.open(file, os.O_RDWR)
        try:
            fcntl.ioctl(device, _SET_FD, backing)
            yield
            fcntl.ioctl(device, _CLR_FD)
        finally:
            os.close(backing)
            os.close(device)


def is_block_device(path: str) -> bool:
    return Path(path).is_block_device()


@contextmanager
def loops() -> Iterator[Loops]:
    """Loop devices that are removed at the end, whatever happens; a skip where there are none."""
    if os.geteuid() != 0:
        pytest.skip("loop devices can only be added by root")
    try:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"no loop devices here: {error}")
    made = Loops(control)
    try:
        yield made
    finally:
        made.unplug_all()
        os.close(control)

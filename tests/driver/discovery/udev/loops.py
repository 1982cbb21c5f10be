"""Loop devices: real devices with real events, made and removed at will."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local_cluster import loop_devices
from local_cluster.loop_devices import CONTROL, LoopDevice


class Loops:
    """Up to 2,000 loop devices; processes that run side by side have numbers of their own."""

    def __init__(self) -> None:
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

    def sequence(self, index: int) -> str:
        """The name in `/dev/disk/by-diskseq` of what is attached."""
        return Path(f"/sys{self.path(index)}/diskseq").read_text().strip()

    def plug(self, index: int) -> None:
        loop_devices.plug(self.first + index)
        self._plugged.add(index)

    def unplug(self, index: int) -> None:
        loop_devices.unplug(LoopDevice(self.first + index))
        self._plugged.discard(index)

    def attach(self, index: int, file: Path) -> None:
        LoopDevice(self.first + index).attach(file)

    def detach(self, index: int) -> None:
        LoopDevice(self.first + index).detach()

    def stir(self, index: int) -> None:
        """Let the kernel say that a device changed, though it did not."""
        Path(f"/sys{self.path(index)}/uevent").write_text("change")

    def unplug_all(self) -> None:
        for index in sorted(self._plugged):
            self.unplug(index)

    @contextmanager
    def backed(self, index: int, file: Path) -> Iterator[None]:
        """Give a device a backing file for a while; the kernel tells with `change` events."""
        self.attach(index, file)
        try:
            yield
        finally:
            self.detach(index)


def is_block_device(path: str) -> bool:
    return Path(path).is_block_device()


@contextmanager
def loops() -> Iterator[Loops]:
    """Loop devices that are removed at the end, whatever happens; a skip where there are none."""
    if os.geteuid() != 0:
        pytest.skip("loop devices can only be added by root")
    if not CONTROL.exists():
        pytest.skip("no loop devices here")
    made = Loops()
    try:
        yield made
    finally:
        made.unplug_all()

"""Disks for the demo: loop devices with a text at their beginning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_cluster import loop_devices
from local_cluster.loop_devices import LoopDevice


@contextmanager
def plugged_disk(folder: Path, text: str) -> Iterator[LoopDevice]:
    """A disk that is unplugged again at the end; the kernel reports both."""
    folder.mkdir(parents=True, exist_ok=True)
    with loop_devices.plugged() as device:
        backing = folder / f"{device.name}.img"
        backing.write_bytes(f"{text}\n".encode().ljust(4096, b"\0"))
        try:
            device.attach(backing)
            yield device
        finally:
            backing.unlink()

"""A driver process that a test may kill between two writes.

    python -m tests.driver.dra_process <root> <step>

It serves `<root>/kubelet` until it is told to stop, and dies by SIGKILL before the given step of
its disk; a negative one never comes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from driver.plumbing.disk import Folder
from driver.plumbing.disk_lock import ProcessLock
from driver.plumbing.kubelet_sockets import KubeletPaths
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_plugin import serve
from tests.driver.builders import NODE
from tests.driver.claim_builders import BOOT, a_reference, some_instances
from tests.fakes.claims import FakeReader, FakeSource


class Steps:
    """Counts down to the end of this process."""

    def __init__(self, left: int) -> None:
        self._left = left

    def next(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


class MortalFolder(Folder):
    """A folder with a step before and after each change."""

    def __init__(self, path: Path, steps: Steps) -> None:
        super().__init__(path)
        self._steps = steps

    def write(self, name: str, content: bytes) -> None:
        self._steps.next()
        super().write(name, content)
        self._steps.next()

    def remove(self, name: str) -> None:
        self._steps.next()
        super().remove(name)
        self._steps.next()


async def main(root: Path, step: int) -> None:
    """Serve with a claim and a device that are always there."""
    reader, source = FakeReader(), FakeSource()
    reader.put(a_reference())
    source.known.update(some_instances())
    source.discovered.set()
    paths, steps = KubeletPaths(root / "kubelet"), Steps(step)
    node = Node(
        NODE,
        BOOT,
        data=MortalFolder(paths.data, steps),
        cdi_files=MortalFolder(root / "cdi", steps),
        lock=ProcessLock(paths.lock),
    )
    claims = KubeletClaims(node, reader, source, pools=frozenset({NODE}))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serve(paths, claims, source):
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

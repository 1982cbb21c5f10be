"""Everything around one plugin for the kubelet, in one process or in two."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from driver.plumbing.disk import Folder
from driver.plumbing.disk_lock import ProcessLock
from driver.plumbing.kubelet_sockets import KubeletPaths
from driver.preparing.files import cdi
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_plugin import Registration, serve
from tests.driver.builders import NODE
from tests.driver.claim_builders import BOOT, some_instances
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.kubelet import FakeKubelet


@dataclass
class World:
    """Everything around one plugin."""

    root: Path
    reader: FakeReader = field(default_factory=FakeReader)
    source: FakeSource = field(default_factory=FakeSource)

    def __post_init__(self) -> None:
        self.source.known.update(some_instances())
        self.source.discovered.set()

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    def paths(self, pod_uid: str = "") -> KubeletPaths:
        return KubeletPaths(self.root / "kubelet", pod_uid)

    def prepared_uids(self) -> list[str]:
        names = (path.name for path in self.cdi.iterdir())
        return sorted(uid for name in names if (uid := cdi.claim_of(name)))

    @asynccontextmanager
    async def plugin(self, pod_uid: str = "") -> AsyncIterator[Registration]:
        paths = self.paths(pod_uid)
        node = Node(
            NODE,
            BOOT,
            data=Folder(paths.data),
            cdi_files=Folder(self.cdi),
            lock=ProcessLock(paths.lock),
        )
        claims = KubeletClaims(
            node,
            self.reader,
            self.source,
            pools=frozenset({NODE}),
        )
        async with serve(paths, claims, self.source) as registration:
            yield registration

    @asynccontextmanager
    async def kubelet(self) -> AsyncIterator[FakeKubelet]:
        async with FakeKubelet(self.root / "kubelet") as kubelet:
            await kubelet.until("registered")
            yield kubelet

    @asynccontextmanager
    async def process(self, die_before_step: int = -1) -> AsyncIterator[asyncio.subprocess.Process]:
        command = ["-m", "tests.driver.dra_process", str(self.root), str(die_before_step)]
        process = await asyncio.create_subprocess_exec(sys.executable, *command)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(20):
                await process.wait()

"""The plugin serves a kubelet over real sockets."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from driver.disk import Folder, ProcessLock
from driver.dra_kubelet import Registration, serve
from driver.kubelet_claims import KubeletClaims
from driver.kubelet_sockets import KubeletPaths
from driver.node import Node
from driver.prepared import PreparedClaim
from tests.driver.builders import NODE
from tests.driver.claim_builders import BOOT, FakeReader, FakeSource, a_reference, some_instances
from tests.fakes.kubelet import FakeKubelet


@dataclass
class World:
    """Everything around one plugin, short paths included."""

    root: Path
    reader: FakeReader = field(default_factory=FakeReader)
    source: FakeSource = field(default_factory=FakeSource)
    unprepared: list[PreparedClaim] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.source.known.update(some_instances())
        self.source.discovered.set()

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    def paths(self, pod_uid: str = "") -> KubeletPaths:
        return KubeletPaths(self.root / "kubelet", pod_uid)

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
            unprepared=self.unprepared.append,
        )
        async with serve(paths, claims, self.source) as registration:
            yield registration

    @asynccontextmanager
    async def kubelet(self) -> AsyncIterator[FakeKubelet]:
        async with FakeKubelet(self.root / "kubelet") as kubelet:
            await kubelet.until("registered")
            yield kubelet


@pytest.fixture
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield World(Path(root))


async def test_claim_is_prepared_and_unprepared(world: World) -> None:
    wanted = world.reader.put(a_reference())
    async with world.plugin(), world.kubelet() as kubelet:
        prepared = await kubelet.prepare(wanted)
        assert prepared[wanted.uid].error == ""
        unprepared = await kubelet.unprepare(wanted)
        assert unprepared[wanted.uid].error == ""
        assert list(world.cdi.iterdir()) == []

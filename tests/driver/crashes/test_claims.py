"""A driver that serves claims dies before each of its system calls."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from driver.api import ClaimUid
from driver.plumbing.kubelet_sockets import KubeletPaths
from driver.preparing.files import cdi, checkpoint
from driver.preparing.files.disk_checkpoint import NAME as CHECKPOINT
from driver.preparing.files.prepared import ClaimReference, PreparedClaims
from tests.driver.builders import NODE
from tests.driver.crashes.claims_process import (
    KEPT,
    MOVED,
    RIVAL,
    WANTED,
    place,
    serve_claims,
)
from tests.driver.crashes.lives import SECONDS, Boundaries, Life, life, until
from tests.fakes.kubelet import FakeKubelet

LEAST = 15
"""System calls that each of these takes at the very least: fewer would be a sweep of nothing."""


@dataclass
class World:
    """A node's disk, and a kubelet that remembers what it was told."""

    root: Path
    kubelet: FakeKubelet
    told: dict[ClaimUid, bytes] = field(default_factory=dict)

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Life]:
        """A driver that serves."""
        async with life(serve_claims, self.root) as found:
            found.begin()
            await self.wait_serving(found)
            yield found

    async def wait_serving(self, found: Life) -> None:
        assert await asyncio.to_thread(found.orders.recv) == "serves"
        await self.kubelet.until_current()

    async def prepare(self, claim: ClaimReference) -> str:
        """Returns why not; what was told once is told again."""
        answer = (await self.kubelet.prepare(claim, seconds=SECONDS))[claim.uid]
        if not answer.error:
            devices = answer.SerializeToString(deterministic=True)
            assert self.told.setdefault(claim.uid, devices) == devices
        return answer.error

    async def unprepare(self, claim: ClaimReference) -> None:
        answer = (await self.kubelet.unprepare(claim, seconds=SECONDS))[claim.uid]
        assert not answer.error
        self.told.pop(claim.uid, None)

    def checkpoint(self) -> PreparedClaims:
        path = KubeletPaths(self.root / "kubelet").data / CHECKPOINT
        found = checkpoint.load(path.read_bytes(), NODE)
        assert isinstance(found, Mapping), found
        return found

    def files(self) -> dict[ClaimUid, bytes]:
        """CDI files that a runtime would read."""
        names = [path.name for path in (self.root / "cdi").iterdir()]
        found = {uid: name for name in names if (uid := cdi.claim_of(name))}
        return {uid: (self.root / "cdi" / name).read_bytes() for uid, name in found.items()}

    def check_after_kill(self) -> None:
        """No device is usable that the guard of exclusive devices does not see."""
        assert self.files().keys() <= self.checkpoint().keys()
        assert self.told.keys() <= self.files().keys()
        self.check_asked()

    def check_asked(self) -> None:
        """Whenever its device may be given, it is given as the claim asks."""
        if WANTED.uid in self.files():
            (edits,) = (edits for edits in self.edits(WANTED) if "deviceNodes" in edits)
            assert "FPS=25" in edits["env"]
            assert [node["fileMode"] for node in edits["deviceNodes"]] == [0o640]

    def check_serving(self) -> None:
        claims = self.checkpoint()
        assert self.files() == {uid: cdi.dump(claim) for uid, claim in claims.items()}
        assert self.told.keys() <= claims.keys()
        self.check_asked()

    def edits(self, claim: ClaimReference) -> list[dict[str, Any]]:
        document: dict[str, Any] = json.loads(self.files()[claim.uid])
        return [device["containerEdits"] for device in document["devices"]]

    def host_paths(self, claim: ClaimReference) -> list[str]:
        nodes = (node for edit in self.edits(claim) for node in edit.get("deviceNodes", ()))
        return [node["hostPath"] for node in nodes]


@pytest.fixture
def root() -> Iterator[Path]:
    """On a disk, in a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="c", dir="/var/tmp") as folder:
        yield Path(folder)


@asynccontextmanager
async def worlds(root: Path) -> AsyncIterator[World]:
    """With a claim that is prepared all the while, and another device that is free."""
    async with FakeKubelet(root / "kubelet") as kubelet:
        world = World(root, kubelet)
        async with world.life():
            assert not await world.prepare(KEPT)
        yield world


async def _is_answered(call: Any) -> bool:
    """Whether the kubelet has an answer; it has none if the driver died."""
    with suppress(grpc.aio.AioRpcError):
        await call
        return True
    return False


async def _finish(world: World) -> None:
    """The driver is back: what was told is so, and nobody has the device twice."""
    assert not await world.prepare(KEPT)
    assert not await world.prepare(WANTED)
    world.check_serving()
    assert "is still prepared for" in await world.prepare(RIVAL)
    await world.unprepare(WANTED)
    world.check_serving()
    assert not await world.prepare(RIVAL)
    await world.unprepare(RIVAL)
    assert world.checkpoint().keys() == world.files().keys() == {KEPT.uid}


async def test_killed_while_preparing(root: Path) -> None:
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            async with world.life() as driver:
                await driver.trace(boundaries.log, boundary)
                answered = await _is_answered(world.prepare(WANTED))
            world.check_after_kill()
            async with world.life():
                world.check_serving()
                await _finish(world)
            if answered:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def test_killed_while_unpreparing(root: Path) -> None:
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            async with world.life() as driver:
                assert not await world.prepare(WANTED)
                await driver.trace(boundaries.log, boundary)
                del world.told[WANTED.uid]  # from now on it may be gone
                answered = await _is_answered(world.unprepare(WANTED))
            world.check_after_kill()
            async with world.life():
                world.check_serving()
                assert not answered or world.checkpoint().keys() == {KEPT.uid}
                await world.unprepare(WANTED)
                assert world.checkpoint().keys() == world.files().keys() == {KEPT.uid}
                await _finish(world)
            if answered:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def test_killed_while_starting(root: Path) -> None:
    """Again and again, with a file that is missing, one that is nobody's, and a device moved."""
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            (root / MOVED).unlink(missing_ok=True)
            async with world.life():
                assert not await world.prepare(WANTED)
            (root / MOVED).touch()
            (root / "cdi" / cdi.file_name(WANTED.uid)).unlink()
            (root / "cdi" / cdi.file_name(RIVAL.uid)).write_bytes(b"{}")
            async with life(serve_claims, root) as driver:
                await driver.trace(boundaries.log, boundary)
                served = await _serves(world, driver)
            assert world.checkpoint().keys() == {KEPT.uid, WANTED.uid}
            async with world.life():
                world.check_serving()
                assert world.host_paths(WANTED) == [place(root)] == ["/dev/elsewhere"]
                await _finish(world)
            if served:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def _serves(world: World, driver: Life) -> bool:
    with suppress(EOFError, ConnectionError):
        driver.begin()
        await asyncio.to_thread(driver.orders.recv)
        alive, current = driver.process.is_alive, world.kubelet.is_current
        await asyncio.to_thread(until, lambda: current() or not alive())
        return alive()
    return False


async def test_killed_while_a_device_moves(root: Path) -> None:
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            (root / MOVED).unlink(missing_ok=True)
            async with world.life() as driver:
                assert not await world.prepare(WANTED)
                (root / MOVED).touch()
                await driver.trace(boundaries.log, boundary)
                done = await _is_renewed(driver)
            world.check_after_kill()
            async with world.life():
                world.check_serving()
                assert world.host_paths(WANTED) == [place(root)] == ["/dev/elsewhere"]
                await _finish(world)
            if done:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def _is_renewed(driver: Life) -> bool:
    with suppress(EOFError, ConnectionError):
        driver.orders.send("look")
        return bool(await asyncio.to_thread(driver.orders.recv) == "renewed")
    return False

"""A driver that serves claims dies before each of its system calls."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from driver.api import ClaimUid
from driver.plumbing.disk import is_temporary
from driver.preparing.files import cdi
from driver.preparing.files.prepared import ClaimReference, PreparedClaims
from driver.preparing.files.records import Unreadable
from tests.driver.claim_builders import (
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)
from tests.driver.crashes.claims_process import (
    DEVICE,
    KEPT,
    MOVED,
    RIVAL,
    WANTED,
    place,
    serve_beside_a_slow_disk,
    serve_claims,
)
from tests.driver.crashes.lives import SECONDS, Boundaries, Life, life, until
from tests.fakes.kubelet import FakeKubelet

LEAST = 10
"""System calls that each of these takes at the very least: fewer would be a sweep of nothing."""


GONE = a_reference(4)


def of_an_earlier_boot(claim: ClaimReference) -> bytes:
    device = some_instances(an_instance(DEVICE))
    return cdi.dump(replace(prepared(claim, a_result(DEVICE), instances=device), boot_id="boot-0"))


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

    def records(self) -> PreparedClaims:
        found = {uid: cdi.load(text, uid) for uid, text in self.files().items()}
        return {uid: c for uid, c in found.items() if not isinstance(c, Unreadable)}

    def files(self) -> dict[ClaimUid, bytes]:
        """CDI files that a runtime would read."""
        names = [path.name for path in (self.root / "cdi").iterdir()]
        found = {uid: name for name in names if (uid := cdi.claim_of(name))}
        return {uid: (self.root / "cdi" / name).read_bytes() for uid, name in found.items()}

    def check_after_kill(self) -> None:
        """No file is half of one, and none that the kubelet was told of is missing."""
        assert self.files().keys() == self.records().keys()
        assert self.told.keys() <= self.files().keys()
        self.check_asked()

    def check_asked(self) -> None:
        """Whenever its device may be given, it is given as the claim asks."""
        if WANTED.uid in self.files():
            (edits,) = (edits for edits in self.edits(WANTED) if "deviceNodes" in edits)
            assert "FPS=25" in edits["env"]
            assert [node["fileMode"] for node in edits["deviceNodes"]] == [0o640]

    def check_serving(self) -> None:
        claims = self.records()
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
    assert world.records().keys() == world.files().keys() == {KEPT.uid}


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
                assert not answered or world.records().keys() == {KEPT.uid}
                await world.unprepare(WANTED)
                assert world.records().keys() == world.files().keys() == {KEPT.uid}
                await _finish(world)
            if answered:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def test_killed_while_starting(root: Path) -> None:
    """Again and again, with a file of an earlier boot, and a device that moved."""
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            (root / MOVED).unlink(missing_ok=True)
            async with world.life():
                assert not await world.prepare(WANTED)
            (root / MOVED).touch()
            (root / "cdi" / cdi.file_name(GONE.uid)).write_bytes(of_an_earlier_boot(GONE))
            async with life(serve_claims, root) as driver:
                await driver.trace(boundaries.log, boundary)
                served = await _serves(world, driver)
            assert world.records().keys() - {GONE.uid} == {KEPT.uid, WANTED.uid}
            async with world.life():
                world.check_serving()
                assert GONE.uid not in world.files()
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


async def test_killed_while_removed_files_are_written_again(root: Path) -> None:
    """Each is there whole or not at all; what is not is as removed while no driver runs."""
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            async with world.life() as driver:
                assert not await world.prepare(WANTED)
                for path in (root / "cdi").iterdir():
                    path.unlink()
                await driver.trace(boundaries.log, boundary)
                done = await _is_renewed(driver)
            assert world.files().keys() == world.records().keys()
            assert not done or world.records().keys() == {KEPT.uid, WANTED.uid}
            async with world.life():
                await _finish(world)
            if done:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


STALL_SECONDS = 3.0


async def test_write_that_outlives_its_cancelled_task_keeps_other_processes_out(
    root: Path,
) -> None:
    """A rolling update on a disk that stalls: the late write comes before all that they do."""
    async with worlds(root) as world, life(serve_beside_a_slow_disk, root) as older:
        older.begin()
        await world.wait_serving(older)
        assert not await world.prepare(KEPT)
        await older.delay("rename", STALL_SECONDS)
        preparing = asyncio.create_task(world.prepare(WANTED))
        await asyncio.to_thread(until, lambda: _is_being_written(world))

        older.orders.send("cancel")
        async with world.life():
            assert WANTED.uid in world.files()
            assert "is still prepared for" in await world.prepare(RIVAL)
            assert await _is_answered(preparing) in (True, False)
            assert not await world.prepare(WANTED)
        assert world.records().keys() == {KEPT.uid, WANTED.uid}


def _is_being_written(world: World) -> bool:
    return any(is_temporary(path.name) for path in (world.root / "cdi").iterdir())


async def test_two_processes_that_are_asked_at_one_time_give_a_device_once(root: Path) -> None:
    async with worlds(root) as world, world.life(), world.life():
        plugins = world.kubelet.plugins[-2:]
        for _ in range(10):
            answers = await asyncio.gather(
                *(
                    world.kubelet.prepare(claim, seconds=SECONDS, plugin=plugin)
                    for claim, plugin in zip((WANTED, RIVAL), plugins, strict=True)
                )
            )
            refused = [a[uid].error for a in answers for uid in a if a[uid].error]
            assert len(refused) == 1, answers
            assert "is still prepared for" in refused[0]
            for claim in (WANTED, RIVAL):
                await world.unprepare(claim)

"""A driver that offers slots dies before each of its system calls."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import pytest

from tests.driver.crashes.lives import Boundaries, Life, life, until
from tests.driver.crashes.slots_process import (
    INSTANCES,
    OWN,
    PODS,
    SLOT,
    StoredInstances,
    serve_slots,
)
from tests.driver.slot_builders import NODE_A
from tests.fakes.device_manager import FakeDeviceManager
from tests.fakes.pod_resources import FakePodResources

LEAST = 10


@dataclass
class World:
    """A node's disk, its kubelet, and an API server that is a file."""

    root: Path
    kubelet: FakeDeviceManager

    @asynccontextmanager
    async def life(self) -> AsyncIterator[Life]:
        """A driver that serves."""
        async with self.not_begun() as found:
            found.begin()
            await self.kubelet.until(lambda: OWN in self.kubelet.capacity)
            yield found

    @asynccontextmanager
    async def not_begun(self) -> AsyncIterator[Life]:
        async with life(serve_slots, self.root) as found:
            yield found
        await self.kubelet.until(lambda: not any(self.kubelet.clients.values()))
        self.kubelet.capacity.clear()

    async def allocate(self, slot: str = SLOT) -> bytes:
        answer = await self.kubelet.allocate(OWN, [slot])
        return answer.SerializeToString(deterministic=True)

    def usage(self) -> dict[str, str]:
        return StoredInstances(self.root).usage()

    def is_free(self) -> bool:
        """And offered."""
        return not self.usage() and OWN in self.kubelet.capacity

    def begin(self, *held: str, pod: bool) -> None:
        """What the API server says before a process starts: who asks, and which slots are taken."""
        (self.root / INSTANCES).unlink(missing_ok=True)
        instances = StoredInstances(self.root)
        for slot in held:
            instances.by_hand(slot, NODE_A)
        instances.store()
        (self.root / PODS).unlink(missing_ok=True)
        if pod:
            (self.root / PODS).touch()
        for file in (self.root / "cdi").glob("*.json"):
            file.unlink()  # else it would not be written again

    def given(self) -> list[str]:
        """Device nodes of the files that a runtime reads."""
        files = sorted((self.root / "cdi").glob("*.json"))
        documents = [json.loads(path.read_bytes()) for path in files]
        edits = [device["containerEdits"] for d in documents for device in d["devices"]]
        return [node["hostPath"] for edit in edits for node in edit.get("deviceNodes", ())]


@pytest.fixture
def root() -> Iterator[Path]:
    """On a disk, in a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="c", dir="/var/tmp") as folder:
        yield Path(folder)


@asynccontextmanager
async def worlds(root: Path) -> AsyncIterator[World]:
    """With a kubelet that has no pod with a device, and folders that are made once."""
    kubelet = FakeDeviceManager(root / "device-plugins")
    async with kubelet, FakePodResources(root / "pod-resources"):
        world = World(root, kubelet)
        world.begin(pod=True)
        async with world.life():
            await world.allocate()
        yield world


async def test_killed_while_allocating(root: Path) -> None:
    async with worlds(root) as world:
        told = b""
        for boundary in (boundaries := Boundaries(root)):
            world.begin(pod=True)
            answer = None
            async with world.life() as driver:
                await driver.trace(boundaries.log, boundary)
                # The kubelet hangs up as soon as it has seen the driver's stream end.
                with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
                    answer = await world.allocate()
            assert world.usage() in ({}, {SLOT: NODE_A})
            assert answer is None or world.usage() == {SLOT: NODE_A}
            assert world.usage() == {} or world.given() == ["/dev/null"]
            async with world.life():
                again = await world.allocate()
                assert world.usage() == {SLOT: NODE_A}
            told = told or again
            assert answer in (None, told)
            assert again == told
            if answer is not None:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def test_killed_while_releasing(root: Path) -> None:
    """The pod went while no driver ran: the next one releases the slot at its start."""
    async with worlds(root) as world:
        for boundary in (boundaries := Boundaries(root)):
            world.begin(SLOT, pod=False)
            async with world.not_begun() as driver:
                await driver.trace(boundaries.log, boundary)
                done = await _is_released(world, driver)
            assert world.usage() in ({}, {SLOT: NODE_A})
            async with world.life():
                await asyncio.to_thread(until, world.is_free)
                await world.allocate()
                assert world.usage() == {SLOT: NODE_A}
            if done:
                boundaries.note_survived(boundary)
        boundaries.check(LEAST)


async def _is_released(world: World, driver: Life) -> bool:
    with suppress(ConnectionError):
        driver.begin()
        await asyncio.to_thread(until, lambda: not driver.process.is_alive() or world.is_free())
        return driver.process.is_alive()
    return False

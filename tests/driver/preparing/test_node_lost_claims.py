"""What is prepared and has no CDI file is written again, or forgotten, as the API server says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from driver.plumbing.disk import ProcessLock
from driver.preparing import node_lost_claims
from driver.preparing.files import cdi
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.node_lost_claims import LostClaims
from kube.api import ApiClient, UnavailableError
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    FakeReader,
    FakeSource,
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)
from tests.driver.preparing.test_lost_claims import ENDING, POD, a_user
from tests.driver.tasks import running, until
from tests.fakes.disk import Disk, FakeFolder

WANTED, OTHER = a_reference(1), a_reference(2)
FILE = cdi.file_name(WANTED.uid)


class World:
    """A node whose claim is used by a pod, until its CDI file is gone."""

    def __init__(self, lock: Path) -> None:
        self.lock = lock
        self.source, self.reader = FakeSource(), FakeReader()
        self.source.known.update(some_instances(an_instance(), an_instance("loop-bbbbbb")))
        self.source.discovered.set()
        self.data, self.cdi = FakeFolder(Disk()), FakeFolder(Disk())
        self.pods: list[Any] = [a_user()]
        self.error: Exception | None = None
        self.lists = 0

    def driver(self) -> KubeletClaims:
        lock = ProcessLock(self.lock)
        node = Node(NODE, BOOT, data=self.data, cdi_files=self.cdi, lock=lock)
        return KubeletClaims(node, self.reader, self.source, pools=frozenset({NODE}))

    async def list(self, _: Any, *, timeout_seconds: float) -> SimpleNamespace:
        self.lists += 1
        if self.error is not None:
            raise self.error
        return SimpleNamespace(items=self.pods)

    async def start(self) -> KubeletClaims:
        """With a claim that is prepared, and has no file."""
        self.claims = self.driver()
        await self.claims.recover()
        self.reader.put(WANTED)
        self.reader.stored[WANTED.name]["status"]["reservedFor"] = [POD]
        await self.claims.prepare([WANTED])
        await self.remove_file()
        return self.claims

    async def remove_file(self) -> None:
        del self.cdi.files[FILE]
        await self.claims.renew(again=True)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        async with running(LostClaims(cast("ApiClient", self), NODE, self.claims).run()):
            yield

    async def several_looks(self) -> None:
        begin = self.lists
        await until(lambda: self.lists >= begin + 4)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_lost_claims, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 0.03)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "lock")


async def test_the_file_of_a_claim_in_use_is_written_again(world: World) -> None:
    claims = await world.start()
    world.reader.put(OTHER)
    assert isinstance((await claims.prepare([OTHER]))[OTHER.uid], Failure)

    async with world.looking():
        await until(lambda: FILE in world.cdi.files)

    assert world.lists > 2, "not by one look"
    assert world.cdi.files == {FILE: cdi.dump(prepared(WANTED))}
    assert (dict(claims.lost), world.data.files) == ({}, {})


async def test_a_claim_that_no_pod_has_is_forgotten(world: World) -> None:
    claims = await world.start()
    world.pods = [a_user("Succeeded")]

    async with world.looking():
        await until(lambda: not claims.prepared)

    assert world.cdi.files == world.data.files == {}
    world.reader.put(OTHER)
    assert isinstance((await claims.prepare([OTHER]))[OTHER.uid], PreparedClaim)


async def test_a_claim_whose_pod_is_being_deleted_stays_as_it_is(world: World) -> None:
    """Its container may run still; and its kubelet may have unprepared it already."""
    claims = await world.start()
    world.pods = [ENDING]

    async with world.looking():
        await world.several_looks()
        assert (list(claims.lost), world.cdi.files) == ([WANTED.uid], {})
        world.pods = []
        await until(lambda: not claims.prepared)


@pytest.mark.parametrize("of_pods", [True, False])
async def test_while_the_api_server_is_away_nothing_is_written_or_forgotten(
    world: World, of_pods: bool
) -> None:
    claims = await world.start()
    if of_pods:
        world.error = UnavailableError("away")
    else:
        world.reader.error = ConnectionError("away")

    async with world.looking():
        await until(lambda: world.lists >= 2 or not of_pods)
        await asyncio.sleep(0.1)
        await claims.renew(again=True)
        assert (list(claims.lost), world.cdi.files) == ([WANTED.uid], {})
        world.error = world.reader.error = None
        await until(lambda: FILE in world.cdi.files)


async def test_a_pod_that_ends_while_it_is_looked_gets_no_file(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet unprepares a moment before the pod's end is told."""
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 30)
    claims = await world.start()

    async with world.looking():
        await world.several_looks()
        assert world.cdi.files == {}
        world.pods = [ENDING]
        await world.several_looks()
        monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 0.5)
        world.pods = [a_user()]
        await world.several_looks()
        assert world.cdi.files == {}, "what ended in between is confirmed anew"
        world.pods = []
        await until(lambda: not claims.prepared)

    assert world.cdi.files == {}


async def test_what_another_driver_prepares_meanwhile_is_left_alone(world: World) -> None:
    claims, other = await world.start(), world.driver()
    await other.recover()
    await other.prepare([WANTED])
    files = dict(world.cdi.files)
    world.pods = []
    assert list(claims.lost) == [WANTED.uid], "it has not looked since"

    async with world.looking():
        await until(lambda: not claims.lost)

    assert claims.prepared.keys() == other.prepared.keys() == {WANTED.uid}
    assert world.cdi.files == files


async def test_a_claim_with_other_devices_is_no_longer_this_one(world: World) -> None:
    claims = await world.start()
    world.reader.put(WANTED, a_result("loop-bbbbbb"))

    async with world.looking():
        await until(lambda: not claims.prepared)

    assert world.cdi.files == {}

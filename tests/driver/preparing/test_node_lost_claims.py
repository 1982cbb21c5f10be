"""What is prepared and has no CDI file is written again, or forgotten, as the API server says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from driver.plumbing.disk_lock import ProcessLock
from driver.preparing import node_lost_claims
from driver.preparing.files import cdi
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.node_lost_claims import LostClaims
from kube.backoff import Backoff
from kube.calls.api import ApiClient, UnavailableError
from tests.driver.builders import NODE
from tests.driver.claim_builders import (
    BOOT,
    a_reference,
    a_result,
    an_instance,
    prepared,
    some_instances,
)
from tests.driver.preparing.test_lost_claims import ENDING, POD, a_user
from tests.driver.tasks import running, until
from tests.fakes.claims import FakeReader, FakeSource
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
        self.pods_of_looks: list[list[Any]] = []
        self.listed_at: list[float] = []

    @property
    def lists(self) -> int:
        return len(self.listed_at)

    def driver(self) -> KubeletClaims:
        lock = ProcessLock(self.lock)
        node = Node(NODE, BOOT, data=self.data, cdi_files=self.cdi, lock=lock)
        return KubeletClaims(node, self.reader, self.source, pools=frozenset({NODE}))

    async def list(self, _: Any, *, timeout_seconds: float) -> SimpleNamespace:
        self.listed_at.append(asyncio.get_running_loop().time())
        if self.error is not None:
            raise self.error
        pods = self.pods_of_looks.pop(0) if self.pods_of_looks else self.pods
        return SimpleNamespace(items=pods)

    async def start(self) -> KubeletClaims:
        """With a claim that is prepared, and has no file."""
        self.claims = self.driver()
        await self.claims.recover()
        self.reader.put(WANTED)
        self.reader.stored[WANTED.name]["status"]["reservedFor"] = [POD]
        await self.claims.prepare([WANTED])
        await self.remove_file()
        return self.claims

    async def lose_folder(self) -> None:
        """With the files of two claims that a pod has."""
        self.claims = self.driver()
        await self.claims.recover()
        for claim, device in ((WANTED, "loop-aaaaaa"), (OTHER, "loop-bbbbbb")):
            self.reader.put(claim, a_result(device))
            self.reader.stored[claim.name]["status"]["reservedFor"] = [POD]
        await self.claims.prepare([WANTED, OTHER])
        self.cdi.files.clear()
        await self.set_trouble("it was removed on the node")

    async def set_trouble(self, trouble: str) -> None:
        self.cdi.trouble = trouble
        await self.claims.renew(again=True)

    def writes(self) -> tuple[str, ...]:
        """Names of CDI files that were written, or could not be."""
        writes = (step for step in self.cdi.disk.steps if step.startswith("write "))
        return tuple(step.removeprefix("write ") for step in writes)

    async def remove_file(self) -> None:
        del self.cdi.files[FILE]
        await self.claims.renew(again=True)

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        async with running(LostClaims(cast("ApiClient", self), NODE, self.claims).run()):
            yield

    def gaps(self) -> tuple[float, ...]:
        """Seconds from one list of pods to the next."""
        return tuple(after - before for before, after in pairwise(self.listed_at))

    async def several_looks(self) -> None:
        begin = self.lists
        await until(lambda: self.lists >= begin + 4)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_lost_claims, "LOOK_SECONDS", 0.01)
    back_off(monkeypatch, 0.01, 0.05)
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 0.03)


def back_off(monkeypatch: pytest.MonkeyPatch, first: float, cap: float) -> None:
    backoff = Backoff(first_seconds=first, cap_seconds=cap)
    monkeypatch.setattr(node_lost_claims, "BACKOFF", backoff)


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


async def test_while_files_cannot_be_written_the_api_server_is_asked_ever_more_seldom(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all claims, and no file is tried: each try would cost two reads more."""
    back_off(monkeypatch, 0.05, 0.1)
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 0)
    await world.lose_folder()
    world.cdi.disk.steps.clear()

    async with world.looking():
        await until(lambda: world.lists >= 4)

        assert all(
            gap >= least for gap, least in zip(world.gaps(), (0.05, 0.1, 0.1), strict=False)
        ), world.gaps()
        assert (world.writes(), len(world.claims.lost)) == ((), 2)


async def test_what_changes_is_looked_at_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_off(monkeypatch, 60, 60)
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 0)
    await world.lose_folder()

    async with world.looking():
        await until(lambda: world.lists == 1)
        await asyncio.sleep(0.1)
        assert world.lists == 1
        await world.set_trouble("")
        await until(lambda: not world.claims.lost)
        assert world.cdi.files.keys() == {FILE, cdi.file_name(OTHER.uid)}

        await world.remove_file()
        await until(lambda: FILE in world.cdi.files)


async def test_a_write_that_fails_is_not_tried_again_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_off(monkeypatch, 60, 60)
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 0)
    await world.start()
    world.cdi.disk.steps.clear()
    world.cdi.disk.fail = lambda name, size: name == FILE

    async with world.looking():
        await until(lambda: FILE in world.writes())
        await asyncio.sleep(0.5)

    assert world.lists == 2, "to see who uses it, and once more with all others kept out"
    assert world.writes() == (FILE,)


async def test_a_pod_that_appears_between_two_looks_is_confirmed_like_any_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look found none: no file is written by the second one alone."""
    monkeypatch.setattr(node_lost_claims, "CONFIRM_SECONDS", 30)
    claims = await world.start()
    world.pods_of_looks = [[], [a_user()]]

    async with world.looking():
        await world.several_looks()

    assert (list(claims.lost), world.cdi.files) == ([WANTED.uid], {})

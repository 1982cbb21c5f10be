"""Prepared claims follow the devices of a node, and their pods are told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.plumbing.disk_lock import ProcessLock
from driver.preparing.grants.disk_grants import Node
from driver.preparing.grants.disk_host import on_this_host
from driver.preparing.grants.renewals import OnHost
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.node_claims import NodeClaims
from kube.calls.api import ApiClient, UnavailableError
from kube.events.api import Event, EventType
from tests.driver.builders import NODE
from tests.driver.claim_builders import BOOT, a_reference, a_result, an_instance, some_instances
from tests.driver.preparing.grants.test_renewals import a_pod
from tests.driver.tasks import running, until
from tests.fakes.claims import FakeReader, FakeSource
from tests.fakes.disk import Disk, FakeFolder

WANTED = a_reference(1)


def at(path: str, name: str = "loop-aaaaaa") -> Instance:
    return an_instance(name, device_specs=(DeviceSpec(path, path),))


class World:
    """A node with a prepared claim, and an API server with its pods."""

    def __init__(self, lock: Path) -> None:
        self.source, self.reader, self.events = FakeSource(), FakeReader(), list[Event]()
        self.pods, self.failures = [a_pod("user"), a_pod("over", "Failed")], 0
        self.lists = 0
        self.disk = Disk()
        folders = FakeFolder(self.disk), FakeFolder(self.disk)
        node = Node(NODE, BOOT, data=folders[0], cdi_files=folders[1], lock=ProcessLock(lock))
        self.looked_up: list[str] = []
        self.claims = KubeletClaims(
            node, self.reader, self.source, pools=frozenset({NODE}), on_host=self.on_host
        )
        client = cast("ApiClient", self)
        self.followed = NodeClaims(client, NODE, self.claims, self.events.append)

    @property
    def on_host(self) -> OnHost:
        def resolve(path: str) -> str:
            self.looked_up.append(path)
            return path

        return on_this_host(resolve=resolve)

    async def list(self, _: Any) -> SimpleNamespace:
        self.lists += 1
        if self.failures:
            self.failures -= 1
            raise UnavailableError("away")
        return SimpleNamespace(items=self.pods)

    def see(self, *instances: Instance) -> None:
        self.source.known = dict(some_instances(*instances)) if instances else {}
        self.source.discovered.set()
        self.followed.devices_changed()

    @asynccontextmanager
    async def running(self) -> Any:
        self.see(at("/dev/a"))
        self.reader.put(WANTED)
        await self.claims.prepare([WANTED])
        async with running(self.followed.run()):
            yield

    def told(self) -> Sequence[tuple[str, str]]:
        return [(event.regarding.name, event.reason) for event in self.events]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "lock")


async def test_pods_that_may_have_the_device_are_told_that_it_moved(world: World) -> None:
    async with world.running():
        world.see(at("/dev/b"))
        await until(lambda: bool(world.events))

    (event,) = world.events
    assert (event.regarding.kind, event.regarding.name) == ("Pod", "user")
    assert (event.type, event.reason) == (EventType.WARNING, "DeviceMoved")
    assert event.note.startswith("Device node-a/loop-aaaaaa moved to /dev/b. Containers")


async def test_pods_are_told_once_that_a_path_is_taken(world: World) -> None:
    async with world.running():
        world.see(at("/dev/b"))
        await until(lambda: len(world.events) == 1)
        for _ in range(3):
            world.see(at("/dev/b"), at("/dev/a", "loop-bbbbbb"))
            await until(lambda: len(world.events) == 2)
        world.see()
        await until(lambda: len(world.events) == 3)

    assert [reason for _, reason in world.told()] == [
        "DeviceMoved",
        "DevicePathTaken",
        "DeviceAway",
    ]


async def test_path_that_is_taken_before_pods_heard_of_the_device_is_told_too(
    world: World,
) -> None:
    world.failures = 1000
    async with world.running():
        world.see()
        await until(lambda: world.lists > 0)
        world.see(at("/dev/a", "loop-bbbbbb"))
        world.failures = 0
        await until(lambda: len(world.events) == 2)

    assert [reason for _, reason in world.told()] == ["DeviceAway", "DevicePathTaken"]


async def test_what_could_not_be_told_is_told_later(world: World) -> None:
    world.failures = 1
    async with world.running():
        world.see()
        await until(lambda: bool(world.events))

    assert world.told() == [("user", "DeviceAway")]
    assert world.lists == 2


async def test_nothing_is_asked_where_nothing_changed(world: World) -> None:
    async with world.running():
        world.see(at("/dev/a"))
        await asyncio.sleep(0)
        world.see(at("/dev/b"))
        await until(lambda: bool(world.events))

    assert world.lists == 1


async def test_of_many_claims_only_those_whose_device_changed_are_planned_anew(
    world: World,
) -> None:
    """All of them are looked at seldom, since nobody tells where links lead."""
    disks = [at(f"/dev/{n}", f"loop-{n:06x}") for n in range(MANY)]
    world.see(*disks)
    wanted = [a_reference(n) for n in range(MANY)]
    for reference, disk in zip(wanted, disks, strict=True):
        world.reader.put(reference, a_result(disk.name))
    await world.claims.prepare(wanted)
    looked_up = world.looked_up
    looked_up.clear()
    async with running(world.followed.run()):
        await until(lambda: len(looked_up) == MANY)
        looked_up.clear()

        world.see(at("/dev/moved", disks[0].name), *disks[1:])
        await until(lambda: world.claims.prepared[wanted[0].uid].devices[0].paths == MOVED)

    assert looked_up == ["/dev/moved", "/dev/0"], "where it is, and where it was"


MANY = 50
MOVED = ("/dev/moved",)

"""What the device plugin gave follows its devices, and pods are told by the kubelet's account."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from driver.api import InstanceName
from driver.device_ids import DeviceKey
from driver.device_plugin.containers.disk_cdi import instance_files
from driver.device_plugin.containers.instance_cdi import file_name
from driver.device_plugin.kubelet import given_devices as kubelet_given_devices
from driver.device_plugin.kubelet.given_devices import GivenDevices, Times
from driver.device_plugin.kubelet.usage import HasPods
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.slots.node_pods import ListedDevice, Listing, NodePod, PodName
from driver.instances.slots.slots import InstanceSlots, by_name
from driver.preparing.grants.device_locators import DeviceLocator
from kube.events.api import Event
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, NODE_A, NODE_B, a_camera
from tests.fakes.slot_instances import FakeInstances

SLOT = f"{CAMERA_1}-0"
USER = NodePod(PodName("default", "user"), "uid-of-user", False, {f"akri.sh/{CAMERA_1}": 1})


def at(path: str, name: InstanceName = CAMERA_1) -> Instance:
    return a_camera(name, device_specs=(DeviceSpec(path, path),))


class World:
    """A node that holds a slot of one camera, for a pod."""

    def __init__(self, root: Path) -> None:
        self.root, self.events = root, list[Event]()
        self.stored = FakeInstances.of(CAMERA_1, CAMERA_2)
        self.answers: list[Listing | None] = []
        used = ListedDevice(USER.name, "main", DeviceKey(f"akri.sh/{CAMERA_1}", SLOT))
        self.listing = Listing(0.0, frozenset({used}))
        pods = SimpleNamespace(known=lambda: SimpleNamespace(pods=(USER,)))
        self.files = instance_files(root)
        self.given = GivenDevices(
            NODE_A,
            self.files,
            lambda: None,
            self.views,
            usage=self._usage,
            pods=cast("HasPods", pods),
            record=self.events.append,
        )

    def views(self) -> Mapping[InstanceName, InstanceSlots]:
        return by_name(self.stored.views())

    async def _usage(self) -> Listing | None:
        return self.answers.pop(0) if self.answers else self.listing

    async def sent(self, *cameras: Instance) -> list[str]:
        """The reasons of Events, after these are where the cameras are."""
        self.events.clear()
        await self.given.keep(DeviceLocator(cameras))
        task: asyncio.Task[Any] = asyncio.create_task(self.given.run())
        async with asyncio.timeout(10):
            while self.given.unreported:  # noqa: ASYNC110  DeviceEvent, or given up.
                await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])
        return [event.reason for event in self.events]

    def leads(self) -> str:
        return os.readlink(self.root / "moorage.dev" / CAMERA_1 / "device-0")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_device_that_is_held_is_followed_and_its_pods_hear_of_it(world: World) -> None:
    world.stored.by_hand(SLOT, NODE_A)
    assert await world.sent(at("/dev/a")) == []

    assert await world.sent(at("/dev/b")) == ["DeviceMoved"]
    (event,) = world.events
    assert (event.regarding.name, event.regarding.uid) == ("user", "uid-of-user")
    assert await world.sent(at("/dev/b"), at("/dev/a", CAMERA_2)) == ["DevicePathTaken"]
    assert await world.sent(at("/dev/a", CAMERA_2)) == ["DeviceAway"]
    assert world.leads().startswith("/dev/moorage.dev: ")
    assert await world.sent(at("/dev/c"), at("/dev/a", CAMERA_2)) == ["DeviceBack"]
    assert world.leads() == "/dev/c"


async def test_a_path_that_is_taken_while_pods_are_still_to_hear_of_the_device_is_told_too(
    world: World,
) -> None:
    world.stored.by_hand(SLOT, NODE_A)
    await world.sent(at("/dev/a"))

    await world.given.keep(DeviceLocator(()))

    assert await world.sent(at("/dev/a", CAMERA_2)) == ["DeviceAway", "DevicePathTaken"]


async def test_a_device_that_another_node_holds_is_not_written(world: World) -> None:
    world.stored.by_hand(SLOT, NODE_B)

    assert await world.sent(at("/dev/a")) == []
    assert not (world.root / "moorage.dev").exists()


async def test_a_kubelet_that_does_not_answer_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_given_devices, "TIMES", Times(retry=0.01))
    world.stored.by_hand(SLOT, NODE_A)
    await world.sent(at("/dev/a"))
    world.answers = [None]

    assert await world.sent(at("/dev/b")) == ["DeviceMoved"]


async def test_a_file_that_another_process_removed_is_back_though_no_device_changed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_given_devices, "TIMES", Times(look=0.01))
    world.stored.by_hand(SLOT, NODE_A)
    where, file = DeviceLocator([at("/dev/a")]), world.root / file_name(CAMERA_1)
    world.given.where = lambda: where
    await world.given.keep(where)
    written = file.read_bytes()
    file.unlink()

    task: asyncio.Task[Any] = asyncio.create_task(world.given.run())
    async with asyncio.timeout(10):
        while not file.exists():  # noqa: ASYNC110  No descriptor tells of it.
            await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.wait([task])

    assert file.read_bytes() == written

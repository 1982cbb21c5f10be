"""What is left of the device plugin where it is the path no more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from driver.device_ids import DeviceKey
from driver.device_plugin import node_remaining_slots
from driver.device_plugin.node_remaining_slots import NodePlace, release_remaining_slots
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.slots.node_pods import ListedDevice, Listing, NodePod, PodName
from driver.instances.stored.objects import StoredInstance, stored_instance
from driver.preparing.grants.device_locators import DeviceLocator
from kube.calls.api import ApiClient
from kube.stores.api import Store
from tests.driver.slot_builders import CAMERA_1, NODE_A, a_camera
from tests.driver.tasks import running, until
from tests.fakes.slot_instances import FakeInstances
from tests.fakes.slots import Followed, FollowedPods, FollowedSlots

OWN, SLOT = f"akri.sh/{CAMERA_1}", f"{CAMERA_1}-0"
USER = NodePod(PodName("default", "user"), "uid-of-user", False, {OWN: 1})
USED = ListedDevice(USER.name, "main", DeviceKey(OWN, SLOT))


class FakeStored(Followed):
    """All Instances, as others follow them."""

    def __init__(self, slots: FollowedSlots) -> None:
        super().__init__()
        self._slots = slots

    def __iter__(self) -> Iterator[StoredInstance]:
        return map(stored_instance, self._slots.stored.bodies.values())


class FakeNode:
    """A node that offers its devices through DRA now, with its kubelet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slots = FollowedSlots(FakeInstances.of(CAMERA_1))
        self.pods = FollowedPods()
        self.used: tuple[ListedDevice, ...] = ()
        self.asked = 0
        self.where: DeviceLocator | None = None
        self.listeners: list[Callable[[], None]] = []
        for name, fake in (
            ("SlotObjects", self.slots),
            ("NodePodObjects", self.pods),
        ):
            monkeypatch.setattr(node_remaining_slots, name, lambda *_, _fake=fake: _fake)
        monkeypatch.setattr(node_remaining_slots, "list_devices", lambda *_: self.listing())

    async def listing(self) -> Listing:
        self.asked += 1
        return Listing(asyncio.get_running_loop().time(), frozenset(self.used))

    def on_moved(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def see(self, *cameras: Instance) -> None:
        """Discovery reports these."""
        self.where = DeviceLocator(cameras)
        for listener in self.listeners:
            listener()

    @asynccontextmanager
    async def cleared(self, root: Path) -> AsyncIterator[None]:
        stored = cast(Store[StoredInstance], FakeStored(self.slots))
        place = NodePlace(NODE_A, root, root / "cdi")
        client = cast(ApiClient, self)
        async with running(release_remaining_slots(client, place, stored, lambda _: None, self)):
            yield


async def test_a_kubelet_that_lists_nobody_yet_does_not_prove_that_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The node seemed lost, so its slots were freed; its containers were there all the time."""
    node = FakeNode(monkeypatch)
    node.pods.pods = (USER,)

    async with node.cleared(tmp_path):
        await until(lambda: node.asked > 0)
        node.used = (USED,)

        await until(lambda: node.slots.stored.usage() == {SLOT: NODE_A})


def leads(link: Path, path: str) -> bool:
    return link.is_symlink() and os.readlink(link) == path


async def test_a_device_that_a_leftover_container_has_is_followed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node = FakeNode(monkeypatch)
    node.pods.pods, node.used = (USER,), (USED,)
    node.slots.by_hand(SLOT, NODE_A)
    link = tmp_path / "cdi/moorage.dev" / CAMERA_1 / "device-0"

    async with node.cleared(tmp_path):
        for path in ("/dev/a", "/dev/b"):
            node.see(a_camera(device_specs=(DeviceSpec(path, path),)))
            await until(partial(leads, link, path))

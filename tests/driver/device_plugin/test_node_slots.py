"""What a node's kubelet is told as Instances and devices change: all parts of the path."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from driver.device_plugin import node_slots
from driver.device_plugin.node_remaining_slots import NodePlace
from driver.device_plugin.node_slots import NodeSlots
from driver.instances.slots.node_pods import Listing
from driver.names import attribute_value
from kube.calls.api import ApiClient
from kube.events.api import Event
from tests.driver.slot_builders import CAMERA_1, NODE_A, NODE_B, RESOURCE, a_camera
from tests.fakes.device_manager import Client, FakeDeviceManager
from tests.fakes.devices import FakeDevices
from tests.fakes.slot_instances import FakeInstances
from tests.fakes.slots import FollowedPods, FollowedSlots
from tests.fakes.taint_rules import FollowedRules, a_rule

OWN = f"akri.sh/{CAMERA_1}"
SLOT = f"{CAMERA_1}-0"
WHOLE = {SLOT: True, f"{CAMERA_1}-1": True}
HALF = {**WHOLE, SLOT: False}
NONE = dict.fromkeys(WHOLE, False)


class Node:
    """A node's driver on the path of the device plugin, and its kubelet."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.slots = FollowedSlots(FakeInstances.of(CAMERA_1))
        self.devices = FakeDevices(a_camera())
        self.events: list[Event] = []
        self.kubelet = FakeDeviceManager(root / "device-plugins")
        for name, fake in (
            ("SlotObjects", self.slots),
            ("NodePodObjects", FollowedPods()),
        ):
            monkeypatch.setattr(node_slots, name, lambda *_, _fake=fake: _fake)
        self.rules = FollowedRules()
        monkeypatch.setattr(node_slots, "TaintRules", self.following)
        monkeypatch.setattr(node_slots, "list_devices", lambda *_: self.listing())

    def following(self, _: ApiClient, on_changed: Callable[[], object]) -> FollowedRules:
        self.rules.on_changed = on_changed
        return self.rules

    async def listing(self) -> Listing | None:
        return None

    async def merge_patch(self, *_: object, **__: object) -> dict[str, Any]:
        return {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        place = NodePlace(NODE_A, self.root, self.root / "cdi")
        client = cast(ApiClient, self)
        async with self.kubelet:
            node = NodeSlots(client, place, self.devices, self.events.append)
            assert not node.are_introduced
            task = asyncio.create_task(node.run())
            try:
                await self.kubelet.until(lambda: len(self.kubelet.capacity) == 2)
                async with asyncio.timeout(10):
                    while not node.are_introduced:  # noqa: ASYNC110  Nobody tells.
                        await asyncio.sleep(0.005)
                yield
            finally:
                task.cancel()
                await asyncio.wait([task])

    async def until_listed(self, devices: dict[str, bool]) -> None:
        await self.kubelet.until(lambda: self.kubelet.capacity.get(OWN) == devices)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """In a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield Node(Path(root), monkeypatch)


async def test_a_slot_that_another_node_takes_is_unhealthy_until_it_is_free(node: Node) -> None:
    async with node.running():
        await node.until_listed(WHOLE)

        node.slots.by_hand(SLOT, NODE_B)
        await node.until_listed(HALF)
        node.slots.by_hand(SLOT, None)

        await node.until_listed(WHOLE)


async def test_who_is_refused_hears_of_the_slot_before_the_refusal(node: Node) -> None:
    """Nothing but the refusal tells of it: the watch has not brought it yet."""
    async with node.running():
        await node.until_listed(WHOLE)
        node.slots.stored.by_hand(SLOT, NODE_B)

        with pytest.raises(grpc.aio.AioRpcError, match="is held by node node-b"):
            await node.kubelet.allocate(OWN, [SLOT])

        await node.until_listed(HALF)


async def test_after_a_refusal_the_list_is_sent_again_though_it_is_the_same(node: Node) -> None:
    async with node.running():
        await node.until_listed(WHOLE)
        (client,) = node.kubelet.clients[OWN]
        before = len(client.lists)

        with pytest.raises(grpc.aio.AioRpcError, match="beyond the capacity"):
            await node.kubelet.allocate(OWN, [f"{CAMERA_1}-7"])

        await node.kubelet.until(lambda: len(client.lists) == before + 1)
        assert client.lists[-1] == WHOLE


async def test_lists_are_sent_again_every_minute(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_slots, "RESEND_SECONDS", 0.1)
    async with node.running():
        for resource in (OWN, RESOURCE):
            (client,) = node.kubelet.clients[resource]
            await node.kubelet.until(partial(_has_lists, client, len(client.lists) + 3))

        assert node.kubelet.capacity == {OWN: WHOLE, RESOURCE: {CAMERA_1: True}}


def _has_lists(client: Client, number: int) -> bool:
    return len(client.lists) >= number


async def test_a_device_that_is_away_is_unhealthy_until_it_is_back(node: Node) -> None:
    async with node.running():
        await node.until_listed(WHOLE)

        node.devices.camera = replace(node.devices.camera, online=False)
        node.devices.decide()
        await node.until_listed(NONE)
        node.devices.camera = replace(node.devices.camera, online=True)
        node.devices.decide()

        await node.until_listed(WHOLE)


async def test_what_claims_still_have_is_given_when_the_last_ends(node: Node) -> None:
    node.devices.claimed_instances = frozenset({attribute_value(CAMERA_1)})
    async with node.running():
        await node.until_listed(NONE)

        node.devices.claimed_instances = frozenset()
        for listener in node.devices.gone:
            listener()

        await node.until_listed(WHOLE)


async def test_a_device_that_an_administrator_tainted_is_given_to_no_new_pod(node: Node) -> None:
    node.rules.have(a_rule())
    async with node.running():
        await node.until_listed(NONE)
        with pytest.raises(grpc.aio.AioRpcError, match="DeviceTaintRule repair"):
            await node.kubelet.allocate(OWN, [SLOT])

        node.rules.have()
        await node.until_listed(WHOLE)
        await node.kubelet.allocate(OWN, [SLOT])
        node.rules.have(a_rule(effect="NoExecute"))

        await node.until_listed({**NONE, SLOT: True})


async def test_nonsense_in_a_slot_is_an_event_once(node: Node) -> None:
    async with node.running():
        node.slots.by_hand(SLOT, "C:")
        node.slots.by_hand(f"{CAMERA_1}-1", NODE_B)
        await node.until_listed(NONE)

    (event,) = node.events
    assert (event.reason, event.regarding.name) == ("OddDeviceUsage", CAMERA_1)

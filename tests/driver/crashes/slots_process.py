"""A driver that offers slots, as a process that may die at any moment.

The API server's Instances are a file, so that they outlive the process: what was written may have
had no answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from driver.device_plugin import node_slots
from driver.device_plugin.node_remaining_slots import NodePlace
from driver.device_plugin.node_slots import NodeSlots
from driver.devices import DeviceSpec
from driver.instances.slots.node_pods import NodePod, PodName
from driver.instances.slots.slot_writes import SlotWrite
from driver.plumbing.disk import Folder
from kube.calls.api import ApiClient
from tests.driver.crashes.lives import AtOnce
from tests.driver.slot_builders import CAMERA_1, NODE_A, a_camera
from tests.fakes.devices import FakeDevices
from tests.fakes.slot_instances import FakeInstances
from tests.fakes.slots import FollowedPods, FollowedSlots
from tests.fakes.taint_rules import FollowedRules

OWN = f"akri.sh/{CAMERA_1}"
SLOT = f"{CAMERA_1}-0"
INSTANCES, PODS = "instances.json", "pods"
"""The second is a file that is there while a pod asks for the slot."""


class StoredInstances(FakeInstances):
    """Instances in a file."""

    def __init__(self, root: Path) -> None:
        self._folder = Folder(root)
        stored = self._folder.read(INSTANCES)
        super().__init__(
            *(json.loads(stored) if stored else FakeInstances.of(CAMERA_1).bodies.values())
        )

    def write(self, writes: Iterable[SlotWrite]) -> None:
        super().write(writes)
        self.store()

    def store(self) -> None:
        self._folder.write(INSTANCES, json.dumps(list(self.bodies.values())).encode())


class _Client:
    async def merge_patch(self, *_: object, **__: object) -> dict[str, Any]:
        return {}


def serve_slots(root: Path, orders: Connection) -> None:
    """Offer to `<root>` as the kubelet's folder until killed."""
    asyncio.run(_main(root, orders))


async def _main(root: Path, orders: Connection) -> None:
    asyncio.get_running_loop().set_default_executor(AtOnce())
    slots, pods = FollowedSlots(StoredInstances(root)), FollowedPods()
    if (root / PODS).exists():
        pods.pods = (NodePod(PodName("default", "user"), "uid-1", False, {OWN: 1}),)
    stand_ins = {"SlotObjects": slots, "NodePodObjects": pods, "TaintRules": FollowedRules()}
    for name, stand_in in stand_ins.items():
        setattr(node_slots, name, lambda *_, _found=stand_in: _found)
    place = NodePlace(NODE_A, root, root / "cdi")
    devices = FakeDevices(a_camera(device_specs=(DeviceSpec("/dev/null", "/dev/null", "rw"),)))
    node = NodeSlots(cast(ApiClient, _Client()), place, devices, lambda _: None)
    orders.send("ready")
    orders.recv()
    await node.run()

"""Instances on an API server that fails, as the device-plugin path's shell sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from driver.api import InstanceName
from driver.instances.slots.node_pods import NodePod, NodePods
from driver.instances.slots.slot_writes import SlotWrite
from driver.instances.slots.slots import InstanceSlots, by_name, instance_slots
from kube.calls.api import ApiError
from kube.objects import ObjectKey
from kube.stores.api import Change, Modified
from tests.fakes.slot_instances import ConflictError, FakeInstances

Fault = Callable[[FakeInstances, SlotWrite], bool | ApiError | None]
"""Takes the place of a write: its outcome, or the error; None to carry it out as well."""


class FakeSlotObjects:
    """What is known lags behind what is stored until it is read or written.

    Attributes:
        stored: The API server's objects.
        faults: What happens to the next writes, the first one first.
        reads: Names of the Instances that were read.
        begun: Set when a write begins.
        go_on: Writes wait until this is set.
    """

    def __init__(self, stored: FakeInstances) -> None:
        self.stored = stored
        self.faults: list[Fault] = []
        self.writes: list[SlotWrite] = []
        self.reads: list[str] = []
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()
        self.sees_all()

    def sees_all(self) -> None:
        """The watch brings everything."""
        self._known: dict[str, Mapping[str, object]] = dict(self.stored.bodies)

    def views(self) -> Mapping[InstanceName, InstanceSlots]:
        return by_name(instance_slots(body) for body in self._known.values())

    async def read(self, namespace: str, name: InstanceName) -> None:
        self.reads.append(name)
        if name in self.stored.bodies:
            self._known[name] = self.stored.bodies[name]
        else:
            self._known.pop(name, None)

    async def write(self, write: SlotWrite) -> bool:
        self.writes.append(write)
        self.begun.set()
        await self.go_on.wait()
        fault = self.faults.pop(0)(self.stored, write) if self.faults else None
        if isinstance(fault, ApiError):
            raise fault
        try:
            self.stored.write([write])
        except (ConflictError, KeyError):
            await self.read(write.namespace, write.instance)
            return False
        self._known[write.instance] = self.stored.bodies[write.instance]
        return True


class Followed:
    """What has a store that is in sync from the start, and is it itself."""

    def __init__(self) -> None:
        self.store = self
        self.synced = asyncio.Event()
        self.synced.set()
        self.listeners: list[Callable[[Change[Any]], None]] = []

    async def run(self) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError("cancelled before")

    def subscribe(self, listener: Callable[[Change[Any]], None]) -> None:
        self.listeners.append(listener)


class FollowedSlots(FakeSlotObjects, Followed):
    """Instances that are followed."""

    def __init__(self, stored: FakeInstances) -> None:
        Followed.__init__(self)
        FakeSlotObjects.__init__(self, stored)

    def by_hand(self, slot: str, value: str | None) -> None:
        """Write a slot as somebody else, and have the watch bring it."""
        name = InstanceName(slot.rpartition("-")[0])
        old = self.views()[name]
        self.stored.by_hand(slot, value)
        self.sees_all()
        for listener in self.listeners:
            listener(Modified(ObjectKey("default", name), old, self.views()[name]))


class FollowedPods(Followed):
    """The pods of the node."""

    def __init__(self) -> None:
        super().__init__()
        self.pods: tuple[NodePod, ...] = ()

    def known(self) -> NodePods:
        return NodePods(asyncio.get_running_loop().time(), self.pods)

    async def read(self) -> NodePods:
        return self.known()

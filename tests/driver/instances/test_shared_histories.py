"""Histories of a shared Instance: whatever happens, in the end it says who sees the device.

Three nodes and the shared driver write one object, each from a view that may be old, and each may
be killed between any two writes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from driver.api import DEVICE_DIGEST, Configuration, NodeName
from driver.devices import device_digest
from driver.instances.apiserver_instances import delete_instance, write_instances
from driver.instances.instances import instance_of
from driver.instances.shared import plan_shared, shared_body
from driver.instances.stored.objects import DeleteInstance, stored_instance
from driver.instances.unseen_instances import (
    PatchInstance,
    Surroundings,
    observed_instance,
    plan_unseen,
)
from kube.calls.api import ApiClient, ConflictError, NotFoundError, WriteOptions
from kube.kinds import INSTANCES
from tests.driver.builders import NOW, a_configuration, a_device
from tests.fakes.instances import FakeInstanceServer
from tests.fakes.killed import KilledError

NODES = tuple(map(NodeName, ("node-a", "node-b", "node-c")))
NAME = "echo-8120fe"
SLOT = ("spec", "deviceUsage", f"{NAME}-0")
GRACE = timedelta(minutes=5)

which = st.integers(0, len(NODES) - 1)
kills = st.sampled_from([None, None, None, 0, 1, 2])


@dataclass
class FakeNode:
    """What one node's driver knows."""

    name: NodeName
    configuration: Configuration
    sees: bool = False
    is_heard: bool = True
    view: list[dict[str, Any]] = field(default_factory=list)

    def wanted(self) -> list[Any]:
        if not (self.sees and self.is_heard):
            return []
        instance = instance_of(a_device("foo0"), self.configuration, None)
        return [shared_body(instance, self.configuration)]


class Histories(RuleBasedStateMachine):
    """Nodes that come to see a device and lose it, and an administrator who uses its slot."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.server = FakeInstanceServer(now=lambda: self.now.isoformat())
        self.client: ApiClient = self.server  # type: ignore[assignment]
        self.configuration = a_configuration("echo", offline_grace_period=GRACE)
        self.nodes = [FakeNode(name, self.configuration) for name in NODES]
        self.shared_view: list[dict[str, Any]] = []
        self.used: str | None = None
        self.loop = asyncio.Runner()

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.loop.close()

    @rule(index=which, sees=st.booleans())
    def discover(self, index: int, sees: bool) -> None:
        self.nodes[index].sees = sees

    @rule(index=which, is_heard=st.booleans())
    def hear(self, index: int, is_heard: bool) -> None:
        self.nodes[index].is_heard = is_heard

    @rule(capacity=st.integers(1, 3), floors=st.sampled_from([{}, {"FLOOR": "1"}, {"OLD": "x"}]))
    def configure(self, capacity: int, floors: dict[str, str]) -> None:
        self.configuration = a_configuration(
            "echo", capacity=capacity, broker_properties=floors, offline_grace_period=GRACE
        )

    @rule(index=which)
    def see_configuration(self, index: int) -> None:
        self.nodes[index].configuration = self.configuration

    @rule(index=which)
    def watch(self, index: int) -> None:
        self.nodes[index].view = self.server.bodies()

    @rule()
    def watch_shared(self) -> None:
        self.shared_view = self.server.bodies()

    @rule(index=which, kill=kills)
    def write(self, index: int, kill: int | None) -> None:
        """A pass of a node; of others' entries it changes none."""
        node = self.nodes[index]
        others = self.seeing() - {node.name}
        self.server.kill_after, self.server.writer = kill, node.name
        with suppress(KilledError, ConflictError, NotFoundError):
            self.loop.run(self._write(node))
        self.server.kill_after = self.server.writer = None
        assert self.seeing() - {node.name} == others

    async def _write(self, node: FakeNode) -> None:
        unheard = () if node.is_heard else (node.configuration.name,)
        stored = [stored_instance(body) for body in node.view]
        decisions = plan_shared(node.wanted(), stored, node.name, unheard=unheard)
        await write_instances(self.client, decisions, node.name, lambda _: None)

    @rule(kill=kills)
    def clear_up(self, kill: int | None) -> None:
        """A pass of the shared driver."""
        self.server.kill_after = kill
        with suppress(KilledError, ConflictError, NotFoundError):
            self.loop.run(self._clear_up())
        self.server.kill_after = None

    async def _clear_up(self) -> None:
        plan = plan_unseen(
            map(observed_instance, self.shared_view),
            Surroundings(
                configurations={self.configuration.name: self.configuration},
                existing=NODES,
                gone=(),
                claimed=(),
            ),
            now=self.now,
        )
        path, options = INSTANCES.at(NAME, "default"), WriteOptions(field_manager="shared")
        for decision in plan.decisions:
            match decision:
                case PatchInstance(patch=patch):
                    await self.client.merge_patch(path, patch, options=options)
                case DeleteInstance():
                    await delete_instance(self.client, decision)

    @rule(minutes=st.sampled_from([1, 3, 6]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule()
    def all_leave(self) -> None:
        """Nobody sees the device for so long that the shared driver is about to remove it."""
        for index, node in enumerate(self.nodes):
            node.sees, node.is_heard = False, True
            self.watch(index)
            self.write(index, None)
        self.watch_shared()
        self.clear_up(None)
        self.wait(6)
        self.watch_shared()

    @rule(index=which, capacity=st.integers(1, 3))
    def return_otherwise(self, index: int, capacity: int) -> None:
        """All leave, and who sees the device next has another body for it."""
        self.all_leave()
        self.configure(capacity, {})
        self.see_configuration(index)
        self.discover(index, sees=True)

    @rule(value=st.sampled_from([None, "node-a", f"C:{NAME}:node-b"]))
    def use(self, value: str | None) -> None:
        if self.server.bodies():
            self.server.by_hand(NAME, SLOT, value)
            self.used = value

    def seeing(self) -> set[NodeName]:
        return {NodeName(n) for body in self.server.bodies() for n in body["spec"]["nodes"]}

    @invariant()
    def a_used_slot_keeps_its_instance(self) -> None:
        usage = {k: v for b in self.server.bodies() for k, v in b["spec"]["deviceUsage"].items()}
        assert usage == ({} if self.used is None else {SLOT[-1]: self.used})

    def settle(self) -> None:
        """When everybody has seen everything, the object says what is so."""
        for node in self.nodes:
            node.is_heard, node.configuration = True, self.configuration
        for _ in range(4):
            for index in range(len(self.nodes)):
                self.watch(index)
                self.write(index, None)
        for _ in range(3):
            self.now += 2 * GRACE
            self.watch_shared()
            self.clear_up(None)
        sees = {node.name for node in self.nodes if node.sees}
        assert self.seeing() == sees
        if not sees and self.used is None:
            assert self.server.bodies() == []
        if sees:
            self._check_body()

    def _check_body(self) -> None:
        (body,) = self.server.bodies()
        assert body["spec"]["capacity"] == self.configuration.capacity
        properties = {**a_device("foo0").properties, **self.configuration.broker_properties}
        assert body["spec"]["brokerProperties"] == properties
        assert body["metadata"]["annotations"] == {DEVICE_DIGEST: device_digest("foo0", None)}


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=30, stateful_step_count=25)

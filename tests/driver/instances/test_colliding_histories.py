"""Histories of devices whose hashes collide: no two are ever one Instance.

One is without an Instance only where another has or had the name.

Two devices that several nodes see, and one of each of two nodes, come and go; nodes start anew,
write from views that may be old, and may be killed between any two writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from driver.api import DEVICE_DIGEST, InstanceName, NodeName
from driver.devices import device_digest, device_hash
from driver.instances.inventory import Heard, Inventory, inventory_of
from driver.instances.node_instances import NodeInstances
from kube.calls.api import ApiClient, ConflictError, NotFoundError
from tests.driver.builders import a_device
from tests.driver.colliding_devices import COLLIDING, colliding
from tests.driver.instances.test_inventory import a_verdict
from tests.fakes.instances import FakeInstanceServer, FakeInstanceStore
from tests.fakes.killed import KilledError

A, B, C = map(NodeName, ("node-a", "node-b", "node-c"))
LOCAL = dict(zip((A, B), colliding(A, B), strict=True))
CAMERAS = a_verdict("camera")

nodes = st.sampled_from([A, B, C])
kills = st.sampled_from([None, None, None, 0, 1, 2])


class FakeNode:
    """One node's driver."""

    def __init__(self, client: ApiClient, name: NodeName) -> None:
        self._client, self.name = client, name
        self.shared: set[str] = set()
        self.has_local = False
        self.local = LOCAL.get(name, "")
        self.store = FakeInstanceStore(name)
        self.start()

    def start(self, on_taken: Callable[[], None] = lambda: None) -> None:
        self.inventory: Inventory | None = None
        self.instances = NodeInstances(self._client, self.name, on_taken)
        self.instances.store = cast(Any, self.store)

    async def work(self) -> None:
        """Decide anew, and write."""
        local = [a_device(self.local)] if self.has_local else ()
        shared = [a_device(id_) for id_ in sorted(self.shared)]
        heard = {CAMERAS.name: Heard(CAMERAS.uid, tuple(local), tuple(shared))}
        taken = self.instances.names(self.inventory)
        self.inventory = inventory_of([CAMERAS], heard, self.name, taken)
        self.instances.decide(self.inventory)
        await self.instances.reconcile()

    def devices(self) -> list[tuple[str, NodeName | None]]:
        own: list[tuple[str, NodeName | None]] = [(self.local, self.name)] if self.has_local else []
        return [*own, *((id_, None) for id_ in self.shared)]

    def digests(self) -> set[str]:
        return {device_digest(id_, node) for id_, node in self.devices()}

    def named(self) -> dict[str, InstanceName]:
        return {i.device: i.name for i in self.inventory.instances} if self.inventory else {}


class Histories(RuleBasedStateMachine):
    """See above."""

    def __init__(self) -> None:
        super().__init__()
        self.server = FakeInstanceServer()
        client = cast(ApiClient, self.server)
        self.nodes = {name: FakeNode(client, name) for name in (A, B, C)}
        self.digests: dict[str, str | None] = {}
        self.loop = asyncio.Runner()

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.loop.close()

    @rule(name=nodes, ids=st.sets(st.sampled_from(COLLIDING)), has_local=st.booleans())
    def discover(self, name: NodeName, ids: set[str], has_local: bool) -> None:
        self.nodes[name].shared = ids
        self.nodes[name].has_local = has_local and name in LOCAL

    @rule(name=nodes)
    def start_anew(self, name: NodeName) -> None:
        self.nodes[name].start()
        self.watch(name)

    @rule(name=nodes)
    def watch(self, name: NodeName) -> None:
        self.nodes[name].store.see(self.server.bodies())

    @rule(name=nodes, kill=kills)
    def write(self, name: NodeName, kill: int | None) -> None:
        node = self.nodes[name]
        before = self.holding(node)
        self.server.kill_after = kill
        with suppress(KilledError, ConflictError, NotFoundError):
            self.loop.run(node.work())
        self.server.kill_after = None
        for digest, instance in node.named().items():
            assert before.isdisjoint({(digest, other) for other in self.names() - {instance}}), (
                "a device keeps its Instance"
            )

    def names(self) -> set[InstanceName]:
        return {body["metadata"]["name"] for body in self.server.bodies()}

    def holding(self, node: FakeNode) -> set[tuple[str, InstanceName]]:
        """Devices that this node sees, and is entered for, where the Instance is the only one."""
        found = [(b["metadata"]["annotations"][DEVICE_DIGEST], b) for b in self.said()]
        digests = [digest for digest, _ in found]
        return {
            (digest, body["metadata"]["name"])
            for digest, body in found
            if node.name in body["spec"]["nodes"]
            and digest in node.digests()
            and digests.count(digest) == 1
            and any(body["metadata"]["name"] == b["metadata"]["name"] for b in node.store.bodies)
        }

    def said(self) -> list[dict[str, Any]]:
        return [b for b in self.server.bodies() if "annotations" in b["metadata"]]

    @invariant()
    def an_instance_is_of_one_device_for_ever(self) -> None:
        for body in self.server.bodies():
            digest = (body["metadata"].get("annotations") or {}).get(DEVICE_DIGEST)
            assert digest or not body["spec"]["nodes"], "it says so as soon as it is on a node"
            assert self.digests.setdefault(body["metadata"]["uid"], digest) in (None, digest)
            self.digests[body["metadata"]["uid"]] = digest

    def settle(self) -> None:
        """All have seen everything: a device is one Instance, on the nodes that see it, or none."""
        for _ in range(5):
            for name in self.nodes:
                self.watch(name)
                self.write(name, None)
        found: dict[str, list[set[str]]] = {}
        for body in self.said():
            if body["spec"]["nodes"]:
                digest = body["metadata"]["annotations"][DEVICE_DIGEST]
                found.setdefault(digest, []).append(set(body["spec"]["nodes"]))
        seen = {device for node in self.nodes.values() for device in node.devices()}
        assert found.keys() <= {device_digest(*device) for device in seen}
        for device in seen:
            nodes = {node.name for node in self.nodes.values() if device in node.devices()}
            there = found.get(device_digest(*device))
            assert there == [nodes] or (there is None and self.is_refused(*device))

    def is_refused(self, id_: str, where: NodeName | None) -> bool:
        """Whether another device has the name, or had it on a node that nobody else watches."""
        name = f"{CAMERAS.name}-{device_hash(id_, where)}"
        digests = {
            body["metadata"]["annotations"][DEVICE_DIGEST]
            for body in self.said()
            if body["metadata"]["name"] == name
        }
        unwatched = (n for node in self.nodes.values() for n in node.instances.of_others.values())
        return bool(digests - {device_digest(id_, where)}) or any(name in n for n in unwatched)


async def test_two_nodes_that_name_two_devices_alike_at_one_moment_do_not_share_one() -> None:
    server = FakeInstanceServer()
    first, second = (FakeNode(cast(ApiClient, server), name) for name in (A, C))
    first.shared, second.shared = {COLLIDING[0]}, {COLLIDING[1]}

    await first.work()
    before = server.bodies()
    await second.work()
    assert server.bodies() == before, "the first is left as it is"
    await second.work()
    assert server.bodies() == before
    assert second.inventory
    assert [c.device for c in second.inventory.collisions[CAMERAS.name]] == [COLLIDING[1]]


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "local"])
async def test_an_instance_of_a_node_that_nobody_else_watches_is_not_taken(is_shared: bool) -> None:
    server = FakeInstanceServer()
    local, other = colliding(A, None if is_shared else B)
    owner, rival = (FakeNode(cast(ApiClient, server), name) for name in (A, B))
    owner.has_local, rival.has_local, rival.shared = True, not is_shared, set()
    owner.local, rival.local = local, other
    if is_shared:
        rival.shared = {other}
    asked: list[bool] = []
    rival.start(on_taken=lambda: asked.append(True))

    await owner.work()
    before = server.bodies()
    await rival.work()
    assert server.bodies() == before
    assert asked == [True]
    await rival.work()

    assert server.bodies() == before
    assert rival.inventory
    assert rival.inventory.instances == ()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=25)

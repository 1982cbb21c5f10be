"""Instances of several Configurations: whose are written first, and what comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from driver.api import ConfigurationName
from driver.instances import node_instances
from driver.instances.inventory import Heard, Inventory, inventory_of
from driver.instances.node_instances import NodeInstances, Times
from driver.instances.stored.objects import StoredInstance, stored_instance
from kube.calls.api import ApiClient, UnavailableError
from kube.objects import JsonObject, ObjectKey
from kube.resources import ObjectPath
from kube.stores.api import Deleted
from tests.driver.builders import NODE, a_device
from tests.driver.instances.test_inventory import a_verdict


class FakeServer:
    """Takes Instances, and lets a test do something after each."""

    def __init__(self) -> None:
        self.stored: dict[str, JsonObject] = {}
        self.after: Callable[[], None] = lambda: None
        self.fails: Callable[[str], bool] = lambda _: False

    async def apply(self, path: ObjectPath, body: Mapping[str, Any], **_: Any) -> JsonObject:
        if self.fails(path.name):
            raise UnavailableError("away")
        uid, version = f"uid-of-{path.name}", str(len(self.stored) + 1)
        metadata = {**body["metadata"], "uid": uid, "resourceVersion": version}
        self.stored[path.name] = {**body, "metadata": metadata}
        self.after()
        return self.stored[path.name]

    def configurations(self) -> list[str]:
        """Of the Instances, in the order of their writes."""
        return [str(body["spec"]["configurationName"]) for body in self.stored.values()]


class FakeStore:
    """What a node has seen of the API server: the answers to its writes."""

    def __init__(self) -> None:
        self.found: dict[str, StoredInstance] = {}

    def note(self, body: JsonObject) -> None:
        self.found[body["metadata"]["name"]] = stored_instance(body)

    def __iter__(self) -> Iterator[StoredInstance]:
        return iter(self.found.values())


def an_inventory(**devices: int) -> Inventory:
    """Configurations with so many devices each."""
    verdicts = [a_verdict(name) for name in devices]
    heard = {
        ConfigurationName(verdict.name): Heard(
            verdict.uid,
            tuple(a_device(f"{verdict.name}-{n}") for n in range(devices[verdict.name])),
        )
        for verdict in verdicts
    }
    return inventory_of(verdicts, heard, NODE)


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
async def instances(server: FakeServer) -> NodeInstances:
    made = NodeInstances(cast(ApiClient, server), NODE)
    made.store = cast(Any, FakeStore())
    return made


async def test_few_of_one_are_written_among_the_first_beside_many_of_another(
    server: FakeServer, instances: NodeInstances
) -> None:
    instances.decide(an_inventory(many=300, one=1))

    await instances.reconcile()

    assert server.configurations().index("one") < node_instances.WRITES_A_STEP
    assert len(server.stored) == 301


async def test_what_is_new_is_written_before_the_rest_of_what_was_decided_before(
    server: FakeServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_instances, "TIMES", Times(shortest_write=0.0))
    instances.decide(an_inventory(many=300))

    def one_comes() -> None:
        if len(server.stored) == 40:
            instances.decide(an_inventory(many=300, one=1))

    server.after = one_comes
    await instances.reconcile()
    assert len(server.stored) < 40 + 2 * node_instances.WRITES_A_STEP

    await instances.reconcile()

    assert server.configurations().index("one") < 40 + 3 * node_instances.WRITES_A_STEP
    assert len(server.stored) == 301


async def test_decisions_that_never_end_keep_nobody_from_being_written(
    server: FakeServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_instances, "TIMES", Times(shortest_write=0.0))
    server.after = lambda: instances.decide(an_inventory(many=300))
    instances.decide(an_inventory(many=300))

    for _ in range(300 // node_instances.WRITES_A_STEP + 1):
        await instances.reconcile()

    assert len(server.stored) == 300


async def test_no_instance_is_begun_while_slices_are_written(
    server: FakeServer, instances: NodeInstances
) -> None:
    instances.decide(an_inventory(many=10))

    with instances.yielding():
        writing = asyncio.create_task(instances.reconcile())
        for _ in range(20):
            await asyncio.sleep(0)
        assert server.stored == {}
    await writing

    assert len(server.stored) == 10


async def test_slices_that_are_written_without_end_stop_no_instance(
    server: FakeServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_instances, "TIMES", Times(longest_yield=0.0))
    instances.decide(an_inventory(many=40))

    with instances.yielding():
        await instances.reconcile()

    assert len(server.stored) == 40


async def test_one_that_fails_keeps_no_other_from_being_written(
    server: FakeServer, instances: NodeInstances
) -> None:
    inventory = an_inventory(many=100)
    broken = inventory.local[0].name
    server.fails = lambda name: name == broken
    instances.decide(inventory)

    with pytest.raises(UnavailableError):
        await instances.reconcile()

    assert len(server.stored) == 99


async def test_instances_that_go_with_their_configuration_cost_no_reconcile(
    server: FakeServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances.decide(an_inventory(many=300, one=1))
    await instances.reconcile()
    instances.decide(an_inventory(one=1))
    asked: list[str] = []
    for stored in instances.store:
        configuration = stored.configuration
        monkeypatch.setattr(instances.queue, "add", lambda _, c=configuration: asked.append(c))
        instances.on_change(Deleted(ObjectKey(stored.namespace, stored.name), stored))

    assert asked == ["one"], "it is there, and is written anew"


async def test_what_comes_while_many_are_planned_does_not_wait_for_their_writes(
    server: FakeServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many are planned in a thread, so that anything may come meanwhile."""
    monkeypatch.setattr(node_instances, "TIMES", Times(shortest_write=0.0))
    planned: list[int] = []

    async def worked_out(many: int, function: Callable[..., Any], *values: Any) -> Any:
        planned.append(many)
        if len(planned) == 1:
            instances.decide(an_inventory(many=300, one=1))
        return function(*values)

    monkeypatch.setattr(node_instances, "in_thread_if_many", worked_out)
    instances.decide(an_inventory(many=300))
    await instances.reconcile()
    await instances.reconcile()

    assert planned == [300, 301]
    assert server.configurations().index("one") < node_instances.WRITES_A_STEP

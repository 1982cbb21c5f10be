"""Instances of several Configurations: whose are written first, and what comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from driver.api import ConfigurationName
from driver.instances import node_instances
from driver.instances.inventory import Heard, Inventory, inventory_of
from driver.instances.node_instances import NodeInstances, Times
from kube.calls.api import ApiClient, UnavailableError
from kube.objects import ObjectKey
from kube.resources import ObjectPath
from kube.stores.api import Deleted
from tests.driver.builders import NODE, a_device
from tests.driver.instances.test_inventory import a_verdict
from tests.fakes.instances import FakeInstanceServer, FakeInstanceStore


class WatchedServer(FakeInstanceServer):
    """Lets a test do something after each write, or has it fail."""

    def __init__(self) -> None:
        super().__init__()
        self.after: Callable[[], None] = lambda: None
        self.fails: Callable[[str], bool] = lambda _: False

    async def apply(self, path: ObjectPath, body: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        if self.fails(path.name):
            raise UnavailableError("away")
        stored = await super().apply(path, body, **more)
        self.after()
        return stored

    def configurations(self) -> list[str]:
        """Of the Instances, in the order of their writes."""
        bodies = sorted(self.bodies(), key=lambda body: int(body["metadata"]["resourceVersion"]))
        return [str(body["spec"]["configurationName"]) for body in bodies]


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
def server() -> WatchedServer:
    return WatchedServer()


@pytest.fixture
async def instances(server: WatchedServer) -> NodeInstances:
    made = NodeInstances(cast(ApiClient, server), NODE)
    made.store = cast(Any, FakeInstanceStore())
    return made


async def test_few_of_one_are_written_among_the_first_beside_many_of_another(
    server: WatchedServer, instances: NodeInstances
) -> None:
    instances.decide(an_inventory(many=300, one=1))

    await instances.reconcile()

    assert server.configurations().index("one") < node_instances.WRITES_A_STEP
    assert server.made == 301


async def test_what_is_new_is_written_before_the_rest_of_what_was_decided_before(
    server: WatchedServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_instances, "TIMES", Times(shortest_write=0.0))
    instances.decide(an_inventory(many=300))

    def one_comes() -> None:
        if server.made == 40:
            instances.decide(an_inventory(many=300, one=1))

    server.after = one_comes
    await instances.reconcile()
    assert server.made < 40 + 2 * node_instances.WRITES_A_STEP

    await instances.reconcile()

    assert server.configurations().index("one") < 40 + 3 * node_instances.WRITES_A_STEP
    assert server.made == 301


async def test_decisions_that_never_end_keep_nobody_from_being_written(
    server: WatchedServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_instances, "TIMES", Times(shortest_write=0.0))
    server.after = lambda: instances.decide(an_inventory(many=300))
    instances.decide(an_inventory(many=300))

    for _ in range(300 // node_instances.WRITES_A_STEP + 1):
        await instances.reconcile()

    assert server.made == 300


async def test_no_instance_is_begun_while_slices_are_written(
    server: WatchedServer, instances: NodeInstances
) -> None:
    instances.decide(an_inventory(many=10))

    with instances.yielding():
        writing = asyncio.create_task(instances.reconcile())
        for _ in range(20):
            await asyncio.sleep(0)
        assert server.made == 0
    await writing

    assert server.made == 10


async def test_slices_that_are_written_without_end_stop_no_instance(
    server: WatchedServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_instances, "TIMES", Times(longest_yield=0.0))
    instances.decide(an_inventory(many=40))

    with instances.yielding():
        await instances.reconcile()

    assert server.made == 40


async def test_one_that_fails_keeps_no_other_from_being_written(
    server: WatchedServer, instances: NodeInstances
) -> None:
    inventory = an_inventory(many=100)
    broken = inventory.local[0].name
    server.fails = lambda name: name == broken
    instances.decide(inventory)

    with pytest.raises(UnavailableError):
        await instances.reconcile()

    assert server.made == 99


async def test_instances_that_go_with_their_configuration_cost_no_reconcile(
    server: WatchedServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
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
    server: WatchedServer, instances: NodeInstances, monkeypatch: pytest.MonkeyPatch
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

"""What a node writes of Instances that several nodes hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.instances.apiserver_instances import delete_instance, instances_of_node, write_instances
from driver.instances.instances import instance_of
from driver.instances.shared import (
    JoinInstance,
    LeaveInstance,
    SharedDecision,
    entry_body,
    plan_shared,
    shared_body,
)
from driver.instances.stored.objects import DeleteInstance, StoredInstance, stored_instance
from kube.calls.api import ApiClient, ConflictError, WriteOptions
from kube.kinds import INSTANCES
from tests.driver.builders import a_configuration, a_device
from tests.fakes.instances import FakeInstanceServer

A, B, C = NodeName("node-a"), NodeName("node-b"), NodeName("node-c")


def a_body(device_id: str = "foo0", **overrides: Any) -> Mapping[str, Any]:
    configuration = a_configuration("echo", **overrides)
    return shared_body(instance_of(a_device(device_id), configuration, None), configuration)


def without_device(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that one node writes for all."""
    return {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "annotations"}}


def as_stored(body: Mapping[str, Any], *nodes: NodeName) -> StoredInstance:
    """What the API server returns after these nodes entered."""
    metadata = {**body["metadata"], "uid": "uid-1", "resourceVersion": "7"}
    spec = {**body["spec"], "nodes": list(nodes), "deviceUsage": {"x-0": "node-z"}}
    return stored_instance({"metadata": metadata, "spec": spec})


def plan(
    *wanted: Mapping[str, Any],
    node: NodeName = B,
    stored: tuple[StoredInstance, ...] = (),
    unheard: frozenset[ConfigurationName] = frozenset(),
) -> tuple[SharedDecision, ...]:
    return plan_shared(wanted, stored, node, unheard=unheard)


def test_the_body_names_no_node_and_no_slot() -> None:
    body = a_body()

    assert body["metadata"]["name"] == "echo-8120fe"
    assert body["metadata"]["labels"] == {"moorage.dev/node": ""}
    assert body["spec"].keys().isdisjoint({"nodes", "deviceUsage"})
    assert body["spec"]["shared"] is True


@pytest.mark.parametrize(("before", "claimable"), [(None, True), (True, False)])
def test_a_body_goes_on_saying_by_which_path_the_device_is_offered(
    before: bool | None, claimable: bool
) -> None:
    stored = () if before is None else (replace(as_stored(a_body(capacity=2)), claimable=before),)

    (join,) = plan_shared([a_body()], stored, B, unheard=frozenset(), claimable=claimable)

    assert isinstance(join, JoinInstance)
    assert join.body is not None
    assert join.body["metadata"]["annotations"]["moorage.dev/offered-through"] == "dra"


def test_who_sees_a_device_first_makes_its_instance_and_enters() -> None:
    body, name = a_body(), InstanceName("echo-8120fe")

    join = JoinInstance(namespace="default", name=name, uid=None, body=body, enter=True)
    assert plan(body) == (join,)


def test_who_is_entered_and_agrees_has_nothing_to_write() -> None:
    assert plan(a_body(), stored=(as_stored(a_body(), B, C),)) == ()


def test_the_first_by_name_writes_a_body_that_is_not_right() -> None:
    (join,) = plan(a_body(capacity=3), node=A, stored=(as_stored(a_body(), A, B),))

    assert isinstance(join, JoinInstance)
    assert join.body == a_body(capacity=3)
    assert not join.enter


def test_any_other_writes_its_entry_only() -> None:
    (join,) = plan(a_body(capacity=3), node=B, stored=(as_stored(a_body(), A),))

    assert isinstance(join, JoinInstance)
    assert (join.body, join.enter) == (None, True)
    assert plan(a_body(capacity=3), node=B, stored=(as_stored(a_body(), A, B),)) == ()


def test_who_no_longer_sees_the_device_leaves_and_that_is_all() -> None:
    left = LeaveInstance("default", as_stored(a_body()).name, "uid-1")

    assert plan(stored=(as_stored(a_body(), A, B),)) == (left,)
    assert plan(stored=(as_stored(a_body(), A),)) == ()
    assert plan(stored=(as_stored(a_body()),)) == ()


def test_not_heard_is_not_gone() -> None:
    stored = (as_stored(a_body(), B),)

    assert plan(stored=stored, unheard=frozenset({ConfigurationName("echo")})) == ()


def test_an_instance_that_does_not_say_its_device_is_told_it_by_the_first() -> None:
    olds = as_stored(without_device(a_body()), A, B)

    (says,) = plan(a_body(), node=A, stored=(olds,))

    assert isinstance(says, JoinInstance)
    assert (says.body, says.enter, says.is_known) == (a_body(), False, False)
    assert plan(a_body(), node=B, stored=(olds,)) == ()
    (joins,) = plan(a_body(), node=C, stored=(olds,))
    assert isinstance(joins, JoinInstance)
    assert (joins.body, joins.enter) == (None, True)


def test_the_instance_of_another_device_is_left_and_not_written() -> None:
    another = as_stored({**a_body(), "metadata": a_body("foo1")["metadata"]}, A, B)
    another = replace(another, name=InstanceName("echo-8120fe"))

    assert plan(a_body(), node=C, stored=(another,)) == ()
    left = LeaveInstance("default", another.name, "uid-1")
    assert plan(a_body(), node=B, stored=(another,)) == (left,)


def client_of(server: FakeInstanceServer) -> ApiClient:
    return server  # type: ignore[return-value]


async def write(server: FakeInstanceServer, node: NodeName, *wanted: Mapping[str, Any]) -> None:
    """One pass of a node."""
    server.writer = node
    stored = [stored_instance(body) for body in server.bodies()]
    decisions = plan_shared(wanted, stored, node, unheard=())
    await write_instances(client_of(server), decisions, node, lambda _: None)


def only(server: FakeInstanceServer) -> dict[str, Any]:
    (body,) = server.bodies()
    return body


async def test_a_property_that_the_next_writer_does_not_have_is_gone() -> None:
    server = FakeInstanceServer()
    await write(server, B, a_body(broker_properties={"OLD": "1"}))
    await write(server, A, a_body())

    assert "OLD" not in only(server)["spec"]["brokerProperties"]
    await write(server, A)
    await write(server, B, a_body(capacity=4))
    assert only(server)["spec"]["capacity"] == 4
    assert only(server)["spec"]["nodes"] == ["node-b"]


async def test_who_is_first_enters_before_it_says_what_the_device_is() -> None:
    """The policy about Instances lets nobody write one that he does not say he sees."""
    server = FakeInstanceServer()
    await write(server, B, a_body())
    await write(server, B)

    for node, capacity in ((C, 2), (A, 3)):
        await write(server, node, a_body(capacity=capacity))
        assert only(server)["spec"]["capacity"] == capacity

    assert set(only(server)["spec"]["nodes"]) == {A, C}


async def test_an_entry_that_somebody_else_wrote_as_well_is_removed() -> None:
    server = FakeInstanceServer()
    await write(server, A, a_body())
    await write(server, B, a_body())
    agents = entry_body("default", InstanceName("echo-8120fe"), B)
    path = INSTANCES.at("echo-8120fe", "default")
    await server.apply(path, agents, force=True, options=WriteOptions(field_manager="node-b"))

    await write(server, B)

    assert only(server)["spec"]["nodes"] == ["node-a"]


async def test_slots_are_left_alone() -> None:
    server = FakeInstanceServer()
    await write(server, A, a_body())
    server.by_hand("echo-8120fe", ("spec", "deviceUsage", "echo-8120fe-0"), "node-z")

    await write(server, A, a_body(capacity=5))
    await write(server, B, a_body())
    await write(server, A)

    assert only(server)["spec"]["deviceUsage"] == {"echo-8120fe-0": "node-z"}


async def test_an_instance_that_got_a_user_meanwhile_is_not_removed() -> None:
    server = FakeInstanceServer()
    await write(server, A, a_body())
    seen = stored_instance(only(server))
    server.by_hand("echo-8120fe", ("spec", "deviceUsage", "echo-8120fe-0"), "node-a")

    with pytest.raises(ConflictError):
        await delete_instance(
            client_of(server),
            DeleteInstance(seen.namespace, seen.name, seen.uid, seen.resource_version),
        )

    assert only(server)["metadata"]["uid"] == seen.uid


async def test_who_would_enter_an_instance_that_is_gone_makes_none() -> None:
    server = FakeInstanceServer()
    join = plan(a_body(), stored=(as_stored(a_body(), A),))

    with pytest.raises(ConflictError):
        await write_instances(client_of(server), join, B, lambda _: None)

    assert server.bodies() == []


async def test_an_instance_that_is_refused_keeps_no_other_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = FakeInstanceServer()
    odd = a_body("foo1")
    odd = {**odd, "spec": {k: v for k, v in odd["spec"].items() if k != "capacity"}}

    await write(server, A, odd, a_body("foo0"))

    assert [body["metadata"]["name"] for body in server.bodies()] == ["echo-8120fe"]
    assert "echo-a19705: a required field is missing" in caplog.text


def test_a_node_watches_its_own_and_the_shared_ones() -> None:
    assert instances_of_node(A).label_selector == "moorage.dev/node in (,node-a)"

"""Devices with who uses their slots, and handlers with what they do where."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scheduler_plugin.asking.tables import device_table, handler_table, objects
from scheduler_plugin.viewing.device_rows import DeviceRow, DeviceUser, device_rows
from scheduler_plugin.viewing.handler_rows import HandlerRow, handler_rows
from tests.fakes.taint_rules import a_rule
from tests.scheduler_plugin.asking.test_snapshots import (
    a_configuration,
    a_device,
    a_slice_object,
    an_instance,
)
from tests.scheduler_plugin.builders import a_claim as a_claim_view
from tests.scheduler_plugin.builders import a_claim_object, a_pod, a_queue, a_result, a_world, put
from tests.scheduler_plugin.viewing.test_rows import shared_world, shown

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NODE_NAMES = {"key": "metadata.name", "operator": "In"}
SLOTS: dict[str, Any] = {"capacity": {"slots": {"value": "4"}}}


def rows(slices: list[Any], instances: list[Any], claims: list[Any], world: Any) -> list[DeviceRow]:
    return device_rows(slices, instances, claims, world)


def test_a_device_says_where_it_is_and_which_claim_uses_how_many_slots() -> None:
    claim = {"queue": "vision", "results": [a_result(slots="3")], "pods": ["a", "b"]}
    world = shared_world()
    world.put_claim(a_claim_view("cam", **claim))
    spec = {"nodeSelectorTerms": [{"matchExpressions": [{**NODE_NAMES, "values": ["m", "n"]}]}]}

    (row,) = rows(
        [a_slice_object(a_device(**SLOTS), nodeSelector=spec)],
        [an_instance()],
        [a_claim_object("cam", **claim)],
        world,
    )

    assert (row.path, row.configuration, row.instance) == ("DRA", "onvif", "onvif-aaaaaa")
    assert (row.nodes, row.state, row.slots, row.used) == (("m", "n"), "Ready", 4, 3)
    pods = ("default/a", "default/b")
    assert row.users == (
        DeviceUser(
            what="ResourceClaim default/cam", slots=3, payer=a_queue("vision").name, pods=pods
        ),
    )


def test_a_device_that_claims_divide_says_how_much_of_each_capacity_is_used() -> None:
    capacity = {"memory": {"value": "80Gi"}}
    shared = {"name": "gpu", "capacity": capacity, "allowMultipleAllocations": True}
    spec = {"driver": "gpu.example.com", "pool": {"name": "a"}, "nodeName": "n"}
    gpus = {"metadata": {"name": "s"}, "spec": {**spec, "devices": [shared]}}
    world, claims = shared_world(), []
    for name, memory in (("one", "10Gi"), ("two", "20Gi")):
        result = a_result(
            driver="gpu.example.com", pool="a", device="gpu", consumedCapacity={"memory": memory}
        )
        claims.append(a_claim_object(name, queue="vision", results=[result]))
        world.put_claim(a_claim_view(name, queue="vision", results=[result]))

    (row,) = rows([gpus], [], claims, world)

    assert objects([row])[0]["capacities"] == ({"name": "memory", "used": "30Gi", "has": "80Gi"},)
    assert "memory 30Gi/80Gi" in shown(device_table([row], NOW))


def test_a_device_that_a_rule_selects_is_tainted_on_either_path_and_the_rule_is_named() -> None:
    world = a_world()
    world.put_taint_rule(a_rule(pool="onvif", device="onvif-aaaaaa"))
    world.put_taint_rule(a_rule("of-node", "NoExecute", pool="n"))
    slices = [a_slice_object(a_device(), nodeName="n")]
    instances = [an_instance("onvif-bbbbbb"), an_instance("onvif-cccccc", nodes=[])]

    published, held, absent = rows(slices, instances, [], world)

    repair = "example.com/repair:NoSchedule (DeviceTaintRule repair)"
    assert (published.path, published.state, published.detail) == ("DRA", "Tainted", repair)
    of_node = "example.com/repair:NoExecute (DeviceTaintRule of-node)"
    assert (held.path, held.state, held.detail) == ("DevicePlugin", "Tainted", of_node)
    assert (absent.state, absent.detail) == ("Offline", "")


def test_a_device_that_went_away_is_offline_and_one_with_another_taint_is_tainted() -> None:
    offline = {"key": "moorage.dev/offline", "effect": "NoSchedule", "timeAdded": "2026-11-22"}
    slices = [
        a_slice_object(
            a_device("one", taints=[offline]),
            a_device("two", taints=[{"key": "x", "effect": "NoExecute"}]),
            allNodes=True,
        )
    ]

    one, two = rows(slices, [], [], a_world())

    assert (one.state, one.detail, one.nodes) == ("Offline", "since 2026-11-22", ("*",))
    assert (two.state, two.detail) == ("Tainted", "x:NoExecute")


def test_devices_of_an_older_generation_of_their_pool_are_not_there() -> None:
    older = a_slice_object(a_device("old"), pool={"name": "onvif", "generation": 1})
    newer = a_slice_object(a_device("new"), pool={"name": "onvif", "generation": 2})

    assert [row.name for row in rows([older, newer], [], [], a_world())] == ["new"]


def test_a_device_in_slices_for_several_nodes_is_one() -> None:
    slices = [a_slice_object(a_device(), nodeName=node) for node in ("n", "m")]

    (row,) = rows(slices, [], [], a_world())

    assert row.nodes == ("m", "n")


def test_a_device_may_say_itself_which_nodes_see_it() -> None:
    on_m = {"nodeSelectorTerms": [{"matchExpressions": [{**NODE_NAMES, "values": ["m"]}]}]}
    devices = (
        a_device("one", nodeSelector=on_m),
        a_device("three", nodeName="n"),
        a_device("two", allNodes=True),
    )

    found = rows([a_slice_object(*devices, perDeviceNodeSelection=True)], [], [], a_world())

    assert [row.nodes for row in found] == [("m",), ("n",), ("*",)]


def test_slots_of_the_device_plugin_name_the_node_and_who_asked_there() -> None:
    usage = {"i-0": "n", "i-1": "C:7:n", "i-2": ""}
    world = a_world(
        a_queue("vision", onvif=(2, 2)),
        a_pod("a", queue="vision", requests={"akri.sh/onvif": "1"}, node="n", phase="Running"),
        a_pod("b", queue="vision", requests={"akri.sh/i": "1"}, node="n", phase="Running"),
        a_pod("c", queue="vision", requests={"akri.sh/i": "1"}, node="n", phase="Succeeded"),
    )

    (row,) = rows([], [an_instance("i", deviceUsage=usage, capacity=3)], [], world)

    assert (row.path, row.used, row.slots, row.nodes) == ("DevicePlugin", 2, 3, ("n",))
    assert [(u.what, u.slots, u.pods, u.payer) for u in row.users] == [
        ("Node n", 1, ("default/b",), "vision"),
        ("Node n", 1, ("default/a",), "vision"),
    ]


def test_an_instance_that_slices_show_is_told_again_only_while_slots_of_it_are_held() -> None:
    slices = [a_slice_object(a_device())]

    free = rows(slices, [an_instance()], [], a_world())
    held = rows(slices, [an_instance(deviceUsage={"x": "n"})], [], a_world())

    assert [row.path for row in free] == ["DRA"]
    assert [row.path for row in held] == ["DRA", "DevicePlugin"]


def test_an_instance_that_no_node_sees_is_offline() -> None:
    instance = an_instance(nodes=[])
    instance["metadata"]["annotations"] = {"moorage.dev/offline-since": "2026"}

    (row,) = rows([], [instance], [], a_world())

    assert (row.state, row.detail) == ("Offline", "since 2026")


def test_tables_tell_how_long_a_device_and_a_handler_are_away() -> None:
    instance = an_instance(nodes=[])
    since = "2026-11-21T20:58:00.123456Z"
    instance["metadata"]["annotations"] = {"moorage.dev/offline-since": since}
    found = rows([], [instance], [], a_world())
    report = {"name": "m", "handler": "Offline", "since": since}
    handlers = list(handler_rows([a_configuration(nodes=[report])], ["m"]))

    assert "Offline (3h1m ago)" in shown(device_table(found, NOW))
    assert "   3h1m ago   -" in shown(handler_table(handlers, NOW))


def test_tables_take_names_as_they_are() -> None:
    world = a_world()
    put(world, a_queue("vision"))
    table = device_table(rows([a_slice_object(a_device("[red]"))], [], [], world), NOW, wide=True)

    assert "[red]" in shown(table)


def test_handlers_are_told_for_each_node_that_has_the_driver() -> None:
    report = {"name": "m", "handler": "Offline", "since": "2026", "message": "Gone."}
    found = list(handler_rows([a_configuration(nodes=[report])], ["m", "n"]))

    where = {"handler": "onvif", "configuration": "default/onvif"}
    assert found == [
        HandlerRow(
            **where, node="m", state="Offline", registered=True, since="2026", message="Gone."
        ),
        HandlerRow(**where, node="n", state="Active", registered=True),
    ]
    assert "Offline" in shown(handler_table(found, NOW))


def test_where_the_driver_runs_may_not_be_known() -> None:
    (row,) = handler_rows([a_configuration()], [])

    assert (row.node, row.state) == ("*", "Active")


def test_a_configuration_that_is_not_accepted_has_no_handler() -> None:
    refused = {"type": "Accepted", "status": "False", "message": "spec.capacity: at least 1."}
    accepted = a_configuration(conditions=[refused])
    silent = {**a_configuration(), "status": {}}

    rows_ = [*handler_rows([accepted], ["n"]), *handler_rows([silent], ["n"])]

    assert [(row.state, row.node) for row in rows_] == [("NotAccepted", "*"), ("Unknown", "*")]
    assert rows_[0].message == "spec.capacity: at least 1."


def test_a_handler_that_is_not_registered_is_told_so() -> None:
    report = {"name": "n", "handler": "Waiting", "registered": False}

    (row,) = handler_rows([a_configuration(nodes=[report])], ["n"])

    assert (row.state, row.registered) == ("Waiting", False)

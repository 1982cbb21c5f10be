"""Instances: names as Akri's, and what is written about them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from driver.api import ConfigurationName, InstanceName
from driver.devices import device_hash
from driver.instances.instances import instance_of, instances_of
from driver.instances.local import Retention, plan_instances
from driver.instances.stored.objects import (
    ApplyInstance,
    DeleteInstance,
    StoredInstance,
    instance_body,
    stored_instance,
)
from tests.driver.builders import NODE, NOW, a_configuration, a_device


def a_body(device_id: str = "/devices/loop7", **overrides: Any) -> Mapping[str, Any]:
    configuration = a_configuration(**overrides)
    instance = instance_of(a_device(device_id), configuration, NODE)
    return instance_body(instance, configuration, NODE)


def as_stored(body: Mapping[str, Any], **spec: Any) -> StoredInstance:
    """What the API server would return after this body was applied."""
    stored = copy.deepcopy(dict(body))
    stored["metadata"] |= {"uid": "uid-1", "resourceVersion": "7", "managedFields": []}
    stored["spec"] |= spec
    return stored_instance(stored)


def plan(*wanted: Mapping[str, Any], stored: tuple[StoredInstance, ...], **options: Any) -> Any:
    arguments: dict[str, Any] = {"graces": {}, "now": NOW, **options}
    return plan_instances(wanted, stored, Retention(**arguments)).decisions


def test_a_local_device_is_named_with_akris_hash_of_device_and_node() -> None:
    instance = instance_of(a_device("/devices/loop7"), a_configuration("usb"), NODE)

    digest = device_hash("/devices/loop7", NODE)
    assert instance.name == f"usb-{digest}"
    assert instance.cdi_name == f"akri.sh/usb={digest}"
    assert not instance.shared


def test_properties_of_the_configuration_win() -> None:
    configuration = a_configuration(broker_properties={"UDEV_DEVNODE": "mine", "FLOOR": "2"})

    properties = instance_of(a_device(), configuration, NODE).properties

    assert properties["UDEV_DEVNODE"] == "mine"
    assert properties["FLOOR"] == "2"
    assert "UDEV_DEVPATH" in properties


def test_bytes_that_are_no_text_keep_no_instance_from_being_written() -> None:
    odd = a_device("net/odd\udcff", properties={"SERIAL": "a\udcffb", "PLACE": "Büro"})
    configuration = a_configuration()
    (instance,), _ = instances_of([odd], (), configuration, NODE)

    body = instance_body(instance, configuration, NODE)

    assert body["spec"]["brokerProperties"] == {"SERIAL": "a\ufffdb", "PLACE": "Büro"}
    assert msgspec.json.encode(body)


def test_instances_do_not_depend_on_the_order_of_discovery() -> None:
    devices = [a_device(f"/devices/loop{i}") for i in range(5)]

    forwards = instances_of(devices, (), a_configuration(), NODE)

    assert forwards == instances_of(reversed(devices), (), a_configuration(), NODE)
    assert len(forwards[0]) == 5


def test_a_new_device_is_applied_and_then_nothing_is_left_to_do() -> None:
    body = a_body()

    assert plan(body, stored=()) == (ApplyInstance(body, is_new=True),)
    assert plan(body, stored=(as_stored(body),)) == ()


def test_slots_that_others_wrote_are_no_reason_to_write() -> None:
    body = a_body()

    assert plan(body, stored=(as_stored(body, deviceUsage={"x-0": "node-a"}),)) == ()


def test_a_changed_capacity_is_applied() -> None:
    body = a_body(capacity=3)

    assert plan(body, stored=(as_stored(a_body()),)) == (ApplyInstance(body),)


def test_a_device_that_is_gone_loses_its_instance_unless_somebody_changed_it() -> None:
    gone = as_stored(a_body())

    assert plan(stored=(gone,)) == (DeleteInstance("default", gone.name, "uid-1", "7"),)


def test_not_heard_is_not_gone() -> None:
    frozen = as_stored(a_body())

    assert plan(stored=(frozen,), unheard={ConfigurationName("loop")}) == ()


def test_an_instance_whose_slot_is_used_stays_and_is_on_no_node() -> None:
    used = as_stored(a_body(), deviceUsage={"x-0": "node-a"})

    (decision,) = plan(stored=(used,))

    assert isinstance(decision, ApplyInstance)
    assert decision.body["spec"]["nodes"] == []
    assert plan(stored=(as_stored(decision.body, deviceUsage={"x-0": "node-a"}),)) == ()


def test_an_empty_slot_holds_nothing() -> None:
    released = as_stored(a_body(), deviceUsage={"x-0": ""})

    assert isinstance(plan(stored=(released,))[0], DeleteInstance)


def test_a_held_instance_stays_until_it_is_released() -> None:
    held = as_stored(a_body())
    name, known = InstanceName(held.name), {held.configuration: timedelta()}

    (decision,) = plan(stored=(held,), held={name}, graces=known)

    assert isinstance(decision, ApplyInstance)
    assert decision.body["metadata"] == held.body["metadata"]
    assert decision.body["spec"]["nodes"] == []


def test_a_held_instance_of_a_deleted_configuration_is_not_written_before_it_goes() -> None:
    held = as_stored(a_body())

    assert plan(stored=(held,), held={InstanceName(held.name)}) == ()


def test_an_instance_that_comes_back_is_on_its_node_again() -> None:
    body = a_body()
    away = as_stored(body, nodes=[])

    assert plan(body, stored=(away,)) == (ApplyInstance(body),)


def test_an_instance_written_by_akri_is_taken_over() -> None:
    body = a_body()
    akris = copy.deepcopy(dict(body))
    akris["metadata"] = {
        "name": body["metadata"]["name"],
        "namespace": "default",
        "uid": "uid-1",
        "resourceVersion": "7",
    }
    del akris["spec"]["shared"]

    assert plan(body, stored=(stored_instance(akris),)) == (ApplyInstance(body),)

"""Instances as the devices of a pool."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.instances.instances import Instance
from driver.publishing.desired.slices import (
    Features,
    PublishedDevice,
    device_name,
    features_of,
    probe_slice,
    published,
)

ALL = Features(consumable_capacity=True, taints=True)
NONE = Features(consumable_capacity=False, taints=False)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def an_instance(name: str = "cam-0a1b2c", **overrides: Any) -> Instance:
    fields: dict[str, Any] = {
        "name": InstanceName(name),
        "hash": name[-6:],
        "configuration": ConfigurationName(name[:-7]),
        "namespace": "default",
        "properties": {"MODEL": "x"},
        "mounts": (),
        "device_specs": (),
        "capacity": 1,
        "unique_devices": True,
    }
    return Instance(**{**fields, **overrides})


def names(devices: tuple[PublishedDevice, ...]) -> list[str]:
    return [device.name for device in devices]


def test_capacity_1_is_one_exclusive_device() -> None:
    instance = an_instance()

    (device,) = published([instance], ALL)

    assert device.instance is instance
    assert device.body == {
        "name": "cam-0a1b2c",
        "attributes": {
            "configuration": {"string": "cam"},
            "instance": {"string": "cam-0a1b2c"},
            "MODEL": {"string": "x"},
        },
    }


def test_unique_devices_with_capacity_n_are_one_device_with_n_slots() -> None:
    (device,) = published([an_instance(capacity=4)], ALL)

    assert device.name == "cam-0a1b2c"
    assert device.body["allowMultipleAllocations"] is True
    assert device.body["capacity"] == {
        "slots": {
            "value": "4",
            "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}},
        }
    }


def test_without_consumable_capacity_unique_devices_are_n_exclusive_devices() -> None:
    devices = published([an_instance(capacity=3)], NONE)

    assert names(devices) == ["cam-0a1b2c-0", "cam-0a1b2c-1", "cam-0a1b2c-2"]
    assert all(
        device.body["attributes"]["instance"]["string"] == "cam-0a1b2c" for device in devices
    )
    assert not any("capacity" in device.body for device in devices)


@pytest.mark.parametrize("features", [ALL, NONE])
def test_devices_that_need_not_be_unique_are_n_exclusive_devices(features: Features) -> None:
    devices = published([an_instance(capacity=3, unique_devices=False)], features)

    assert names(devices) == ["cam-0a1b2c-0", "cam-0a1b2c-1", "cam-0a1b2c-2"]


@pytest.mark.parametrize(
    ("slots", "quantity"), [(2, "2"), (999, "999"), (1000, "1k"), (1500, "1500"), (10**6, "1M")]
)
def test_slots_are_spelled_as_the_api_server_spells_them(slots: int, quantity: str) -> None:
    (device,) = published([an_instance(capacity=slots)], ALL)

    assert device.body["capacity"]["slots"]["value"] == quantity


def test_a_device_with_slots_has_one_attribute_less() -> None:
    properties = {f"P{number:02}": "value" for number in range(40)}

    (device,) = published([an_instance(capacity=2, properties=properties)], ALL)

    assert len(device.body["attributes"]) == 31


def test_an_offline_instance_is_tainted_without_a_time() -> None:
    (device,) = published([an_instance(online=False)], ALL)

    assert device.body["taints"] == [{"key": "moorage.dev/offline", "effect": "NoSchedule"}]


def test_an_offline_instance_is_published_unchanged_where_taints_are_not_kept() -> None:
    features = Features(consumable_capacity=True, taints=False)

    offline = published([an_instance(online=False)], features)
    online = published([an_instance()], features)

    assert [device.body for device in offline] == [device.body for device in online]


def test_a_name_that_is_a_label_stays() -> None:
    name = "a" * 56 + "-0a1b2c"

    assert names(published([an_instance(name)], ALL)) == [name]


def test_a_label_that_leaves_no_room_for_the_number_is_shortened() -> None:
    devices = published([an_instance("a" * 56 + "-0a1b2c", capacity=11)], NONE)

    assert all(LABEL.fullmatch(name) for name in names(devices))
    assert devices[10].name.endswith("-10")
    assert len(devices[10].name) == 63


@pytest.mark.parametrize("configuration", ["front.door", "a" * 250, "a." * 120 + "a", "a-.-b"])
def test_any_other_name_becomes_a_label_that_ends_in_a_hash(configuration: str) -> None:
    name = device_name(f"{configuration}-0a1b2c")

    assert LABEL.fullmatch(name)
    assert re.search(r"-[0-9a-f]{10}$", name)


def test_names_that_differ_past_the_cut_stay_different() -> None:
    assert device_name("a" * 80 + "-0a1b2c") != device_name("a" * 80 + "-0a1b2d")
    assert device_name("a.b-0a1b2c") != device_name("a-b-0a1b2c")


def test_an_instance_that_takes_the_name_of_a_numbered_device_gets_another() -> None:
    numbered = an_instance("cam-0a1b2c", capacity=100_001)
    other = an_instance("cam-0a1b2c-100000")

    devices = published([other, numbered], NONE)

    assert len(set(names(devices))) == len(devices)
    assert devices[-1].instance is other
    assert devices[-1].name.startswith("cam-0a1b2c-100000-")


def test_instances_of_one_name_in_two_namespaces_get_two_names() -> None:
    devices = published([an_instance(namespace="b"), an_instance(namespace="a")], ALL)

    assert [device.instance.namespace for device in devices] == ["a", "b"]
    assert devices[0].name == "cam-0a1b2c"
    assert devices[1].name == device_name("cam-0a1b2c", salt="b/0/")


def test_of_two_instances_with_one_name_and_namespace_one_is_published() -> None:
    twins = [an_instance(properties={"SERIAL": serial}) for serial in "ab"]

    assert published(twins, ALL) == published(twins[::-1], ALL)
    assert len(published(twins, ALL)) == 1


def test_an_instance_without_slots_is_not_published() -> None:
    assert published([an_instance(capacity=0)], ALL) == ()


CONFIGURATIONS = st.text(alphabet="ab.-", min_size=1, max_size=70)
HASHES = st.sampled_from(["000000", "0a1b2c", "100000"])
INSTANCES = st.builds(
    lambda configuration, digest, **overrides: an_instance(
        f"{configuration}-{digest}", **overrides
    ),
    CONFIGURATIONS,
    HASHES,
    namespace=st.sampled_from("ab"),
    capacity=st.integers(min_value=0, max_value=12),
    unique_devices=st.booleans(),
    online=st.booleans(),
    properties=st.dictionaries(st.text(max_size=34), st.text(max_size=66), max_size=4),
)


@given(
    st.lists(INSTANCES, max_size=8), st.builds(Features, st.booleans(), st.booleans()), st.data()
)
def test_every_pool_is_valid_and_does_not_depend_on_the_order_of_its_instances(
    instances: list[Instance], features: Features, data: st.DataObject
) -> None:
    devices = published(instances, features)

    assert devices == published(data.draw(st.permutations(instances)), features)
    assert len(set(names(devices))) == len(devices)
    for device in devices:
        assert LABEL.fullmatch(device.name)
        assert device.body["name"] == device.name
        assert len(device.body["attributes"]) + len(device.body.get("capacity", ())) <= 32


@pytest.mark.parametrize("node", [NodeName("node-a"), None])
def test_the_probe_is_read_back_as_what_the_api_server_kept(node: NodeName | None) -> None:
    assert features_of(probe_slice(node)) == replace(ALL, counters=True)
    assert features_of(probe_slice(node, counters=False)) == ALL


def test_the_probe_has_one_scope() -> None:
    assert probe_slice(NodeName("node-a"))["spec"]["nodeName"] == "node-a"
    assert probe_slice(None)["spec"]["allNodes"] is True


def test_fields_that_the_api_server_drops_are_features_it_lacks() -> None:
    stored = probe_slice(None)
    slots, offline, rival = stored["spec"]["devices"]
    del offline["taints"]
    del rival["consumesCounters"]
    assert features_of(stored) == Features(consumable_capacity=True, taints=False)

    del slots["allowMultipleAllocations"]
    assert features_of(stored) == NONE


def test_a_request_policy_that_is_dropped_means_no_consumable_capacity() -> None:
    stored = probe_slice(None, counters=False)
    del stored["spec"]["devices"][0]["capacity"]["slots"]["requestPolicy"]

    assert features_of(stored) == Features(consumable_capacity=False, taints=True)
    assert features_of({"spec": {}}) == NONE

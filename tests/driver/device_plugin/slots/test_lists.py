"""Which device plugins a node has, and what they list."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import Configuration, ConfigurationName, InstanceName
from driver.device_plugin.slots.lists import (
    Offered,
    PluginDevice,
    PluginListing,
    PluginLists,
    offered_by,
)
from driver.instances.inventory import Inventory
from driver.instances.slots.slots import InstanceSlots, instance_slots
from tests.driver.builders import a_configuration
from tests.driver.slot_builders import (
    BOTH,
    CAMERA_1,
    CAMERA_2,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    RESOURCE,
    a_camera,
    an_instance_object,
    by_configuration,
    some_slots,
    two_cameras,
)

IL_1, IL_2 = f"akri.sh/{CAMERA_1}", f"akri.sh/{CAMERA_2}"


def offered(
    *configurations: Configuration,
    online: Collection[InstanceName] = BOTH,
    names: Iterable[str] = (CONFIGURATION,),
) -> Offered:
    return Offered(
        configurations={c.name: c for c in configurations},
        online=online,
        names=[ConfigurationName(name) for name in names],
    )


def cameras(**overrides: Any) -> Configuration:
    return a_configuration(CONFIGURATION, capacity=2, **overrides)


def by_resource(lists: PluginLists) -> dict[str, dict[str, bool]]:
    """Health by device id by resource."""
    return {str(p): {d.id: d.healthy for d in devices} for p, devices in lists.items()}


def lists(instances: Iterable[InstanceSlots], found: Offered) -> dict[str, dict[str, bool]]:
    return by_resource(PluginListing(NODE_A).lists(instances, found))


def test_one_plugin_for_each_instance_and_one_for_the_configuration() -> None:
    assert lists(two_cameras(), offered(cameras())) == {
        IL_1: {f"{CAMERA_1}-0": True, f"{CAMERA_1}-1": True},
        IL_2: {f"{CAMERA_2}-0": True, f"{CAMERA_2}-1": True},
        RESOURCE: {CAMERA_1: True, CAMERA_2: True},
    }


def test_lists_are_sorted_so_that_the_same_is_sent_once() -> None:
    found = PluginListing(NODE_A).lists(reversed(two_cameras()), offered(cameras()))

    assert all(list(devices) == sorted(devices) for devices in found.values())


def test_instances_of_other_nodes_have_no_plugin_here() -> None:
    assert lists(two_cameras(nodes=[NODE_B]), offered(cameras())) == {}


def test_an_instance_that_is_gone_from_here_keeps_its_plugin_while_it_is_held() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": NODE_A}, nodes=[])

    assert lists([slots], offered(cameras()))[IL_1] == {
        f"{CAMERA_1}-0": False,
        f"{CAMERA_1}-1": False,
    }


def test_without_an_answer_of_the_handler_what_is_held_stays_healthy() -> None:
    """A container that crashes just then is to be started again."""
    usage = {f"{CAMERA_1}-0": NODE_A, f"{CAMERA_2}-1": by_configuration(CAMERA_2)}

    assert lists(two_cameras(usage), offered(online=())) == {
        IL_1: {f"{CAMERA_1}-0": True, f"{CAMERA_1}-1": False},
        IL_2: {f"{CAMERA_2}-0": False, f"{CAMERA_2}-1": False},
        RESOURCE: {CAMERA_2: True},
    }


def test_what_is_missing_of_a_configuration_that_is_heard_in_part_stays_healthy_if_held() -> None:
    first, second = two_cameras(usage={f"{CAMERA_1}-0": NODE_A})
    whole = offered(cameras(), online=[CAMERA_2])

    found = lists([first, second], replace(whole, unheard=[ConfigurationName(CONFIGURATION)]))

    assert found[IL_1] == {f"{CAMERA_1}-0": True, f"{CAMERA_1}-1": False}
    assert found[IL_2] == {f"{CAMERA_2}-0": True, f"{CAMERA_2}-1": True}
    assert lists([first, second], whole)[IL_1] != found[IL_1]


def test_an_id_that_is_held_through_the_configuration_is_not_held_through_the_instance() -> None:
    usage = {f"{CAMERA_1}-0": by_configuration(f"{CAMERA_1}-0")}

    found = lists([some_slots(usage=usage)], offered())

    assert found[IL_1] == {f"{CAMERA_1}-0": False, f"{CAMERA_1}-1": False}
    assert found[RESOURCE] == {f"{CAMERA_1}-0": True}


def test_an_instance_that_is_being_deleted_gives_nothing_new_and_keeps_what_is_held() -> None:
    body = an_instance_object(usage={f"{CAMERA_1}-0": NODE_A})
    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    found = lists([instance_slots(body)], offered(cameras(), online=()))

    assert found == {IL_1: {f"{CAMERA_1}-0": True, f"{CAMERA_1}-1": False}, RESOURCE: {}}


def test_a_name_that_another_configuration_has_belongs_to_that_configuration() -> None:
    found = lists(two_cameras(), offered(cameras(), names=(CONFIGURATION, CAMERA_1)))

    assert set(found) == {IL_2, RESOURCE}


def test_a_name_too_long_for_the_kubelet_has_no_plugins() -> None:
    name = "c" * 60
    slots = some_slots(f"{name}-8120fe")

    found = lists([slots], offered(a_configuration(name), names=[name]))

    assert found == {}


def test_every_id_of_a_slot_each() -> None:
    found = lists(two_cameras(), offered(cameras(unique_devices=False)))

    assert set(found[RESOURCE]) == {f"{c}-{i}" for c in BOTH for i in range(2)}


def test_a_device_that_is_offline_is_unhealthy() -> None:
    found = PluginListing(NODE_A).lists(two_cameras(), offered(cameras(), online=[CAMERA_1]))

    (configuration,) = [devices for plugin, devices in found.items() if str(plugin) == RESOURCE]
    assert configuration == (PluginDevice(CAMERA_1, True), PluginDevice(CAMERA_2, False))


HOLDERS = st.sampled_from(
    ["", NODE_A, NODE_B, by_configuration(CAMERA_1), by_configuration(f"{CAMERA_1}-0")]
)


@st.composite
def some_instances(draw: st.DrawFn, name: InstanceName) -> InstanceSlots:
    body = an_instance_object(
        name,
        {f"{name}-{i}": draw(HOLDERS) for i in range(3)},
        capacity=draw(st.integers(0, 3)),
        nodes=draw(st.sampled_from([[], [NODE_A], [NODE_B]])),
    )
    if draw(st.booleans()):
        body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return instance_slots(body)


@st.composite
def offers(draw: st.DrawFn) -> Offered:
    """What discovery offers at one moment."""
    configured = [cameras(unique_devices=draw(st.booleans()))] if draw(st.booleans()) else []
    online = draw(st.frozensets(st.sampled_from(sorted(BOTH))))
    taken = [CONFIGURATION, *(BOTH if draw(st.booleans()) else ())]
    unheard = [CONFIGURATION] if draw(st.booleans()) else []
    return replace(offered(*configured, online=online, names=taken), unheard=unheard)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_kept_makes_no_difference(data: st.DataObject) -> None:
    """An Instance that did not change is the same object, whatever discovery says by then."""
    listing = PluginListing(NODE_A)
    known: dict[InstanceName, InstanceSlots] = {}
    found: Offered | None = None

    for _ in range(data.draw(st.integers(1, 6))):
        for name in data.draw(st.frozensets(st.sampled_from(sorted(BOTH)))):
            known[name] = data.draw(some_instances(name))
        for name in data.draw(
            st.frozensets(st.sampled_from(sorted(known)) if known else st.nothing())
        ):
            del known[name]
        if found is None or data.draw(st.booleans()):
            found = data.draw(offers())

        assert listing.lists(known.values(), found) == PluginListing(NODE_A).lists(
            known.values(), found
        )


def test_a_change_that_no_list_shows_makes_no_other_lists() -> None:
    listing = PluginListing(NODE_A)
    first, second = two_cameras()
    before = listing.lists([first, second], offered(cameras()))

    taken = some_slots(CAMERA_1, usage={f"{CAMERA_1}-0": NODE_A})

    assert listing.lists([taken, second], offered(cameras())) is before
    assert listing.lists([second], offered(cameras())) is not before


def test_the_kubelet_is_told_which_numa_node_a_device_is_near_to() -> None:
    found = replace(offered(cameras()), numa_nodes={CAMERA_1: 1})

    plugins = PluginListing(NODE_A).lists(two_cameras(), found)

    sent = {(str(p), device.id): device.numa_node for p, all_ in plugins.items() for device in all_}
    assert sent == {
        (IL_1, f"{CAMERA_1}-0"): 1,
        (IL_1, f"{CAMERA_1}-1"): 1,
        (IL_2, f"{CAMERA_2}-0"): None,
        (IL_2, f"{CAMERA_2}-1"): None,
        (RESOURCE, CAMERA_1): 1,
        (RESOURCE, CAMERA_2): None,
    }


def test_what_an_inventory_knows_of_numa_nodes_is_offered() -> None:
    near = a_camera(device_attributes={"resource.kubernetes.io/numaNode": "0"})
    inventory = Inventory({}, (near, a_camera(CAMERA_2)), frozenset())

    assert offered_by(inventory).numa_nodes == {CAMERA_1: 0}

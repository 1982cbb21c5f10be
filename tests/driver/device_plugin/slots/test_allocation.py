"""Allocate: what is taken, and what the containers get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from driver.api import InstanceName, NodeName
from driver.device_plugin.containers.responses import Refused
from driver.device_plugin.slots.allocation import (
    Allocation,
    OfConfiguration,
    Offer,
    OfInstance,
    Plugin,
    plan_allocate,
)
from driver.device_plugin.slots.preferences import preferred_devices
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.slots.slots import by_name
from tests.driver.device_sharing_tables import CL_FALSE, CL_TRUE, IL, IL_ON_B
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    NODE_C,
    a_camera,
    an_instance_object,
    by_configuration,
)
from tests.fakes.slot_instances import ConflictError, FakeInstances

UNIQUE = OfConfiguration(CONFIGURATION, unique_devices=True)
PER_SLOT = OfConfiguration(CONFIGURATION, unique_devices=False)
FIRST, SECOND = OfInstance(CAMERA_1), OfInstance(CAMERA_2)
CAMERAS = {name: a_camera(name) for name in (CAMERA_1, CAMERA_2)}


def stored(usage: Mapping[str, str] | None = None, **spec: Any) -> FakeInstances:
    """Two cameras in the API server."""
    found = FakeInstances.of(CAMERA_1, CAMERA_2, **spec)
    for slot, value in (usage or {}).items():
        found.by_hand(slot, value)
    return found


def offer(
    instances: FakeInstances,
    node: NodeName = NODE_A,
    cameras: Mapping[InstanceName, Instance] = CAMERAS,
) -> Offer:
    return Offer(node=node, slots=by_name(instances.views()), instances=cameras)


def plan(
    plugin: Plugin, instances: FakeInstances, *ids: str, node: NodeName = NODE_A
) -> Allocation:
    """The plan for one container, which must be granted."""
    found = plan_allocate(plugin, [ids], offer(instances, node))
    assert isinstance(found, Allocation), found
    return found


def allocate(plugin: Plugin, instances: FakeInstances, *ids: str, node: NodeName = NODE_A) -> None:
    instances.write(plan(plugin, instances, *ids, node=node).writes)


def refusal(plugin: Plugin, instances: FakeInstances, *ids: str, node: NodeName = NODE_A) -> str:
    found = plan_allocate(plugin, [ids], offer(instances, node))
    assert isinstance(found, Refused), found
    return found.sentence


def test_rows_162_to_167_two_of_the_configuration_take_the_lowest_slot_of_each() -> None:
    """Equal to the rows up to the slot's index: the driver picks it."""
    api = stored()

    allocate(UNIQUE, api, CAMERA_1, CAMERA_2)

    assert api.usage() == {
        f"{CAMERA_1}-0": by_configuration(CAMERA_1),
        f"{CAMERA_2}-0": by_configuration(CAMERA_2),
    }
    assert set(api.usage().values()) == set(CL_TRUE.values())


def test_rows_210_to_215_another_node_takes_a_slot_by_name() -> None:
    api = stored(CL_TRUE)

    allocate(SECOND, api, f"{CAMERA_2}-0", node=NODE_B)

    assert api.usage() == {**CL_TRUE, **IL_ON_B}


def test_rows_308_to_313_slots_taken_by_name() -> None:
    api = stored()

    allocate(FIRST, api, f"{CAMERA_1}-0")
    allocate(SECOND, api, f"{CAMERA_2}-1")

    assert api.usage() == IL


def test_rows_410_to_412_two_slots_of_one_instance_through_the_configuration() -> None:
    api = stored()

    allocate(PER_SLOT, api, f"{CAMERA_1}-0", f"{CAMERA_1}-1")

    assert api.usage() == CL_FALSE


def test_rows_410_to_412_are_what_is_preferred_when_others_have_the_other_camera() -> None:
    taken = {f"{CAMERA_2}-0": NODE_B, f"{CAMERA_2}-1": NODE_C}
    api = stored(taken)
    left = [f"{CAMERA_1}-0", f"{CAMERA_1}-1"]

    chosen = preferred_devices(left, (), 2, by_name(api.views()))
    allocate(PER_SLOT, api, *chosen)

    assert api.usage() == {**taken, **CL_FALSE}


def test_v2_a_slot_by_name_beside_slots_of_the_configuration() -> None:
    api = stored()

    allocate(PER_SLOT, api, f"{CAMERA_1}-0", f"{CAMERA_1}-1")
    allocate(SECOND, api, f"{CAMERA_2}-0", node=NODE_B)

    assert api.usage() == {**CL_FALSE, **IL_ON_B}


def test_each_instance_is_written_once() -> None:
    ids = [f"{camera}-{slot}" for camera in (CAMERA_1, CAMERA_2) for slot in (0, 1)]

    found = plan(PER_SLOT, stored(), *ids)

    assert [write.instance for write in found.writes] == [CAMERA_1, CAMERA_2]
    assert found.unwritten == ()


def test_what_the_node_holds_is_given_again_without_a_write() -> None:
    """After the kubelet or this driver restarted, or an init container had it before."""
    for plugin, ids, usage in (
        (UNIQUE, [CAMERA_1, CAMERA_2], CL_TRUE),
        (PER_SLOT, [f"{CAMERA_1}-0", f"{CAMERA_1}-1"], CL_FALSE),
        (FIRST, [f"{CAMERA_1}-0"], IL),
    ):
        found = plan(plugin, stored(usage), *ids)

        assert found.writes == ()
        assert found.unwritten == tuple(sorted({InstanceName(i[:17]) for i in ids}))
        assert len(found.responses) == 1


def test_allocating_again_after_the_write_changes_nothing() -> None:
    api = stored()
    allocate(UNIQUE, api, CAMERA_1, CAMERA_2)
    before = api.usage()

    allocate(UNIQUE, api, CAMERA_1, CAMERA_2)

    assert api.usage() == before


@pytest.mark.parametrize("vdev", ["0", "akri-onvif-3", f"{CAMERA_1}-1"])
@pytest.mark.parametrize("plugin", [UNIQUE, PER_SLOT])
def test_ids_held_from_before_are_given_again_whoever_made_them(
    vdev: str, plugin: OfConfiguration
) -> None:
    found = plan(plugin, stored({f"{CAMERA_1}-1": by_configuration(vdev)}), vdev)

    assert found.writes == ()
    assert found.responses[0].environment["URL"] == "rtsp://8120fe"


def test_containers_of_one_call_share_what_is_left() -> None:
    ids = [[f"{CAMERA_1}-0"], [f"{CAMERA_1}-1"]]

    found = plan_allocate(FIRST, ids, offer(stored()))

    assert isinstance(found, Allocation)
    assert len(found.responses) == 2
    assert [sorted(write.changes) for write in found.writes] == [[0, 1]]


def test_two_containers_given_one_whole_instance_share_its_slot() -> None:
    found = plan_allocate(UNIQUE, [[CAMERA_1], [CAMERA_1]], offer(stored()))

    assert isinstance(found, Allocation)
    assert [sorted(write.changes) for write in found.writes] == [[0]]


def test_a_slot_that_another_node_holds_is_refused_with_its_name() -> None:
    api = stored({f"{CAMERA_1}-0": NODE_B})

    assert refusal(FIRST, api, f"{CAMERA_1}-0") == (
        "slot akri-onvif-8120fe-0 is held by node node-b through the Instance"
    )
    assert "node node-b" in refusal(PER_SLOT, api, f"{CAMERA_1}-0")


def test_one_device_that_is_taken_refuses_all_and_takes_nothing() -> None:
    api = stored({f"{CAMERA_2}-1": NODE_B})

    assert "a19705-1 is held" in refusal(PER_SLOT, api, f"{CAMERA_1}-0", f"{CAMERA_2}-1")


def test_a_slot_of_this_node_in_the_other_way_is_refused() -> None:
    assert "this node, node-a, through the Configuration" in refusal(
        FIRST, stored(CL_FALSE), f"{CAMERA_1}-0"
    )
    assert "this node, node-a, through the Instance" in refusal(
        PER_SLOT, stored(IL), f"{CAMERA_1}-0"
    )


def test_an_instance_without_a_slot_left_is_refused_with_its_holders() -> None:
    api = stored({f"{CAMERA_1}-0": NODE_B, f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_C)})

    sentence = refusal(UNIQUE, api, CAMERA_1)

    assert sentence.startswith("Instance akri-onvif-8120fe has no slot left of its 2")
    assert "node-b" in sentence
    assert "node-c" in sentence


def test_an_instance_that_is_in_use_here_under_an_earlier_id_is_refused() -> None:
    """At most one use of the Configuration per node and Instance, however it began."""
    api = stored({f"{CAMERA_1}-1": by_configuration(f"{CAMERA_1}-1")})

    assert refusal(UNIQUE, api, CAMERA_1) == (
        "Instance akri-onvif-8120fe is in use on this node, node-a, as device akri-onvif-8120fe-1"
    )


def test_a_slot_with_a_meaningless_value_is_refused() -> None:
    assert "names no holder" in refusal(FIRST, stored({f"{CAMERA_1}-0": "C:x"}), f"{CAMERA_1}-0")


def test_slots_beyond_a_lowered_capacity_are_not_given_away() -> None:
    api = stored({f"{CAMERA_1}-4": NODE_B}, capacity=1)

    assert "no slot left of its 1" in refusal(FIRST, api, f"{CAMERA_1}-0")
    assert refusal(FIRST, api, f"{CAMERA_1}-3") == f"slot {CAMERA_1}-3 is beyond the capacity, 1"


@pytest.mark.parametrize(
    ("plugin", "device"),
    [
        (FIRST, f"{CAMERA_2}-0"),
        (FIRST, CAMERA_1),
        (FIRST, "x"),
        (FIRST, f"akri.sh/{CAMERA_1}-0"),
        (UNIQUE, f"{CAMERA_1}-0"),
        (UNIQUE, "akri-onvif-ffffff"),
        (PER_SLOT, CAMERA_1),
        (PER_SLOT, "akri-onvif-ffffff-0"),
        (PER_SLOT, ""),
        (OfInstance(InstanceName("akri-onvif-ffffff")), "akri-onvif-ffffff-0"),
    ],
)
def test_ids_that_no_list_had_are_refused(plugin: Plugin, device: str) -> None:
    assert refusal(plugin, stored(), device) == f"{device!r} is no device of {plugin}"


def test_devices_of_another_configuration_are_no_devices_of_this_one() -> None:
    api = FakeInstances(an_instance_object("usb-8120fe"))

    assert "is no device of" in refusal(UNIQUE, api, "usb-8120fe")


@pytest.mark.parametrize("usage", [{}, IL])
def test_a_device_that_is_not_there_is_refused_even_to_its_holder(
    usage: Mapping[str, str],
) -> None:
    """The device nodes are those of this moment, and now there are none."""
    offline = {CAMERA_1: a_camera(online=False)}

    def reason(api: FakeInstances, cameras: Mapping[InstanceName, Instance]) -> object:
        return plan_allocate(FIRST, [[f"{CAMERA_1}-0"]], offer(api, cameras=cameras))

    assert reason(stored(usage), offline) == Refused(f"Instance {CAMERA_1} is offline")
    unseen = Refused(f"node node-a does not see the device of Instance {CAMERA_1}")
    assert reason(stored(usage), {}) == unseen
    assert reason(stored(usage, nodes=[NODE_B]), CAMERAS) == unseen
    deleted = an_instance_object(usage=usage)
    deleted["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert reason(FakeInstances(deleted), CAMERAS) == Refused(
        f"Instance {CAMERA_1} is being deleted"
    )


def test_two_nodes_at_one_instant_one_wins_and_the_other_hears_who() -> None:
    api = stored()
    a = plan(FIRST, api, f"{CAMERA_1}-0", node=NODE_A)
    b = plan(FIRST, api, f"{CAMERA_1}-0", node=NODE_B)

    api.write(a.writes)
    with pytest.raises(ConflictError):
        api.write(b.writes)

    assert "node node-a" in refusal(FIRST, api, f"{CAMERA_1}-0", node=NODE_B)
    assert api.usage() == {f"{CAMERA_1}-0": NODE_A}


def test_two_nodes_at_one_instant_both_get_a_slot_of_a_whole_instance() -> None:
    """The kubelet names no slot, so planning again finds the next one."""
    api = stored()
    late = plan(UNIQUE, api, CAMERA_1, node=NODE_B)
    allocate(UNIQUE, api, CAMERA_1, node=NODE_A)

    with pytest.raises(ConflictError):
        api.write(late.writes)
    allocate(UNIQUE, api, CAMERA_1, node=NODE_B)

    assert api.usage() == {
        f"{CAMERA_1}-0": by_configuration(CAMERA_1, NODE_A),
        f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_B),
    }


def test_the_response_is_that_of_the_moment() -> None:
    """A device that was plugged in again has another node now."""
    replugged = {**CAMERAS, CAMERA_1: a_camera(properties={"NODE": "/dev/video7"})}
    request = (UNIQUE, [[CAMERA_1, CAMERA_2]])

    found = plan_allocate(*request, offer(stored(), cameras=replugged))

    assert isinstance(found, Allocation)
    assert found.responses[0].environment == {
        "NODE": "/dev/video7",
        "NODE_8120FE": "/dev/video7",
        "URL": "rtsp://a19705",
        "URL_A19705": "rtsp://a19705",
    }


def test_devices_that_cannot_be_in_one_container_are_refused() -> None:
    spec = DeviceSpec("/dev/8120fe", "/dev/other")
    clash = {**CAMERAS, CAMERA_2: a_camera(CAMERA_2, device_specs=(spec,))}

    found = plan_allocate(UNIQUE, [[CAMERA_1, CAMERA_2]], offer(stored(), cameras=clash))

    assert isinstance(found, Refused)
    assert "would both be /dev/8120fe" in found.sentence


def test_a_call_for_no_device_gets_an_empty_response() -> None:
    found = plan_allocate(FIRST, [[]], offer(stored()))

    assert isinstance(found, Allocation)
    assert found.writes == ()
    assert found.responses[0].environment == {}

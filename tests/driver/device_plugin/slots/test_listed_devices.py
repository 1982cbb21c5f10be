"""What the device plugins list to each kubelet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import pytest

from driver.api import NodeName
from driver.device_plugin.slots.lists import (
    PluginDevice,
    configuration_devices,
    instance_devices,
)
from driver.instances.slots.slots import InstanceSlots
from tests.driver.device_sharing_tables import ALLOCATABLE, BLOCKS, USAGE, Block, is_unique
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    NODE_C,
    an_instance_object,
    by_configuration,
    some_slots,
    two_cameras,
)
from tests.fakes.slot_instances import FakeInstances

PLUGINS = (CONFIGURATION, CAMERA_1, CAMERA_2)
ROWS = [
    pytest.param(block, row, id=f"line {block.line + row}: {block.state}, {block.node}")
    for block in BLOCKS
    for row in range(len(block.health))
]


def listed(
    plugin: str, instances: Iterable[InstanceSlots], node: NodeName, *, unique: bool
) -> tuple[PluginDevice, ...]:
    """The list of the plugin of that name."""
    if plugin == CONFIGURATION:
        parts = (of_camera(slots, node, unique=unique) for slots in instances)
        return tuple(sorted(chain.from_iterable(parts)))
    slots = next(slots for slots in instances if slots.name == plugin)
    return instance_devices(slots, node, online=True)


def healthy(devices: Iterable[PluginDevice]) -> list[str]:
    return [device.id for device in devices if device.healthy]


def unhealthy(devices: Iterable[PluginDevice]) -> list[str]:
    return [device.id for device in devices if not device.healthy]


def of_camera(
    slots: InstanceSlots,
    node: NodeName = NODE_A,
    *,
    unique: bool = True,
    online: bool = True,
) -> tuple[PluginDevice, ...]:
    """The Configuration's list, where it has one camera."""
    return configuration_devices(slots, node, online=online, unique_devices=unique)


def test_the_tables_have_all_their_rows() -> None:
    assert len(ROWS) == 92


@pytest.mark.parametrize(("block", "row"), ROWS)
def test_row(block: Block, row: int) -> None:
    unique = is_unique(block.state)

    devices = listed(block.plugin, two_cameras(USAGE[block.state]), block.node, unique=unique)

    assert len(devices) == len(block.health)
    assert devices[row].healthy == (block.health[row] == "H")


@pytest.mark.parametrize("node", [NODE_A, NODE_B])
@pytest.mark.parametrize("state", ALLOCATABLE)
def test_allocatable_and_capacity(state: str, node: NodeName) -> None:
    instances = two_cameras(USAGE[state])

    lists = [listed(plugin, instances, node, unique=is_unique(state)) for plugin in PLUGINS]

    assert tuple(len(healthy(d)) for d in lists) == ALLOCATABLE[state][node == NODE_B]
    assert [len(d) for d in lists] == ([2, 2, 2] if is_unique(state) else [4, 2, 2])


@pytest.mark.parametrize("node", [NODE_A, NODE_B])
@pytest.mark.parametrize("state", [s for s in USAGE if "initial" not in s])
def test_v3_all_released_is_the_initial_state(state: str, node: NodeName) -> None:
    unique = is_unique(state)
    stored = FakeInstances.of(CAMERA_1, CAMERA_2)
    initial = [listed(plugin, stored.views(), node, unique=unique) for plugin in PLUGINS]
    for slot, value in USAGE[state].items():
        stored.by_hand(slot, value)
    assert stored.usage() == USAGE[state]

    for slot in USAGE[state]:
        stored.by_hand(slot, None)

    assert initial == [listed(plugin, stored.views(), node, unique=unique) for plugin in PLUGINS]


def test_an_empty_value_is_as_good_as_none() -> None:
    emptied = two_cameras(dict.fromkeys([f"{CAMERA_1}-0", f"{CAMERA_1}-1"], ""))

    for plugin in PLUGINS:
        before = listed(plugin, two_cameras(), NODE_A, unique=False)
        assert listed(plugin, emptied, NODE_A, unique=False) == before


def test_the_node_status_of_line_56_counts_devices_by_the_policy() -> None:
    assert len(listed(CONFIGURATION, two_cameras(), NODE_A, unique=True)) == 2
    assert len(listed(CONFIGURATION, two_cameras(), NODE_A, unique=False)) == 4


def test_three_cameras_of_two_never_fit_with_unique_devices() -> None:
    devices = listed(CONFIGURATION, two_cameras(), NODE_A, unique=True)

    assert len(healthy(devices)) < 3


def test_both_slots_of_one_camera_are_left_when_other_nodes_have_the_others() -> None:
    taken = {f"{CAMERA_1}-0": NODE_B, f"{CAMERA_1}-1": by_configuration(f"{CAMERA_1}-1", NODE_C)}

    devices = listed(CONFIGURATION, two_cameras(taken), NODE_A, unique=False)

    assert healthy(devices) == [f"{CAMERA_2}-0", f"{CAMERA_2}-1"]


@pytest.mark.parametrize(
    ("unique", "cameras", "pods_on_a", "pods_on_b"),
    [(True, 2, 1, 1), (True, 1, 0, 0), (False, 2, 2, 0), (False, 1, 1, 0)],
)
def test_the_deployment_of_the_last_section(
    unique: bool, cameras: int, pods_on_a: int, pods_on_b: int
) -> None:
    """Two replicas that ask for two: how many fit each node, filled one after the other."""
    stored = FakeInstances.of(*[CAMERA_1, CAMERA_2][:cameras])
    started = {NODE_A: 0, NODE_B: 0}

    for _ in range(2):
        for node in (NODE_A, NODE_B):
            devices = listed(CONFIGURATION, stored.views(), node, unique=unique)
            mine = {v.split(":")[1] for v in stored.usage().values() if v.endswith(node)}
            fits = [d for d in healthy(devices) if d not in mine]
            if len(fits) >= 2 and sum(started.values()) < 2:
                take(stored, fits[:2], node)
                started[node] += 1
                break

    assert (started[NODE_A], started[NODE_B]) == (pods_on_a, pods_on_b)


def take(stored: FakeInstances, devices: Sequence[str], node: NodeName) -> None:
    for device in devices:
        slots = {f"{i.name}-{n}": i.name for i in stored.views() for n in i.free}
        slot = device if device in slots else next(s for s, i in slots.items() if i == device)
        stored.by_hand(slot, by_configuration(device, node))


def test_capacity_5_on_10_nodes_leaves_5_nodes_without() -> None:
    """The first document on sharing: five slots, ten nodes that can see the device."""
    nodes = [NodeName(f"node-{n}") for n in range(10)]
    stored = FakeInstances(an_instance_object(CAMERA_1, capacity=5, nodes=nodes))

    running = []
    for node in nodes:
        free = healthy(instance_devices(stored.views()[0], node, online=True))
        if free:
            stored.by_hand(free[0], node)
            running.append(node)

    assert running == nodes[:5]
    for node in nodes:
        devices = instance_devices(stored.views()[0], node, online=True)
        assert healthy(devices) == [s for s, holder in stored.usage().items() if holder == node]


def test_a_slot_stays_healthy_on_its_holder_only() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": NODE_A})

    assert healthy(instance_devices(slots, NODE_A, online=True)) == [
        f"{CAMERA_1}-0",
        f"{CAMERA_1}-1",
    ]
    assert healthy(instance_devices(slots, NODE_B, online=True)) == [f"{CAMERA_1}-1"]


@pytest.mark.parametrize("value", ["C:x", "Node A", "C::node-a", "a:b:c:d", "x" * 300])
def test_a_slot_with_nonsense_is_healthy_nowhere(value: str) -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": value})

    assert unhealthy(instance_devices(slots, NODE_A, online=True)) == [f"{CAMERA_1}-0"]
    assert healthy(of_camera(slots, unique=False)) == [f"{CAMERA_1}-1"]


def test_a_device_that_is_offline_is_listed_and_unhealthy() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": NODE_A})

    assert unhealthy(instance_devices(slots, NODE_A, online=False)) == [
        f"{CAMERA_1}-0",
        f"{CAMERA_1}-1",
    ]
    assert unhealthy(of_camera(slots, online=False)) == [CAMERA_1]


def test_a_device_that_this_node_does_not_see_adds_nothing_to_the_configuration() -> None:
    assert of_camera(some_slots(nodes=[NODE_B])) == ()
    assert of_camera(some_slots(nodes=[NODE_B]), unique=False) == ()


def test_an_instance_that_is_being_deleted_is_unhealthy() -> None:
    slots = some_slots()
    body = an_instance_object()
    body["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    stored = FakeInstances(body)

    assert healthy(instance_devices(slots, NODE_A, online=True))
    assert healthy(instance_devices(stored.views()[0], NODE_A, online=True)) == []


def test_lowered_capacity_keeps_what_is_held_and_gives_nothing_more() -> None:
    """Slots 3 and 4 are in use; slots 0 and 1 are free, and no more than two uses are allowed."""
    usage = {f"{CAMERA_1}-3": NODE_A, f"{CAMERA_1}-4": NODE_B}
    slots = some_slots(usage=usage, capacity=2)

    assert healthy(instance_devices(slots, NODE_A, online=True)) == [f"{CAMERA_1}-3"]
    assert unhealthy(instance_devices(slots, NODE_A, online=True)) == [
        f"{CAMERA_1}-0",
        f"{CAMERA_1}-1",
    ]


def test_lowered_capacity_gives_as_much_as_is_left_of_it() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-4": NODE_B}, capacity=3)

    devices = instance_devices(slots, NODE_A, online=True)

    assert healthy(devices) == [f"{CAMERA_1}-0", f"{CAMERA_1}-1"]
    assert unhealthy(devices) == [f"{CAMERA_1}-2"]


def test_raised_capacity_lists_new_slots() -> None:
    devices = instance_devices(some_slots(capacity=3), NODE_A, online=True)

    assert healthy(devices) == [f"{CAMERA_1}-{n}" for n in range(3)]


@pytest.mark.parametrize(("capacity", "count"), [(-3, 0), (0, 0), (10**9, 1024)])
def test_capacities_written_by_hand_are_bounded(capacity: int, count: int) -> None:
    assert len(instance_devices(some_slots(capacity=capacity), NODE_A, online=True)) == count


def test_ids_held_before_the_policy_became_unique_stay_listed() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": by_configuration(f"{CAMERA_1}-0")})

    assert healthy(of_camera(slots)) == [f"{CAMERA_1}-0"]
    assert unhealthy(of_camera(slots)) == [CAMERA_1]
    assert healthy(of_camera(slots, NODE_B)) == [CAMERA_1]


def test_ids_held_before_the_policy_became_per_slot_stay_listed() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": by_configuration(CAMERA_1)})

    assert healthy(of_camera(slots, unique=False)) == [CAMERA_1, f"{CAMERA_1}-1"]
    assert unhealthy(of_camera(slots, unique=False)) == [f"{CAMERA_1}-0"]


@pytest.mark.parametrize("vdev", ["0", "akri-onvif-3"])
def test_ids_of_both_of_akris_styles_stay_listed_on_their_holder(vdev: str) -> None:
    slots = some_slots(usage={f"{CAMERA_1}-0": by_configuration(vdev)})

    assert vdev in healthy(of_camera(slots, unique=False))
    assert vdev not in [d.id for d in of_camera(slots, NODE_B, unique=False)]


def test_an_id_written_by_hand_into_another_slot_is_not_listed_for_it() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-1": by_configuration(f"{CAMERA_2}-0")})

    assert [d.id for d in of_camera(slots, unique=False)] == [f"{CAMERA_1}-0", f"{CAMERA_1}-1"]

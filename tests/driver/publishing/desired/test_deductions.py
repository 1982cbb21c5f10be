"""What is offered through DRA beside slots that pods hold through the device plugin."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import DeviceName, InstanceName, NodeName
from driver.instances.instances import Instance
from driver.instances.stored.objects import stored_instance
from driver.publishing.desired.deductions import Deductions, held_slots, holds_slots
from driver.publishing.desired.slices import Features, published
from tests.driver.slot_builders import CAMERA_1, a_camera, an_instance_object

SLOTS = Features(consumable_capacity=True, taints=True)
NONE = Features(consumable_capacity=False, taints=False)
CAMERA = InstanceName(CAMERA_1)


def holding(count: int, *shown: str) -> Deductions:
    return Deductions({("default", CAMERA): count}, frozenset(map(DeviceName, shown)))


def devices(
    instance: Instance, features: Features, deductions: Deductions
) -> dict[str, dict[str, Any]]:
    return {d.name: dict(d.body) for d in published([instance], features, deductions)}


def uses(instance: Instance, features: Features, deductions: Deductions) -> int:
    """How often claims can have the Instance, by what is published of it."""
    return sum(
        int(body["capacity"]["slots"]["value"]) if "capacity" in body else 1
        for body in devices(instance, features, deductions).values()
    )


@pytest.mark.parametrize(
    ("held", "value", "steps"), [(1, "2", {"step": "1"}), pytest.param(2, "1", {}, id="last")]
)
def test_one_device_shows_the_slots_that_are_left(
    held: int, value: str, steps: dict[str, str]
) -> None:
    (body,) = devices(a_camera(capacity=3), SLOTS, holding(held)).values()

    policy = {"default": "1", "validRange": {"min": "1", **steps}}
    assert body["capacity"] == {"slots": {"value": value, "requestPolicy": policy}}
    assert body["allowMultipleAllocations"]


@pytest.mark.parametrize("capacity", [1, 3])
def test_device_of_which_nothing_is_left_is_not_there(capacity: int) -> None:
    assert devices(a_camera(capacity=capacity), SLOTS, holding(capacity)) == {}


def test_devices_for_each_slot_are_so_many_less() -> None:
    camera = a_camera(capacity=3, unique_devices=False)

    assert list(devices(camera, SLOTS, holding(2))) == [f"{CAMERA}-0"]


def test_devices_that_claims_may_have_are_left() -> None:
    camera = a_camera(capacity=3)

    assert list(devices(camera, NONE, holding(1, f"{CAMERA}-2"))) == [f"{CAMERA}-0", f"{CAMERA}-2"]
    assert list(devices(camera, NONE, holding(2, f"{CAMERA}-2"))) == [f"{CAMERA}-2"]


def test_names_do_not_depend_on_what_is_held() -> None:
    camera = a_camera(capacity=12, unique_devices=False)

    found = set(devices(camera, SLOTS, holding(9)))

    assert found < set(devices(camera, SLOTS, Deductions()))


def test_slots_beyond_a_lowered_capacity_leave_nothing() -> None:
    assert uses(a_camera(capacity=2), SLOTS, holding(3)) == 0


def test_instance_of_another_namespace_is_another() -> None:
    other = Deductions({("elsewhere", CAMERA): 3})

    assert uses(a_camera(capacity=3), SLOTS, other) == 3


@given(
    capacity=st.integers(1, 6),
    held=st.integers(0, 8),
    unique=st.booleans(),
    features=st.sampled_from([SLOTS, NONE]),
    shown=st.sets(st.integers(0, 5)),
)
def test_uses_offered_and_slots_held_are_the_capacity(
    capacity: int, held: int, unique: bool, features: Features, shown: set[int]
) -> None:
    camera = a_camera(capacity=capacity, unique_devices=unique)

    deductions = holding(held, *(f"{CAMERA}-{number}" for number in shown))

    assert uses(camera, features, deductions) == max(0, capacity - held)


def test_slots_are_counted_as_the_objects_have_them() -> None:
    usage = {
        f"{CAMERA}-0": "node-a",
        f"{CAMERA}-1": f"C:{CAMERA}-1:node-b",
        f"{CAMERA}-2": "",
        "another-0": "node-a",
        f"{CAMERA}-x": "node-a",
    }
    stored = stored_instance(an_instance_object(CAMERA, usage))

    assert held_slots([stored]) == {("default", CAMERA): 2}
    assert holds_slots([stored], NodeName("node-a"))
    assert not holds_slots([stored], NodeName("node-c"))


def test_value_that_names_no_holder_is_a_slot_that_is_not_free() -> None:
    stored = stored_instance(an_instance_object(CAMERA, {f"{CAMERA}-0": "someone, perhaps"}))

    assert held_slots([stored]) == {("default", CAMERA): 1}
    assert not holds_slots([stored], NodeName("node-a"))

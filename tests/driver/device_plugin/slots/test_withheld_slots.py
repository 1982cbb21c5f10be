"""Slots that a rule of an administrator withholds."""

from __future__ import annotations

import pytest

from driver.api import InstanceName
from driver.device_plugin.slots.withheld_slots import with_withheld
from driver.instances.slots.slots import InstanceSlots, by_name, full_sentence
from driver.shapes.instance_taints import TaintRuleIndex
from kube.shapes.taint_rules import DeviceTaintRule
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, NODE_A, NODE_B, some_slots, two_cameras
from tests.fakes.taint_rules import a_rule

TAINT = "example.com/repair:NoSchedule (DeviceTaintRule repair)"


def withheld(view: InstanceSlots, *rules: DeviceTaintRule) -> InstanceSlots:
    return with_withheld({view.name: view}, TaintRuleIndex(rules), NODE_A)[view.name]


@pytest.mark.parametrize(
    ("selector", "shared", "left"),
    [
        ({"driver": "moorage.dev"}, True, ()),
        ({"driver": "another.example.com"}, True, (0, 1)),
        ({"device": CAMERA_1}, True, ()),
        ({"device": CAMERA_2}, True, (0, 1)),
        ({"device": f"{CAMERA_1}-1"}, True, (0,)),
        ({"device": f"{CAMERA_1}-7"}, True, (0, 1)),
        ({"device": f"{CAMERA_1}-01"}, True, (0, 1)),
        ({"device": f"{CAMERA_1}-1-1"}, True, (0, 1)),
        ({"device": f"{CAMERA_1}-"}, True, (0, 1)),
        ({"pool": "shared/akri-onvif"}, True, ()),
        ({"pool": "node-a"}, True, (0, 1)),
        ({"pool": "shared/akri-onvif"}, False, (0, 1)),
        ({"pool": "node-a"}, False, ()),
        ({"pool": "local/node-a/akri-onvif"}, False, ()),
        ({"pool": "node-b"}, False, (0, 1)),
    ],
)
def test_a_rule_selects_devices_by_the_names_that_they_have_in_slices(
    selector: dict[str, str], shared: bool, left: tuple[int, ...]
) -> None:
    view = some_slots(shared=shared)

    assert withheld(view, a_rule(**selector)).available == left


def test_without_a_rule_nothing_is_made_anew() -> None:
    views = by_name(two_cameras())

    assert with_withheld(views, TaintRuleIndex(), NODE_A) is views
    changed = with_withheld(views, TaintRuleIndex([a_rule(device=CAMERA_1)]), NODE_A)
    assert changed[InstanceName(CAMERA_2)] is views[InstanceName(CAMERA_2)]


def test_a_held_slot_stays_held_and_the_refusal_names_holder_and_rule() -> None:
    view = withheld(some_slots(usage={f"{CAMERA_1}-0": NODE_B}, shared=True), a_rule())

    assert view.available == ()
    assert view.held_by(NODE_B)
    assert full_sentence(view, NODE_A) == (
        f"Instance {CAMERA_1} has no slot left of its 2: slot {CAMERA_1}-0 is held by node node-b"
        f" through the Instance; the taint {TAINT} withholds slots"
    )


def test_slots_beyond_a_lowered_capacity_still_count() -> None:
    usage = {f"{CAMERA_1}-{index}": NODE_B for index in (2, 3)}
    view = some_slots(usage=usage, capacity=3, shared=True)

    found = withheld(view, a_rule(device=f"{CAMERA_1}-0"))

    assert (view.available, found.available) == ((0,), (1,))

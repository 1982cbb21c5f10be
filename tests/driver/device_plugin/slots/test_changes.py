"""How soon slot reconciliation looks into a change of slots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.device_ids import DeviceKey
from driver.device_plugin.slots.changes import Look, look_after
from driver.instances.slots.slots import InstanceSlots, SlotWrite, slot_write
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    NODE_A,
    NODE_B,
    RESOURCE,
    by_configuration,
    some_slots,
)

SLOT_0, SLOT_1 = f"{CAMERA_1}-0", f"{CAMERA_1}-1"
GIVEN = [DeviceKey(f"akri.sh/{CAMERA_1}", SLOT_0), DeviceKey(RESOURCE, CAMERA_1)]


def held(*first_and_second: str) -> InstanceSlots:
    return some_slots(usage=dict(zip((SLOT_0, SLOT_1), first_and_second, strict=False)))


def look(old: InstanceSlots | None, new: InstanceSlots, written: SlotWrite | None = None) -> Look:
    return look_after(old, new, NODE_A, GIVEN, written)


FREE = held()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, FREE, Look.NOW, id="came, perhaps again"),
        pytest.param(FREE, held(NODE_B), Look.NEVER, id="another node's"),
        pytest.param(held(NODE_A, NODE_B), held(NODE_A), Look.NEVER, id="another node's, freed"),
        pytest.param(FREE, held(NODE_A), Look.SOON, id="given"),
        pytest.param(FREE, held(by_configuration(CAMERA_1)), Look.SOON, id="given otherwise"),
        pytest.param(FREE, held("", NODE_A), Look.NOW, id="taken by hand"),
        pytest.param(FREE, held(NODE_A, NODE_A), Look.NOW, id="given, and taken by hand"),
        pytest.param(held("", NODE_A), held(NODE_A), Look.NOW, id="given, another freed by hand"),
        pytest.param(FREE, held(by_configuration("nonsense-0")), Look.NOW, id="by Akri"),
        pytest.param(held(NODE_A), held(by_configuration(CAMERA_1)), Look.NOW, id="another holder"),
        pytest.param(held(NODE_A), FREE, Look.NOW, id="freed by hand"),
    ],
)
def test_what_no_allocate_did_is_looked_into_at_once(
    old: InstanceSlots | None, new: InstanceSlots, expected: Look
) -> None:
    assert look(old, new) is expected


def test_what_slot_reconciliation_writes_itself_is_no_news() -> None:
    old = held(NODE_A, NODE_A)
    release = slot_write(old, NODE_A, {0: None})

    assert look(old, held("", NODE_A), release) is Look.NEVER
    assert look(old, held("", ""), release) is Look.NOW
    assert (
        look(old, held("", NODE_A), slot_write(some_slots(CAMERA_2), NODE_A, {0: None})) is Look.NOW
    )
    assert look(old, replace(held("", NODE_A), uid="of another"), release) is Look.NOW

"""Views of an Instance's slots, and writes of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from driver.api import SLOTS_FINALIZER
from driver.device_ids import DeviceKey
from driver.instances.slots.slot_writes import is_overtaken, merge_patch, slot_write, undo
from driver.instances.slots.slots import (
    InstanceSlots,
    counting,
    full_sentence,
    held_sentence,
    instance_slots,
    slot_devices,
    usage_problems,
)
from driver.instances.stored.device_usage import ByConfiguration, ByInstance, Holder
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    NODE_A,
    NODE_B,
    RESOURCE,
    an_instance_object,
    by_configuration,
    some_slots,
)
from tests.fakes.slot_instances import ConflictError, FakeInstances

USED = {f"{CAMERA_1}-0": NODE_A, f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_B)}


def test_holders_are_read_by_slot() -> None:
    slots = some_slots(usage=USED)

    assert slots.holders == {0: ByInstance(NODE_A), 1: ByConfiguration(CAMERA_1, NODE_B)}
    assert slots.held_by(NODE_A) == {0: ByInstance(NODE_A)}
    assert slots.free == ()


@pytest.mark.parametrize(
    "key", [f"akri.sh/{CAMERA_1}-0", f"{CAMERA_2}-0", f"{CAMERA_1}-00", f"{CAMERA_1}-x", "x"]
)
def test_keys_that_name_no_slot_take_none(key: str) -> None:
    slots = some_slots(usage={key: NODE_B})

    assert slots.free == (0, 1)
    assert slots.unknown_keys == (key,)
    assert usage_problems(slots, NODE_A) == (f"key {key!r} names no slot of Instance {CAMERA_1}",)


def test_an_instance_without_usage_is_free() -> None:
    assert some_slots(deviceUsage=None).free == (0, 1)


@pytest.mark.parametrize(
    ("index", "sentence"),
    [
        (0, "slot akri-onvif-8120fe-0 is held by this node, node-a, through the Instance"),
        (
            1,
            "slot akri-onvif-8120fe-1 is held by node node-b through the Configuration akri-onvif,"
            " as device akri-onvif-8120fe",
        ),
        (2, "slot akri-onvif-8120fe-2 has the value 'C:x', which names no holder"),
        (3, "slot akri-onvif-8120fe-3 is free"),
    ],
)
def test_the_sentence_says_who_holds_a_slot(index: int, sentence: str) -> None:
    slots = some_slots(usage={**USED, f"{CAMERA_1}-2": "C:x"})

    assert held_sentence(slots, index, NODE_A) == sentence


def test_a_value_without_meaning_is_a_problem_for_a_person() -> None:
    slots = some_slots(usage={f"{CAMERA_1}-1": "C:x"})

    assert usage_problems(slots, NODE_A) == (
        "slot akri-onvif-8120fe-1 has the value 'C:x', which names no holder",
    )


def test_a_full_instance_names_all_holders() -> None:
    assert full_sentence(some_slots(usage=USED), NODE_B) == (
        "Instance akri-onvif-8120fe has no slot left of its 2:"
        " slot akri-onvif-8120fe-0 is held by node node-a through the Instance;"
        " slot akri-onvif-8120fe-1 is held by this node, node-b, through the Configuration"
        " akri-onvif, as device akri-onvif-8120fe"
    )
    assert full_sentence(some_slots(capacity=0), NODE_B).endswith("left of its 0")


def test_each_slot_of_a_node_is_for_one_device_of_its_kubelet() -> None:
    usage = {
        f"{CAMERA_1}-0": NODE_A,
        f"{CAMERA_1}-1": by_configuration(CAMERA_1),
        f"{CAMERA_1}-2": by_configuration(f"{CAMERA_1}-2"),
        f"{CAMERA_1}-3": by_configuration("akri-onvif-7"),
        f"{CAMERA_1}-4": by_configuration("0"),
        f"{CAMERA_1}-5": NODE_B,
    }

    assert slot_devices(some_slots(usage=usage, capacity=6), NODE_A) == {
        0: DeviceKey(f"akri.sh/{CAMERA_1}", f"{CAMERA_1}-0"),
        1: DeviceKey(RESOURCE, CAMERA_1),
        2: DeviceKey(RESOURCE, f"{CAMERA_1}-2"),
        3: DeviceKey(RESOURCE, "akri-onvif-7"),
        4: DeviceKey(RESOURCE, "0"),
    }


@pytest.mark.parametrize("device", [CAMERA_2, f"{CAMERA_2}-1", f"{CAMERA_1}-0"])
def test_the_id_of_another_slot_or_instance_is_for_no_device(device: str) -> None:
    slots = some_slots(usage={f"{CAMERA_1}-1": by_configuration(device)})

    assert slot_devices(slots, NODE_A) == {1: None}


def test_one_id_on_two_slots_is_for_the_lower_one() -> None:
    usage = dict.fromkeys((f"{CAMERA_1}-0", f"{CAMERA_1}-1"), by_configuration(CAMERA_1))

    assert slot_devices(some_slots(usage=usage), NODE_A) == {
        0: DeviceKey(RESOURCE, CAMERA_1),
        1: None,
    }


def test_of_one_name_in_two_namespaces_the_one_whose_slots_are_held_counts() -> None:
    left = with_metadata(
        an_instance_object(usage=USED), namespace="left", deletionTimestamp="2026-11-21T12:00:00Z"
    )
    free = with_metadata(
        an_instance_object(), namespace="left", deletionTimestamp="2026-11-21T12:00:00Z"
    )
    new = some_slots()

    assert counting([new, left]) is left
    assert counting([free, new]) is new
    assert counting([]) is None


def test_a_write_takes_and_releases_and_keeps_the_rest() -> None:
    stored = FakeInstances(an_instance_object(usage=USED, capacity=3))

    write = slot_write(stored.views()[0], NODE_A, {0: None, 2: ByInstance(NODE_A)})
    stored.write([write])

    assert stored.usage() == {
        f"{CAMERA_1}-1": by_configuration(CAMERA_1, NODE_B),
        f"{CAMERA_1}-2": NODE_A,
    }


def test_a_write_sent_again_conflicts() -> None:
    """So a conflict proves that no earlier sending can land any more."""
    stored = FakeInstances.of(CAMERA_1)
    write = slot_write(stored.views()[0], NODE_A, {0: ByInstance(NODE_A)})
    stored.write([write])

    with pytest.raises(ConflictError):
        stored.write([write])


def test_a_patch_names_uid_and_version() -> None:
    write = slot_write(some_slots(), NODE_A, {1: None, 0: ByInstance(NODE_A)})

    assert merge_patch(write) == {
        "metadata": {
            "uid": f"uid-of-{CAMERA_1}",
            "resourceVersion": "1",
            "finalizers": [SLOTS_FINALIZER],
        },
        "spec": {"deviceUsage": {f"{CAMERA_1}-0": NODE_A, f"{CAMERA_1}-1": None}},
    }


def with_metadata(slots: dict[str, Any], **metadata: Any) -> InstanceSlots:
    return instance_slots({**slots, "metadata": {**slots["metadata"], **metadata}})


@pytest.mark.parametrize(
    ("usage", "finalizers", "changes", "after"),
    [
        ({}, ["other"], {0: ByInstance(NODE_A)}, ("other", SLOTS_FINALIZER)),
        ({f"{CAMERA_1}-0": NODE_A}, [SLOTS_FINALIZER], {1: ByInstance(NODE_A)}, None),
        ({f"{CAMERA_1}-0": NODE_A}, [], {1: ByInstance(NODE_A)}, (SLOTS_FINALIZER,)),
        ({f"{CAMERA_1}-0": NODE_A}, ["other", SLOTS_FINALIZER], {0: None}, ("other",)),
        ({f"{CAMERA_1}-0": NODE_A, f"{CAMERA_1}-1": NODE_B}, [SLOTS_FINALIZER], {0: None}, None),
        ({f"{CAMERA_1}-0": NODE_A}, [], {0: None}, None),
    ],
)
def test_an_instance_is_kept_while_slots_are_held(
    usage: dict[str, str],
    finalizers: list[str],
    changes: dict[int, Holder | None],
    after: tuple[str, ...] | None,
) -> None:
    slots = with_metadata(an_instance_object(usage=usage), finalizers=finalizers)

    assert slot_write(slots, NODE_A, changes).finalizers == after


def test_no_finalizer_is_added_to_what_is_being_deleted() -> None:
    """The API server would refuse the whole write."""
    slots = with_metadata(an_instance_object(), deletionTimestamp="2026-11-21T12:00:00Z")

    assert slot_write(slots, NODE_A, {0: ByInstance(NODE_A)}).finalizers is None


@pytest.mark.parametrize(("given", "overtaken"), [(9.9, False), (10.0, True), (10.1, True)])
def test_a_release_is_overtaken_by_an_allocate_since_its_evidence(
    given: float, overtaken: bool
) -> None:
    device = DeviceKey(RESOURCE, CAMERA_1)
    write = slot_write(some_slots(), NODE_A, {0: None}, {device: 10.0})

    assert is_overtaken(write, {device: given}) == overtaken
    assert not is_overtaken(write, {})


def undone(after: InstanceSlots) -> dict[int, object] | None:
    """What is undone of a write that took slot 0, where the object is like this now."""
    taken = slot_write(some_slots(), NODE_A, {0: ByInstance(NODE_A)})
    write = undo(taken, after)
    return None if write is None else dict(write.changes)


def test_undo_releases_what_is_still_as_it_was_written() -> None:
    other_uid = an_instance_object(usage={f"{CAMERA_1}-0": NODE_A})
    other_uid["metadata"]["uid"] = "another"

    assert undone(some_slots(usage={f"{CAMERA_1}-0": NODE_A})) == {0: None}
    assert undone(some_slots(usage={f"{CAMERA_1}-0": NODE_B})) is None
    assert undone(some_slots()) is None
    assert undone(FakeInstances(other_uid).views()[0]) is None


def test_many_slots_are_looked_at_once_each() -> None:
    """Each change of an Instance looks at all of its slots, while the kubelet waits."""

    def seconds(count: int) -> float:
        usage = {f"{CAMERA_1}-{index}": NODE_A for index in range(count)}
        slots = some_slots(CAMERA_1, usage, capacity=count)
        began = time.thread_time()
        assert len(slot_devices(slots, NODE_A)) == count
        return time.thread_time() - began

    few = min(seconds(50) for _ in range(5))
    assert min(seconds(1000) for _ in range(3)) < 80 * few  # 20 times as many, not 400 times

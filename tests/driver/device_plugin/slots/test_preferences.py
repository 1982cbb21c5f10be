"""GetPreferredAllocation: which devices a container is given when there are several."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from driver.device_plugin.slots.preferences import preferred_devices
from driver.instances.slots.slots import by_name
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, NODE_B, two_cameras

ALL = [f"{camera}-{slot}" for camera in (CAMERA_1, CAMERA_2) for slot in (0, 1)]


def preferred(
    available: Sequence[str], size: int, *must: str, used: Sequence[str] = ()
) -> list[str]:
    """The choice; slots in `used` are held by another node."""
    instances = by_name(two_cameras(dict.fromkeys(used, NODE_B)))
    return list(preferred_devices(available, must, size, instances))


def test_two_devices_are_of_two_instances() -> None:
    assert preferred(ALL, 2) == [f"{CAMERA_1}-0", f"{CAMERA_2}-0"]


def test_three_of_two_cameras_are_two_of_one_and_one_of_the_other() -> None:
    """The prose of line 92 of the document on Configuration-level resources."""
    assert preferred(ALL, 3) == [f"{CAMERA_1}-0", f"{CAMERA_2}-0", f"{CAMERA_1}-1"]


def test_both_slots_of_one_camera_where_nothing_else_is_left() -> None:
    """The prose of line 86: the other camera's slots are taken by other nodes."""
    left = [f"{CAMERA_2}-1", f"{CAMERA_2}-0"]

    assert preferred(left, 2, used=ALL[:2]) == [f"{CAMERA_2}-0", f"{CAMERA_2}-1"]


def test_what_must_be_included_counts_for_its_instance() -> None:
    assert preferred(ALL, 2, f"{CAMERA_1}-1") == [f"{CAMERA_1}-1", f"{CAMERA_2}-0"]


def test_the_instance_with_most_slots_left_is_first() -> None:
    assert preferred(ALL[1:], 1, used=ALL[:1]) == [f"{CAMERA_2}-0"]


def test_whole_instances_are_told_apart() -> None:
    assert preferred([CAMERA_2, CAMERA_1], 2) == [CAMERA_1, CAMERA_2]


def test_the_order_of_the_kubelet_does_not_matter() -> None:
    assert preferred(ALL[::-1], 3) == preferred(ALL, 3)


@pytest.mark.parametrize("size", [5, 4])
def test_too_few_are_all(size: int) -> None:
    assert sorted(preferred(ALL, size)) == ALL


def test_more_that_must_be_included_than_wanted_are_all_of_those() -> None:
    assert preferred(ALL, 1, *ALL[:2]) == ALL[:2]


def test_ids_of_unknown_making_are_taken_as_they_are() -> None:
    assert preferred(["akri-onvif-1", "akri-onvif-0"], 1) == ["akri-onvif-0"]

"""Adoption of what the API server made of a slice."""

from __future__ import annotations

from typing import Any

import pytest

from driver.publishing.written.adoption import Adopted, adopt, feature_gates
from driver.publishing.written.resource_slices import PerDeviceScope, SliceContent, slice_content

TAINT = {"key": "k", "effect": "NoSchedule"}


def content(*devices: dict[str, Any], **spec: Any) -> SliceContent:
    return slice_content({"allNodes": True, "devices": list(devices), **spec})


WANTED = content({"name": "a", "taints": [TAINT]})
STORED = content({"name": "a"})


def test_a_slice_that_was_stored_as_wanted_leaves_nothing_to_remember() -> None:
    stored = content({"name": "a", "taints": [{**TAINT, "timeAdded": "2026-11-21T12:00:00Z"}]})

    assert adopt(Adopted(), 0, WANTED, stored) == Adopted()


def test_what_became_of_a_slice_is_as_good_as_what_was_wanted() -> None:
    adopted = adopt(Adopted(), 0, WANTED, STORED)

    assert adopted.holds(0, WANTED, STORED)
    assert not Adopted().holds(0, WANTED, STORED)


@pytest.mark.parametrize(
    ("index", "wanted", "stored"),
    [
        (1, WANTED, STORED),
        (0, content({"name": "b", "taints": [TAINT]}), STORED),
        (0, WANTED, content({"name": "b"})),
        (0, WANTED, content({"name": "a"}, nodeName="x")),
    ],
)
def test_nothing_else_is(index: int, wanted: SliceContent, stored: SliceContent) -> None:
    assert not adopt(Adopted(), 0, WANTED, STORED).holds(index, wanted, stored)


def test_a_slice_is_remembered_only_as_it_was_written_last() -> None:
    other = content({"name": "b", "taints": [TAINT]})
    once = adopt(Adopted(), 0, WANTED, STORED)

    twice = adopt(once, 0, other, content({"name": "b"}))

    assert not twice.holds(0, WANTED, STORED)
    assert not adopt(once, 0, other, other).slices


@pytest.mark.parametrize(
    ("wanted", "stored", "dropped", "gates"),
    [
        (WANTED, STORED, {"devices[].taints"}, ("DRADeviceTaints",)),
        (
            content({"name": "a", "allowMultipleAllocations": True, "capacity": {"s": {"v": "1"}}}),
            content({"name": "a", "capacity": {"s": {}}}),
            {"devices[].allowMultipleAllocations", "devices[].capacity"},
            ("DRAConsumableCapacity",),
        ),
        (
            SliceContent(PerDeviceScope(), (), '[{"name":"x"}]'),
            SliceContent(None),
            {"perDeviceNodeSelection", "sharedCounters"},
            ("DRAPartitionableDevices",),
        ),
        (WANTED, content(), {"devices[].name", "devices[].taints"}, ("DRADeviceTaints",)),
        (
            STORED,
            content({"name": "a", "attributes": {"x": {"int": 1}}}),
            {"devices[].attributes"},
            (),
        ),
    ],
)
def test_what_did_not_survive_is_named_with_the_features_that_would_keep_it(
    wanted: SliceContent, stored: SliceContent, dropped: set[str], gates: tuple[str, ...]
) -> None:
    adopted = adopt(Adopted(), 0, wanted, stored)

    assert adopted.dropped == dropped
    assert feature_gates(adopted.dropped) == gates


def test_what_was_dropped_once_stays_known() -> None:
    adopted = adopt(adopt(Adopted(), 0, WANTED, STORED), 1, WANTED, STORED)

    assert adopted.dropped == {"devices[].taints"}
    assert adopt(adopted, 0, WANTED, WANTED).dropped == {"devices[].taints"}

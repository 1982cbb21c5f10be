"""ResourceSlices as values."""

from __future__ import annotations

from typing import Any

import pytest

from driver.api import NodeName
from driver.publishing.apply.resource_slices import (
    AllNodesScope,
    NodeScope,
    Scope,
    hostnames,
    scope_fields,
    slice_content,
    slice_device,
    stored_slice,
)
from driver.publishing.apply.slice_writes import index_of
from tests.driver.publishing.apply.test_pools_store import a_slice

SECONDS = "2026-11-21T12:00:{}Z"


def tainted(time: str | None = None, **fields: str) -> dict[str, Any]:
    taint = {"key": "k", "effect": "NoSchedule", **fields}
    return {"name": "a", "taints": [{**taint, "timeAdded": time} if time else taint]}


def test_the_order_of_fields_does_not_matter() -> None:
    one = {"name": "a", "attributes": {"x": {"int": 1}, "y": {"int": 2}}}
    other = {"attributes": {"y": {"int": 2}, "x": {"int": 1}}, "name": "a"}

    assert slice_device(one).equals(slice_device(other))


@pytest.mark.parametrize("empty", [None, [], {}])
def test_an_empty_field_is_as_good_as_none(empty: object) -> None:
    assert slice_device({"name": "a", "taints": empty, "capacity": empty}).equals(
        slice_device({"name": "a"})
    )


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (None, SECONDS.format("00")),
        (SECONDS.format("00"), SECONDS.format("01")),
        (SECONDS.format("00"), "2026-11-21T13:00:00+01:00"),
        (SECONDS.format("00.4"), SECONDS.format("00")),
        ("no time", SECONDS.format("00")),
        ("2026-11-21T12:00:00", SECONDS.format("00")),
        ("9999-12-31T23:59:59.9Z", SECONDS.format("00")),
    ],
)
def test_times_that_say_the_same_are_equal(mine: str | None, theirs: str) -> None:
    assert slice_device(tainted(mine)).equals(slice_device(tainted(theirs)))
    assert slice_device(tainted(theirs)).equals(slice_device(tainted(mine)))


@pytest.mark.parametrize(
    "other",
    [
        tainted(SECONDS.format("02")),
        tainted(SECONDS.format("00"), value="v"),
        tainted(SECONDS.format("00"), effect="NoExecute"),
        {"name": "a"},
    ],
)
def test_another_taint_or_time_is_a_difference(other: dict[str, Any]) -> None:
    assert not slice_device(tainted(SECONDS.format("00"))).equals(slice_device(other))


def test_a_taint_takes_its_own_time_else_the_known_one_else_none() -> None:
    known = slice_device(tainted(SECONDS.format("07"))).taint_times()

    assert slice_device(tainted(SECONDS.format("01.6"))).body(known) == tainted(
        SECONDS.format("02")
    )
    assert slice_device(tainted()).body(known) == tainted(SECONDS.format("07"))
    assert slice_device(tainted(value="v")).body(known) == tainted(value="v")
    assert slice_device(tainted()).body({}) == tainted()


@pytest.mark.parametrize(
    "scope",
    [
        NodeScope(NodeName("a")),
        AllNodesScope(),
        hostnames(frozenset("ab")),
        None,
    ],
)
def test_a_scope_is_read_as_it_is_written(scope: Scope | None) -> None:
    assert slice_content(scope_fields(scope)).scope == scope


def test_the_nodes_of_a_scope_have_no_order() -> None:
    assert hostnames(frozenset("abc")) == hostnames(frozenset("cba"))


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        ({"devices": [{"name": "a"}, {"name": "b"}]}, True),
        ({"devices": [{"name": "b"}, {"name": "a"}]}, False),
        ({"devices": [{"name": "a"}]}, False),
        ({"devices": [{"name": "a"}, {"name": "b"}], "allNodes": True}, False),
    ],
)
def test_contents_are_equal_when_all_they_say_is(other: dict[str, Any], equal: bool) -> None:
    content = slice_content({"devices": [{"name": "a"}, {"name": "b"}]})

    assert content.equals(slice_content(other)) is equal


def test_a_view_keeps_of_the_metadata_what_an_update_must_send_back() -> None:
    obj = a_slice(generation=4, count=2)
    obj["metadata"].update(generateName="00000-", finalizers=["f"], managedFields=[{}])

    view = stored_slice(obj)

    assert (view.generation, view.slice_count, view.resource_version) == (4, 2, "1")
    assert view.metadata == {"generateName": "00000-", "finalizers": ["f"]}


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("00000-driver-owner-suffix", 0),
        ("0001a-driver", 26),
        ("186a0-", 100_000),
        ("00000", None),
        ("0000g-", None),
        ("-0001-", None),
        ("100000-", None),
        ("0x001-", None),
        ("random-name", None),
    ],
)
def test_a_name_bears_its_index_in_five_digits(name: str, index: int | None) -> None:
    assert index_of(stored_slice(a_slice(name))) == index

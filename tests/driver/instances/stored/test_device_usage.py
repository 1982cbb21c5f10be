"""Values of `deviceUsage`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import NodeName
from driver.instances.stored.device_usage import (
    ByConfiguration,
    ByInstance,
    UnknownHolder,
    holder_value,
    is_held_by,
    parse_holder,
)
from tests.driver.slot_builders import NODE_A, NODE_B


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_or_absent_value_is_free(value: str | None) -> None:
    assert parse_holder(value) is None
    assert holder_value(None) == ""


def test_a_node_holds_through_the_instance() -> None:
    assert parse_holder("node-a.example.com") == ByInstance(NodeName("node-a.example.com"))


@pytest.mark.parametrize(
    "device", ["0", "akri-onvif-3", "akri-onvif-8120fe", "akri-onvif-8120fe-1"]
)
def test_every_style_of_device_id_is_read(device: str) -> None:
    """Of Akri up to 0.12, of Akri since 0.13, and of both policies here."""
    assert parse_holder(f"C:{device}:node-a") == ByConfiguration(device, NODE_A)


@pytest.mark.parametrize(
    "value",
    ["C:x", "C:x:", "C::node-a", "C:x:y:node-a", "D:x:node-a", "Node A", "-a", "a" * 254, 7.5, [1]],
)
def test_other_values_are_held_by_nobody_that_is_known(value: object) -> None:
    holder = parse_holder(value)

    assert holder == UnknownHolder(str(value))
    assert not is_held_by(holder, NODE_A)


@given(st.text() | st.from_regex(r"(C:[a-z0-9-]*:)?[a-z-]*", fullmatch=True))
def test_what_is_read_is_written_again(value: str) -> None:
    assert holder_value(parse_holder(value)) == value


@pytest.mark.parametrize("holder", [ByInstance(NODE_A), ByConfiguration("x", NODE_A)])
def test_a_node_holds_what_names_it_in_either_way(
    holder: ByInstance | ByConfiguration,
) -> None:
    assert is_held_by(holder, NODE_A)
    assert not is_held_by(holder, NODE_B)
    assert not is_held_by(None, NODE_A)

"""Ids of devices and names of resources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName, InstanceName
from driver.device_ids import (
    configuration_resource,
    contested_instances,
    instance_resource,
    is_own_device,
    name_problems,
    parse_slot_id,
    slot_id,
)
from tests.driver.builders import a_configuration
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, CONFIGURATION


def test_only_resources_carry_the_prefix() -> None:
    assert instance_resource(CAMERA_1) == "akri.sh/akri-onvif-8120fe"
    assert configuration_resource(CONFIGURATION) == "akri.sh/akri-onvif"
    assert slot_id(CAMERA_1, 1) == "akri-onvif-8120fe-1"


@given(st.from_regex(r"[a-z0-9.-]{1,40}-[0-9a-f]{6}", fullmatch=True), st.integers(0, 1023))
def test_a_slot_is_parsed_back_and_its_instance_is_none(name: str, index: int) -> None:
    instance = InstanceName(name)

    assert parse_slot_id(slot_id(instance, index)) == (instance, index)
    assert parse_slot_id(instance) is None


@pytest.mark.parametrize(
    "text", ["", "-", "-1", "cam", "cam-", "cam-01", "cam--1x", "cam-1024", "cam-²", "cam-1 "]
)
def test_other_texts_are_no_slots(text: str) -> None:
    assert parse_slot_id(text) is None


@pytest.mark.parametrize(
    ("device", "own"),
    [
        ("akri-onvif-8120fe", True),
        ("akri-onvif-8120fe-1", True),
        ("akri-onvif-3", False),
        ("0", False),
        ("other-8120fe-1", False),
        ("akri-onvif-8120fe-x", False),
    ],
)
def test_ids_of_akris_making_are_told_apart(device: str, own: bool) -> None:
    assert is_own_device(device, ConfigurationName("akri-onvif")) == own


def test_an_instance_gives_way_to_a_configuration_of_its_name() -> None:
    configurations = [CONFIGURATION, ConfigurationName("akri-onvif-8120fe")]

    assert contested_instances(configurations, [CAMERA_1, CAMERA_2]) == {CAMERA_1}


def test_a_name_that_fits_has_no_problem() -> None:
    longest = "c" * (63 - len("-a1b2c3-9"))

    assert list(name_problems(a_configuration(longest, capacity=10))) == []


def test_a_name_that_is_too_long_says_how_long_it_may_be() -> None:
    problems = name_problems(a_configuration("c" * 54, capacity=11))

    assert [str(p) for p in problems] == [
        "metadata.name: The name has 54 characters, so device ids have 64 at capacity 11. The"
        " kubelet accepts 63: shorten the name to 53 characters."
    ]


def test_a_name_that_is_no_resource_is_named() -> None:
    problems = list(name_problems(a_configuration("-cam")))

    assert [p.path for p in problems] == ["metadata.name"]
    assert "akri.sh/-cam" in problems[0].message

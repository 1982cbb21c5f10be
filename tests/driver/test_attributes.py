"""Attributes of published devices."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.attributes import ENTRIES_LIMIT, attributes
from driver.instances import Instance, instance_of
from driver.names import attribute_value
from tests.driver.builders import NODE, a_configuration, a_device


def an_instance(**properties: str) -> Instance:
    return instance_of(a_device(properties=properties), a_configuration("cam"), NODE)


def values(instance: Instance, capacities: int = 0) -> dict[str, str]:
    return {
        name: value["string"] for name, value in attributes(instance, capacities=capacities).items()
    }


def test_a_text_of_64_bytes_stays_as_it_is() -> None:
    assert attribute_value("x" * 64) == "x" * 64


def test_a_longer_text_keeps_its_beginning_and_gets_a_hash_of_all_of_it() -> None:
    first, second = attribute_value("x" * 64 + "a"), attribute_value("x" * 64 + "b")

    assert first.startswith("x" * 53 + "-")
    assert len(first) == len(second) == 64
    assert first != second


def test_a_text_is_cut_between_characters_never_inside_one() -> None:
    value = attribute_value("é" * 40)

    assert value.startswith("é" * 26 + "-")
    assert len(value.encode()) <= 64


def test_the_limit_of_a_label_gives_a_valid_label_value() -> None:
    value = attribute_value("a." * 40, limit=63)

    assert len(value) <= 63
    assert value[-1] in string.hexdigits


@given(st.text(alphabet=st.characters(codec="utf-8")), st.integers(min_value=16, max_value=80))
def test_every_text_fits_its_limit_and_the_result_is_not_shortened_again(
    text: str, limit: int
) -> None:
    value = attribute_value(text, limit=limit)

    assert len(value.encode()) <= limit
    assert attribute_value(value, limit=limit) == value


def test_configuration_and_instance_are_always_there() -> None:
    instance = an_instance()

    assert values(instance) == {"configuration": "cam", "instance": instance.name}


def test_properties_keep_their_names_and_values() -> None:
    assert values(an_instance(UDEV_DEVNODE="/dev/loop7", _x9=""))["UDEV_DEVNODE"] == "/dev/loop7"
    assert values(an_instance(_x9=""))["_x9"] == ""


@pytest.mark.parametrize("name", ["9lives", "a-b", "a.b", "a" * 33, "", "é", "a\n"])
def test_a_property_whose_name_is_no_short_identifier_is_left_out(name: str) -> None:
    assert name not in attributes(an_instance(**{name: "value"}))


@pytest.mark.parametrize("value", ["x" * 65, "é" * 33, "a\nb", "\x00", "\x7f", "\x85", "\udcff"])
def test_a_property_whose_value_does_not_fit_is_left_out(value: str) -> None:
    assert "name" not in attributes(an_instance(name=value))


def test_ours_win_over_properties_of_the_same_name() -> None:
    instance = an_instance(configuration="other", instance="other")

    assert values(instance) == {"configuration": "cam", "instance": instance.name}


def test_the_first_properties_by_name_get_the_room_that_is_left() -> None:
    names = [f"P{number:02}" for number in range(40)]
    instance = an_instance(**dict.fromkeys(reversed(names), "value"))

    assert sorted(attributes(instance, capacities=1))[:-2] == names[:29]
    assert len(attributes(instance)) == ENTRIES_LIMIT

"""Attributes of published devices."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.instances.instances import Instance, instance_of
from driver.names import attribute_value
from driver.publishing.desired.attributes import ENTRIES_LIMIT, attributes
from tests.driver.builders import NODE, a_configuration, a_device


def an_instance(**properties: str) -> Instance:
    return instance_of(a_device(properties=properties), a_configuration("cam"), NODE)


def a_labelled_instance(
    user: dict[str, Any], device: dict[str, str], **properties: str
) -> Instance:
    configuration = a_configuration("cam", attributes=user)
    return instance_of(a_device(properties=properties, attributes=device), configuration, NODE)


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


def test_the_configurations_attributes_keep_their_types_and_win() -> None:
    user = {
        "floor": {"int": 3},
        "example.com/owner": {"string": "line 1"},
        "ID_BUS": {"bool": True},
    }
    found = attributes(a_labelled_instance(user, {"ID_BUS": "usb", "ID_MODEL": "C270"}))

    assert {name: found[name] for name in user} == user
    assert found["ID_MODEL"] == {"string": "C270"}


def test_kubernetes_own_come_before_properties_and_these_before_the_rest() -> None:
    standard = "resource.kubernetes.io/pcieRoot"
    device = {standard: "pci0000:00", "Z": "1", "A": "1"}

    names = list(attributes(a_labelled_instance({"user": {"int": 1}}, device, P="1", Z="2")))

    assert names == ["configuration", "instance", "user", standard, "P", "Z", "A"]


def test_a_property_may_be_one_of_kubernetes_own() -> None:
    names = [f"P{number:02}" for number in range(40)]
    properties = {**dict.fromkeys(names, ""), "resource.kubernetes.io/pciBusID": "0000:01:00.0"}

    found = values(an_instance(**properties))

    assert found["resource.kubernetes.io/pciBusID"] == "0000:01:00.0"
    assert len(found) == ENTRIES_LIMIT


def test_of_a_property_and_an_attribute_of_one_name_the_property_counts() -> None:
    assert values(a_labelled_instance({}, {"Z": "1"}, Z="2"))["Z"] == "2"


@pytest.mark.parametrize("name", ["example.com/a", "resource.kubernetes.io/a-b", "a/b/c"])
def test_a_handler_gives_no_attributes_of_other_domains(name: str) -> None:
    assert name not in attributes(a_labelled_instance({}, {name: "1"}))


def test_nothing_crowds_out_what_the_user_gave() -> None:
    user = {f"u{i}": {"int": i} for i in range(16)}
    properties = {f"P{i:02}": "" for i in range(40)}
    found = attributes(a_labelled_instance(user, {}, **properties), capacities=1)

    assert found.keys() >= user.keys()
    assert len(found) == ENTRIES_LIMIT - 1


@pytest.mark.parametrize("where", ["user", "handler", "another"])
def test_the_numa_node_is_a_number(where: str) -> None:
    name = "resource.kubernetes.io/numaNode"
    told = {name: "3"}
    instance = {
        "user": a_labelled_instance({name: {"int": 3}}, {name: "0"}),
        "handler": a_labelled_instance({}, told),
        "another": an_instance(**told),
    }[where]

    assert attributes(instance)[name] == {"int": 3}


@pytest.mark.parametrize("told", ["", "-1", "near", "1.5", "\u0663", "9" * 30])
def test_what_is_no_numa_node_is_left_out(told: str) -> None:
    name = "resource.kubernetes.io/numaNode"

    assert name not in attributes(an_instance(**{name: told}))

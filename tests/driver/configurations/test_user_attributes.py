"""Attributes that users write into a Configuration."""

from __future__ import annotations

from typing import Any

import pytest

from driver.configurations.user_attributes import attribute_problems, user_attributes

VALUE = {"int": 1}


def problems(given: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in attribute_problems(given)]


@pytest.mark.parametrize(
    "value",
    [
        {"string": ""},
        {"string": "é" * 32},
        {"int": -(2**63)},
        {"int": 2**63 - 1},
        {"bool": False},
        {"version": "1.2.3"},
        {"version": "0.0.0-alpha.1.x-y+build.007"},
    ],
)
def test_values_of_every_type_are_taken(value: dict[str, Any]) -> None:
    assert problems({"floor": value}) == []
    assert user_attributes({"floor": value}) == {"floor": value}


@pytest.mark.parametrize("name", ["floor", "_x9", "a" * 32, "example.com/owner", "a-b.c/D"])
def test_names_are_identifiers_with_or_without_a_domain(name: str) -> None:
    assert problems({name: VALUE}) == []
    assert user_attributes({name: VALUE}) == {name: VALUE}


def test_nothing_given_is_nothing() -> None:
    assert (problems(None), problems({}), user_attributes(None)) == ([], [], {})


def test_our_own_domain_is_not_written_in_slices() -> None:
    assert problems({"moorage.dev/floor": VALUE}) == []
    assert user_attributes({"moorage.dev/floor": VALUE}) == {"floor": VALUE}


IDENTIFIER = "The name must be a C identifier of at most 32 characters."
DOMAIN = "The part before the / must be a domain of at most 63 characters."
RESERVED = "The domains kubernetes.io and k8s.io are reserved for Kubernetes."
OURS = "Moorage sets this attribute on every device; choose another name."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", IDENTIFIER),
        ("a-b", IDENTIFIER),
        ("9a", IDENTIFIER),
        ("a" * 33, IDENTIFIER),
        ("a\n", IDENTIFIER),
        ("example.com/", IDENTIFIER),
        ("/a", DOMAIN),
        ("Example.com/a", DOMAIN),
        ("a..b/c", DOMAIN),
        ("a/b/c", DOMAIN),
        (f"{'a' * 64}/b", DOMAIN),
        ("kubernetes.io/a", RESERVED),
        ("resource.kubernetes.io/pcieRoot", RESERVED),
        ("x.k8s.io/a", RESERVED),
        ("configuration", OURS),
        ("moorage.dev/instance", OURS),
    ],
)
def test_other_names_are_refused(name: str, sentence: str) -> None:
    assert problems({name: VALUE}) == [(f"spec.attributes[{name}]", sentence)]


def test_domains_that_only_look_like_kubernetes_are_taken() -> None:
    assert problems({"notkubernetes.io/a": VALUE}) == []


def test_one_attribute_under_two_names_is_refused() -> None:
    assert problems({"floor": VALUE, "moorage.dev/floor": VALUE}) == [
        (
            "spec.attributes[moorage.dev/floor]",
            "floor is the same attribute and is given, too; remove one of them.",
        )
    ]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"int": 2**63}, "9223372036854775808 is not an integer of 64 bits."),
        ({"int": 2.0}, "2.0 is not an integer of 64 bits."),
        ({"int": 1.5}, "1.5 is not an integer of 64 bits."),
        ({"string": "é" * 33}, "The value has 66 bytes; at most 64 are allowed."),
        ({"version": "1.2"}, "'1.2' is not a version such as 1.2.3."),
        ({"version": "v1.2.3"}, "'v1.2.3' is not a version such as 1.2.3."),
        ({"version": "01.2.3"}, "'01.2.3' is not a version such as 1.2.3."),
        ({"version": "1.2.3-01"}, "'1.2.3-01' is not a version such as 1.2.3."),
    ],
)
def test_other_values_are_refused(value: dict[str, Any], sentence: str) -> None:
    assert problems({"floor": value}) == [("spec.attributes[floor]", sentence)]

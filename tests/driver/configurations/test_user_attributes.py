"""Attributes that users write into a Configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import Problem
from driver.configurations.user_attributes import attribute_problems, user_attributes

VALUE = {"int": 1}


def problems(given: object) -> list[tuple[str, str]]:
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


IDENTIFIER = "The name must be an identifier of C, of at most 32 characters."
DOMAIN = "What stands before the / must be a domain of at most 63 characters."
RESERVED = "The domains kubernetes.io and k8s.io are Kubernetes' own."
OURS = "Every device has this attribute already, and others rely on it."


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
        ("spec.attributes[moorage.dev/floor]", "floor is the same attribute, and is given, too.")
    ]


ONE = "One of string, int, bool, version must be given, as in {int: 3}."


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, ONE),
        (3, ONE),
        ({}, ONE),
        ({"int": 1, "bool": True}, ONE),
        ({"strings": ["a"]}, ONE),
        ({"int": True}, "True is no integer of 64 bits."),
        ({"int": 1.5}, "1.5 is no integer of 64 bits."),
        ({"int": 2**63}, "9223372036854775808 is no integer of 64 bits."),
        ({"bool": 1}, "1 is neither true nor false."),
        ({"string": 1}, "1 is not a string."),
        ({"string": "é" * 33}, "66 bytes are too many; 64 may be used."),
        ({"string": "\ud800"}, "Half a character (a lone surrogate) is no text."),
        ({"version": "1.2"}, "'1.2' is no version such as 1.2.3."),
        ({"version": "v1.2.3"}, "'v1.2.3' is no version such as 1.2.3."),
        ({"version": "01.2.3"}, "'01.2.3' is no version such as 1.2.3."),
        ({"version": "1.2.3-01"}, "'1.2.3-01' is no version such as 1.2.3."),
    ],
)
def test_other_values_are_refused(value: object, sentence: str) -> None:
    assert problems({"floor": value}) == [("spec.attributes[floor]", sentence)]


def test_too_many_are_refused() -> None:
    assert problems({f"a{i}": VALUE for i in range(16)}) == []
    assert problems({f"a{i}": VALUE for i in range(17)}) == [
        ("spec.attributes", "17 are too many; 16 may be given.")
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["int", "string"]), children)
    ),
    max_leaves=5,
)


@given(JSON)
def test_anything_is_attributes_or_has_problems(value: object) -> None:
    found = list(attribute_problems(value))

    assert all(isinstance(problem, Problem) for problem in found)
    if not found:
        assert all(len(each) == 1 for each in user_attributes(value).values())

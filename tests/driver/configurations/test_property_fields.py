"""`discoveryProperties` as users write them: what is taken, and where the flaws are."""

from __future__ import annotations

from typing import Any

import pytest

from driver.api import ValueReference
from driver.configurations.conditions import conditions
from driver.configurations.configurations import judge
from driver.handlers.properties.discovery_properties import (
    MOST_PROPERTIES,
    PATH,
    discovery_properties,
    property_problems,
)
from driver.models import configuration_problems
from tests.driver.builders import a_configuration_object


def referring(field: str = "secretKeyRef", **reference: Any) -> list[dict[str, Any]]:
    given = {"name": "cameras", "key": "password", **reference}
    given = {name: value for name, value in given.items() if value is not None}
    return [{"name": "p", "valueFrom": {field: given}}]


def flaws(given: Any) -> list[tuple[str, str]]:
    """Paths below `discoveryProperties`, and sentences."""
    found = property_problems(given)
    return [(problem.path.removeprefix(PATH), problem.message) for problem in found]


@pytest.mark.parametrize("nothing", [None, []])
def test_nothing_given_is_nothing(nothing: Any) -> None:
    assert (flaws(nothing), discovery_properties(nothing)) == ([], {})


def test_values_and_references_are_taken_with_akris_defaults() -> None:
    given: list[dict[str, Any]] = [
        {"name": "username_default", "value": ""},
        {"name": "a", "valueFrom": {"secretKeyRef": {"name": "s.x", "key": "tls.key"}}},
        {
            "name": "_b",
            "valueFrom": {
                "configMapKeyRef": {"name": "m", "namespace": "n", "key": "k", "optional": True}
            },
        },
    ]

    assert flaws(given) == []
    assert discovery_properties(given) == {
        "username_default": "",
        "a": ValueReference(kind="Secret", namespace="default", name="s.x", key="tls.key"),
        "_b": ValueReference(kind="ConfigMap", namespace="n", name="m", key="k", optional=True),
    }


def test_a_name_is_given_once() -> None:
    assert flaws([{"name": "n", "value": "v"}] * 2) == [("[1].name", "n is given twice.")]


@pytest.mark.parametrize(
    ("reference", "field", "sentence"),
    [
        ({"name": "a,b"}, "name", "'a,b' is no name of a Secret."),
        ({"name": "A"}, "name", "'A' is no name of a Secret."),
        ({"namespace": "a.b"}, "namespace", "'a.b' is no name of a namespace."),
        ({"namespace": "../x"}, "namespace", "'../x' is no name of a namespace."),
        ({"key": None}, "key", "'' is no key of a Secret."),
        ({"key": "a/b"}, "key", "'a/b' is no key of a Secret."),
    ],
)
def test_a_reference_names_an_entry(reference: dict[str, Any], field: str, sentence: str) -> None:
    path = f"[0].valueFrom.secretKeyRef.{field}"

    assert flaws(referring(**reference)) == [(path, sentence)]


def test_the_kind_is_named() -> None:
    ((path, sentence),) = flaws(referring("configMapKeyRef", key="a b"))

    assert path == "[0].valueFrom.configMapKeyRef.key"
    assert sentence == "'a b' is no key of a ConfigMap."


def test_all_flaws_are_named_at_once_and_too_many_properties_are_one() -> None:
    many = [{"name": f"p{n}", "value": ""} for n in range(MOST_PROPERTIES + 1)]

    assert [path for path, _ in flaws([*referring(key="/"), {"name": "p", "value": ""}])] == [
        "[0].valueFrom.secretKeyRef.key",
        "[1].name",
    ]
    assert flaws(many[1:]) == []
    assert flaws(many) == [("", "1025 are too many; 1024 may be given.")]


def test_a_value_is_neither_quoted_nor_shown() -> None:
    good = a_configuration_object()
    good["spec"]["discoveryHandler"]["discoveryProperties"] = [{"name": "p", "value": "hunter2"}]
    verdict = judge(good, lambda *_: (), unique_devices_default=True)

    assert verdict.configuration is not None
    assert verdict.configuration.discovery_properties == {"p": "hunter2"}
    assert [c.type for c in conditions(verdict, verdict)] == ["Accepted"]
    assert "hunter2" not in repr(verdict)
    good["spec"]["discoveryHandler"]["discoveryProperties"] = [{"name": "p", "value": ["hunter2"]}]
    assert "hunter2" not in str(configuration_problems(good))

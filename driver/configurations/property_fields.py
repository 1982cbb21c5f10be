"""Discovery properties as a Configuration has them: what they say beyond their definition.

    discoveryProperties:
    - name: username_default
      value: viewer
    - name: password_default
      valueFrom:
        secretKeyRef: {name: cameras, namespace: default, key: password, optional: false}

Two of one name are refused: Akri takes the last of them and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from driver.api import Problem, ValueReference

JsonObject = Mapping[str, Any]

PATH = "spec.discoveryHandler.discoveryProperties"
DEFAULT_NAMESPACE = "default"
"""Of an object that is named without one; Akri's, and not that of the Configuration."""

MOST_PROPERTIES = 1024

_Kind = Literal["Secret", "ConfigMap"]
_KINDS: Mapping[str, _Kind] = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OBJECT_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_NAME = 253
_LONGEST_NAMESPACE = 63


def discovery_properties(given: Sequence[JsonObject] | None) -> dict[str, str | ValueReference]:
    """The properties of a valid Configuration, by name."""
    return {item["name"]: _value(item) for item in given or ()}


def property_problems(given: Sequence[JsonObject] | None) -> Iterator[Problem]:
    """What is wrong with `discoveryProperties` that are as the definition says."""
    if len(given or ()) > MOST_PROPERTIES:
        yield Problem(PATH, f"{len(given or ())} are too many; {MOST_PROPERTIES} may be given.")
        return
    names: set[str] = set()
    for index, item in enumerate(given or ()):
        path = f"{PATH}[{index}]"
        if item["name"] in names:
            yield Problem(f"{path}.name", f"{item['name']:.60} is given twice.")
        names.add(item["name"])
        for field, reference in item.get("valueFrom", {}).items():
            yield from _reference_problems(f"{path}.valueFrom.{field}", _KINDS[field], reference)


def _value(item: JsonObject) -> str | ValueReference:
    if "value" in item:
        return str(item["value"])
    ((field, reference),) = item["valueFrom"].items()
    return ValueReference(
        kind=_KINDS[field],
        namespace=reference.get("namespace") or DEFAULT_NAMESPACE,
        name=reference["name"],
        key=reference["key"],
        optional=bool(reference.get("optional")),
    )


def _reference_problems(path: str, kind: _Kind, reference: JsonObject) -> Iterator[Problem]:
    if not _matches(_OBJECT_NAME, reference["name"], _LONGEST_NAME):
        yield Problem(f"{path}.name", f"{reference['name']!r:.60} is no name of a {kind}.")
    namespace = reference.get("namespace") or DEFAULT_NAMESPACE
    if not _matches(_NAMESPACE, namespace, _LONGEST_NAMESPACE):
        yield Problem(f"{path}.namespace", f"{namespace!r:.60} is no name of a namespace.")
    key = reference.get("key") or ""
    if not _matches(_KEY, key, _LONGEST_NAME):
        yield Problem(f"{path}.key", f"{key!r:.60} is no key of a {kind}.")


def _matches(pattern: re.Pattern[str], value: str, longest: int) -> bool:
    return len(value) <= longest and bool(pattern.fullmatch(value))

"""Discovery properties as a Configuration has them: `discoveryProperties`, read field by field.

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
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from driver.api import Problem, ValueReference

PATH = "spec.discoveryHandler.discoveryProperties"
DEFAULT_NAMESPACE = "default"
"""Of an object that is named without one; Akri's, and not that of the Configuration."""

MOST_PROPERTIES = 1024

_Kind = Literal["Secret", "ConfigMap"]
_KINDS: Mapping[str, _Kind] = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}
_PROPERTY_NAME = re.compile(r"[_A-Za-z][_A-Za-z0-9]*")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OBJECT_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST_NAME = 253
_LONGEST_NAMESPACE = 63


def discovery_properties(given: object) -> dict[str, str | ValueReference]:
    """The properties of a valid Configuration, by name."""
    return {item["name"]: _value(item) for item in _list(given)}


def property_problems(given: object) -> Iterator[Problem]:
    """All that is wrong with `discoveryProperties`."""
    if given is not None and not isinstance(given, list):
        yield Problem(PATH, f"{type(given).__name__} is no list of properties.")
        return
    if len(_list(given)) > MOST_PROPERTIES:
        sentence = f"{len(_list(given))} are too many; {MOST_PROPERTIES} may be given."
        yield Problem(PATH, sentence)
        return
    names: set[str] = set()
    for index, item in enumerate(_list(given)):
        yield from _item_problems(f"{PATH}[{index}]", item, names)


def _value(item: Mapping[str, Any]) -> str | ValueReference:
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


def _item_problems(path: str, item: object, names: set[str]) -> Iterator[Problem]:
    if not isinstance(item, Mapping):
        yield Problem(path, "A property has a name, and a value or valueFrom.")
        return
    name = item.get("name")
    if not isinstance(name, str) or not _PROPERTY_NAME.fullmatch(name):
        yield Problem(f"{path}.name", f"{name!r:.60} is no identifier of C.")
    elif name in names:
        yield Problem(f"{path}.name", f"{name:.60} is given twice.")
    else:
        names.add(name)
    yield from _value_problems(path, item)


def _value_problems(path: str, item: Mapping[str, object]) -> Iterator[Problem]:
    if len(item.keys() & {"value", "valueFrom"}) != 1:
        yield Problem(path, "One of value and valueFrom must be given.")
    elif "value" in item:
        if not _is_text(item["value"]):  # It may be a password: it is not quoted.
            yield Problem(f"{path}.value", "This must be a string.")
    else:
        yield from _source_problems(f"{path}.valueFrom", item["valueFrom"])


def _source_problems(path: str, source: object) -> Iterator[Problem]:
    fields = source.keys() if isinstance(source, Mapping) else ()
    if not isinstance(source, Mapping) or len(fields) != 1 or not fields <= _KINDS.keys():
        yield Problem(path, f"One of {' and '.join(_KINDS)} must be given.")
        return
    ((field, reference),) = source.items()
    yield from _reference_problems(f"{path}.{field}", _KINDS[field], reference)


def _reference_problems(path: str, kind: _Kind, reference: object) -> Iterator[Problem]:
    if not isinstance(reference, Mapping):
        yield Problem(path, "A name and a key must be given.")
        return
    if not _matches(_OBJECT_NAME, reference.get("name"), _LONGEST_NAME):
        yield Problem(f"{path}.name", f"{_shown(reference.get('name'))} is no name of a {kind}.")
    namespace = reference.get("namespace") or DEFAULT_NAMESPACE
    if not _matches(_NAMESPACE, namespace, _LONGEST_NAMESPACE):
        yield Problem(f"{path}.namespace", f"{_shown(namespace)} is no name of a namespace.")
    if not _matches(_KEY, reference.get("key"), _LONGEST_NAME):
        yield Problem(f"{path}.key", f"{_shown(reference.get('key'))} is no key of a {kind}.")
    if not isinstance(reference.get("optional") or False, bool):
        yield Problem(f"{path}.optional", "This is neither true nor false.")


def _matches(pattern: re.Pattern[str], value: object, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest and bool(pattern.fullmatch(value))


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _shown(value: object) -> str:
    return "Nothing" if value is None else f"{value!r:.60}"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []

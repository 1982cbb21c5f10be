"""Attributes that a Configuration gives its devices, such as the floor or the owner.

    spec:
      attributes:
        floor: {int: 3}
        example.com/owner: {string: assembly}

They have the form of device attributes in a ResourceSlice, and are validated as by the API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from driver.api import ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE, DRIVER_NAME, Problem
from driver.names import VALUE_LIMIT
from kube.shapes.names import is_name

Attribute = Mapping[str, Any]
"""A value by its type, such as `{"int": 3}`."""

PATH = "spec.attributes"

_DOMAIN_LIMIT = 63
_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io")
_RESERVED_NAMES = frozenset((ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_NUMBER = r"(0|[1-9][0-9]*)"
_PART = r"(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+{_BUILD}(\.{_BUILD})*)?"
)


def user_attributes(given: Mapping[str, Attribute] | None) -> dict[str, Attribute]:
    """The attributes of a valid Configuration, by their names in slices."""
    return {_short(name): dict(value) for name, value in (given or {}).items()}


def attribute_problems(given: Mapping[str, Attribute] | None) -> Iterable[Problem]:
    """The problems of `spec.attributes` that match the definition."""
    for name, value in (given or {}).items():
        sentences = (*_name_flaws(name, given or {}), *_value_flaws(value))
        yield from (Problem(f"{PATH}[{name:.100}]", sentence) for sentence in sentences)


def _short(name: str) -> str:
    """Names of our own domain are written without it."""
    return name.removeprefix(f"{DRIVER_NAME}/")


def _name_flaws(name: str, attributes: Mapping[str, object]) -> Iterator[str]:
    domain, _, identifier = name.rpartition("/")
    if not _IDENTIFIER.fullmatch(identifier):
        yield "The name must be a C identifier of at most 32 characters."
    if "/" in name and not is_name(domain, _DOMAIN_LIMIT):
        yield f"The part before the / must be a domain of at most {_DOMAIN_LIMIT} characters."
    if any(f".{domain}".endswith(f".{reserved}") for reserved in _RESERVED_DOMAINS):
        yield f"The domains {' and '.join(_RESERVED_DOMAINS)} are reserved for Kubernetes."
    if _short(name) in _RESERVED_NAMES:
        yield "Moorage sets this attribute on every device; choose another name."
    if _short(name) != name and _short(name) in attributes:
        yield f"{_short(name)} is the same attribute and is given, too; remove one of them."


def _value_flaws(value: Attribute) -> Iterator[str]:
    text = value.get("string", value.get("version", ""))
    if (size := len(text.encode())) > VALUE_LIMIT:
        yield f"The value has {size} bytes; at most {VALUE_LIMIT} are allowed."
    if "version" in value and not _VERSION.fullmatch(text):
        yield f"{text!r:.60} is not a version such as 1.2.3."
    if not _is_integer(value.get("int", 0)):
        yield f"{value['int']!r:.60} is not an integer of 64 bits."


def _is_integer(value: object) -> bool:
    """Whether the value is an integer of 64 bits. `value in range(…)` would be slow for a float."""
    return isinstance(value, int) and -(2**63) <= value < 2**63

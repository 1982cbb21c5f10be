"""Attributes that a Configuration gives its devices: which floor, which line, whose.

    spec:
      attributes:
        floor: {int: 3}
        example.com/owner: {string: assembly}

They are written as devices have them in a ResourceSlice, and checked as the API server does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from driver.api import ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE, DRIVER_NAME, Problem
from driver.names import VALUE_LIMIT

Attribute = Mapping[str, Any]
"""A value by its type, `{"int": 3}`."""

MOST_ATTRIBUTES = 16
"""Of a Configuration. A device has 32, and what its handler says needs room, too."""

PATH = "spec.attributes"

_DOMAIN_LIMIT = 63
_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io")
_RESERVED_NAMES = frozenset((ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE))
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NUMBER = r"(0|[1-9][0-9]*)"
_PART = r"(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD = r"[0-9A-Za-z-]+"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+{_BUILD}(\.{_BUILD})*)?"
)
_INTEGERS = range(-(2**63), 2**63)


def user_attributes(given: object) -> dict[str, Attribute]:
    """The attributes of a valid Configuration, by the names that they have in slices."""
    return {_short(name): dict(value) for name, value in _mapping(given).items()}


def attribute_problems(given: object) -> Iterable[Problem]:
    """All that is wrong with `spec.attributes`."""
    if given is not None and not isinstance(given, Mapping):
        yield Problem(PATH, f"{given!r:.60} is no map of attributes.")
        return
    attributes = _mapping(given)
    if len(attributes) > MOST_ATTRIBUTES:
        sentence = f"{len(attributes)} are too many; {MOST_ATTRIBUTES} may be given."
        yield Problem(PATH, sentence)
        return
    for name, value in attributes.items():
        sentences = (*_name_flaws(name, attributes), *_value_flaws(value))
        yield from (Problem(f"{PATH}[{name:.100}]", sentence) for sentence in sentences)


def _short(name: str) -> str:
    """Names of our own domain are written without it."""
    return name.removeprefix(f"{DRIVER_NAME}/")


def _name_flaws(name: str, attributes: Mapping[str, object]) -> Iterator[str]:
    domain, _, identifier = name.rpartition("/")
    if not _IDENTIFIER.fullmatch(identifier):
        yield "The name must be an identifier of C, of at most 32 characters."
    if "/" in name and (len(domain) > _DOMAIN_LIMIT or not _DOMAIN.fullmatch(domain)):
        yield f"What stands before the / must be a domain of at most {_DOMAIN_LIMIT} characters."
    if any(f".{domain}".endswith(f".{reserved}") for reserved in _RESERVED_DOMAINS):
        yield f"The domains {' and '.join(_RESERVED_DOMAINS)} are Kubernetes' own."
    if _short(name) in _RESERVED_NAMES:
        yield "Every device has this attribute already, and others rely on it."
    if _short(name) != name and _short(name) in attributes:
        yield f"{_short(name)} is the same attribute, and is given, too."


def _value_flaws(value: object) -> Iterator[str]:
    fields = _mapping(value)
    if len(fields) != 1 or (kind := next(iter(fields))) not in _CHECKS:
        yield f"One of {', '.join(_CHECKS)} must be given, as in {{int: 3}}."
    elif sentence := _CHECKS[kind](fields[kind]):
        yield sentence


def _string_flaw(value: object) -> str | None:
    if not isinstance(value, str):
        return f"{value!r:.60} is not a string."
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "Half a character (a lone surrogate) is no text."
    return f"{size} bytes are too many; {VALUE_LIMIT} may be used." if size > VALUE_LIMIT else None


def _int_flaw(value: object) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return None if whole and value in _INTEGERS else f"{value!r:.60} is no integer of 64 bits."


def _bool_flaw(value: object) -> str | None:
    return None if isinstance(value, bool) else f"{value!r:.60} is neither true nor false."


def _version_flaw(value: object) -> str | None:
    if flaw := _string_flaw(value):
        return flaw
    valid = _VERSION.fullmatch(str(value))
    return None if valid else f"{value!r:.60} is no version such as 1.2.3."


_CHECKS = {
    "string": _string_flaw,
    "int": _int_flaw,
    "bool": _bool_flaw,
    "version": _version_flaw,
}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

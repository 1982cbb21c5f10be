"""Discovery properties: values that handlers get, also from Secrets and ConfigMaps.

    Configurations ──kept_objects──► objects to watch, and which of their keys
    Configuration, the objects as they were read last ──resolve──► values | None, and what is wrong

    discoveryProperties:
    - name: username_default
      value: viewer
    - name: password_default
      valueFrom:
        secretKeyRef: {name: cameras, namespace: default, key: password, optional: false}

Two properties of one name are refused; Akri takes the last of them without a message. If a required
value is missing, the handler keeps the values from before: a Secret that is deleted by mistake
takes no camera away. No message and no repr shows a value.
"""

from __future__ import annotations

import base64
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from driver.api import Configuration, Problem, ValueReference
from kube.shapes.names import LONGEST_NAME, is_label, is_name

JsonObject = Mapping[str, Any]

PATH = "spec.discoveryHandler.discoveryProperties"
DEFAULT_NAMESPACE = "default"
"""Namespace of a reference without one, as in Akri; not the Configuration's namespace."""

MOST_PROPERTIES = 1024

_Kind = Literal["Secret", "ConfigMap"]
_KINDS: Mapping[str, _Kind] = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}
_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def discovery_properties(given: Sequence[JsonObject] | None) -> dict[str, str | ValueReference]:
    """The properties of a valid Configuration, by name."""
    return {item["name"]: _value(item) for item in given or ()}


def property_problems(given: Sequence[JsonObject] | None) -> Iterator[Problem]:
    """The problems with `discoveryProperties` that match the definition."""
    if len(given or ()) > MOST_PROPERTIES:
        yield Problem(PATH, f"{len(given or ())} are too many; {MOST_PROPERTIES} may be given.")
        return
    names: set[str] = set()
    for index, item in enumerate(given or ()):
        path = f"{PATH}[{index}]"
        if item["name"] in names:
            yield Problem(f"{path}.name", f"{item['name']:.60} is given twice.")
        names.add(item["name"])
        for kind, reference in item.get("valueFrom", {}).items():
            yield from _reference_problems(f"{path}.valueFrom.{kind}", _KINDS[kind], reference)


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
    if not is_name(reference["name"]):
        yield Problem(f"{path}.name", f"{reference['name']!r:.60} is no name of a {kind}.")
    namespace = reference.get("namespace") or DEFAULT_NAMESPACE
    if not is_label(namespace):
        yield Problem(f"{path}.namespace", f"{namespace!r:.60} is no name of a namespace.")
    key = reference.get("key") or ""
    if len(key) > LONGEST_NAME or not _KEY.fullmatch(key):
        yield Problem(f"{path}.key", f"{key!r:.60} is no key of a {kind}.")


@dataclass(frozen=True, slots=True, order=True)
class KeptObject:
    """A Secret or a ConfigMap."""

    kind: _Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of a watched object.

    Attributes:
        is_read: Whether it was read once; its entries stay if it can no longer be read.
        entries: The named entries by key; None if the object does not exist.
        trouble: A sentence: why it cannot be read now.
    """

    is_read: bool = False
    entries: Mapping[str, bytes] | None = field(default=None, repr=False)
    trouble: str | None = None


NOT_READ = Reading()

Readings = Mapping[KeptObject, Reading]


def kept_objects(configurations: Iterable[Configuration]) -> dict[KeptObject, frozenset[str]]:
    """The objects that Configurations name, and the keys of each."""
    found: dict[KeptObject, set[str]] = defaultdict(set)
    for configuration in configurations:
        for reference in _references(configuration):
            found[_object(reference)].add(reference.key)
    return {kept: frozenset(keys) for kept, keys in found.items()}


def entries_of(kept: KeptObject, body: Mapping[str, Any], keys: Iterable[str]) -> dict[str, bytes]:
    """The requested entries that an object has.

    Args:
        kept: The object; items of lists lack their kind.
        body: The object from the API server. `data` is base64 in Secrets and text in ConfigMaps,
            which have `binaryData` beside it.
        keys: The keys of the requested entries.
    """
    data = body.get("data") or {}
    if kept.kind == "Secret":
        return {key: base64.b64decode(data[key]) for key in keys if key in data}
    binary = body.get("binaryData") or {}
    return {
        **{key: base64.b64decode(binary[key]) for key in keys if key in binary},
        **{key: data[key].encode() for key in keys if key in data},
    }


def resolve(configuration: Configuration, readings: Readings) -> dict[str, bytes] | None:
    """The properties by name; None while a required one is unknown.

    An optional property is omitted only if its object was read and lacks it: an object that cannot
    be read may have it.
    """
    values: dict[str, bytes] = {}
    for name, value in configuration.discovery_properties.items():
        if isinstance(value, str):
            values[name] = value.encode()
            continue
        reading = readings.get(_object(value), NOT_READ)
        entry = (reading.entries or {}).get(value.key)
        if entry is not None:
            values[name] = entry
        elif not (reading.is_read and value.optional):
            return None
    return values


def problems(configuration: Configuration, readings: Readings) -> tuple[str, ...]:
    """Sentences about objects that are missing or cannot be read, without duplicates."""
    sentences: dict[str, None] = {}
    for reference in _references(configuration):
        kept, key = _object(reference), reference.key
        reading = readings.get(kept, NOT_READ)
        if reading.trouble:
            sentences[reading.trouble] = None
        elif reading.is_read and not reference.optional and key not in (reading.entries or {}):
            lack = "does not exist" if reading.entries is None else "has no such key"
            sentences[f"{kept} {lack}; discoveryProperties need its key {key}."] = None
    return tuple(sentences)


def forbidden(kept: KeptObject) -> str:
    """The sentence for an object that the driver has no permission to read."""
    allows = "'moorage-driver permissions' prints the Role that allows it"
    return f"The driver may not read {kept}; {allows}."


def _references(configuration: Configuration) -> Iterator[ValueReference]:
    for value in configuration.discovery_properties.values():
        if isinstance(value, ValueReference):
            yield value


def _object(reference: ValueReference) -> KeptObject:
    return KeptObject(reference.kind, reference.namespace, reference.name)

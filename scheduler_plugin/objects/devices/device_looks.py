"""What CEL sees of devices: a look, which is a text in JSON.

Devices with equal looks are alike to every selector. Decoded, the looks of 160,000 devices take
several times the memory, and few of them are read; so they stay text, and equal ones are one
string.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

import msgspec

from kube.shapes.quantities import thousandths
from kube.shapes.reading import JsonObject
from kube.shapes.slices import NO_CAPACITY, Device

LARGEST = 2**63 - 1

_encode = msgspec.json.Encoder(order="deterministic").encode


class Seen(NamedTuple):
    """What CEL sees of a device, without its name.

    Attributes:
        attributes: As the slice has them.
        capacity: The quantity of each.
        is_shared: `allowMultipleAllocations`.
    """

    driver: str
    attributes: dict[str, dict[str, Any]]
    capacity: dict[str, Any]
    is_shared: bool


def look_of(driver: str, device: Device) -> str:
    """The look of a device in a slice."""
    quantities = {k: (each or NO_CAPACITY).value for k, each in (device.capacity or {}).items()}
    seen = (driver, device.attributes or {}, quantities, bool(device.allow_multiple_allocations))
    return intern(_encode(seen).decode())


@lru_cache(maxsize=1_024)
def seen_in(look: str) -> Seen:
    """The decoded look; it is shared and read-only."""
    return Seen(*msgspec.json.decode(look))


def cel_device(look: str) -> dict[str, Any]:
    """The variable `device` of CEL expressions, as kube-scheduler has it."""
    seen = seen_in(look)
    driver = seen.driver
    return {
        "driver": driver,
        "attributes": _by_domain(driver, {k: _value(v) for k, v in seen.attributes.items()}),
        "capacity": _by_domain(driver, {k: _quantity(v) for k, v in seen.capacity.items()}),
        "allowMultipleAllocations": seen.is_shared,
    }


def _by_domain(driver: str, values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Values by domain; a name without a domain belongs to the driver's domain."""
    found: dict[str, dict[str, Any]] = {driver: {}}
    for name, value in values.items():
        domain, slash, rest = name.partition("/")
        found.setdefault(domain if slash else driver, {})[rest if slash else name] = value
    return found


def _value(attribute: JsonObject) -> Any:
    for kind in ("string", "int", "bool"):
        if attribute.get(kind) is not None:
            return attribute[kind]
    return _opaque(attribute)


def _quantity(value: object) -> int | bytes:
    """In thousandths, as `kube.cel` has quantities; CEL's numbers have 64 bits."""
    found = thousandths(value)
    return _opaque(value) if found is None or found > LARGEST else found


def _opaque(value: object) -> bytes:
    """A value for which the CEL library has no type: it equals no text and no number."""
    return repr(value).encode()

"""Attributes of published devices: what a claim's selector can read of an Instance.

Limits are those of `DeviceAttribute` in resource.k8s.io/v1; the API server counts bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from driver.api import ATTRIBUTE_CONFIGURATION, ATTRIBUTE_INSTANCE
from driver.instances import Instance
from driver.names import VALUE_LIMIT, attribute_value

ENTRIES_LIMIT = 32
"""Attributes and capacities of one device, together."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def attributes(instance: Instance, *, capacities: int = 0) -> dict[str, dict[str, str]]:
    """`Device.attributes` of an Instance: ours, then its properties by name while there is room.

    Args:
        instance: A property that does not fit, or bears one of our names, is left out.
        capacities: Entries that the device's capacity takes from the common limit.
    """
    ours = {
        ATTRIBUTE_CONFIGURATION: attribute_value(instance.configuration),
        ATTRIBUTE_INSTANCE: attribute_value(instance.name),
    }
    room = ENTRIES_LIMIT - capacities - len(ours)
    others = sorted(set(_that_fit(instance.properties)) - ours.keys())[:room]
    chosen = {**ours, **{name: instance.properties[name] for name in others}}
    return {name: {"string": value} for name, value in chosen.items()}


def _that_fit(properties: Mapping[str, str]) -> Iterable[str]:
    return (name for name, value in properties.items() if _fits(name, value))


def _fits(name: str, value: str) -> bool:
    if not _IDENTIFIER.fullmatch(name) or _CONTROL.search(value):
        return False
    try:
        return len(value.encode()) <= VALUE_LIMIT
    except UnicodeEncodeError:  # a lone surrogate stands for a byte that was no UTF-8
        return False

"""Attributes of published devices: what the selector of a claim can read.

The limits are those of `DeviceAttribute` in resource.k8s.io/v1. The API server counts bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from driver.api import ATTRIBUTE_CONFIGURATION, ATTRIBUTE_HEALTH, ATTRIBUTE_INSTANCE
from driver.device_health import HEALTH
from driver.devices import NUMA_NODE
from driver.instances.instances import Instance
from driver.names import VALUE_LIMIT, attribute_value

ENTRIES_LIMIT = 32
"""Most attributes and capacities of one device, counted together."""

STANDARD_DOMAIN = "resource.kubernetes.io"

_NAME = re.compile(rf"({re.escape(STANDARD_DOMAIN)}/)?[A-Za-z_][A-Za-z0-9_]{{0,31}}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def attributes(instance: Instance, *, capacities: int = 0) -> dict[str, Mapping[str, Any]]:
    """`Device.attributes` of an Instance, as many as the limit allows.

    The order is: attributes of Moorage, health among them; attributes of the Configuration;
    standard attributes of Kubernetes; properties, sorted by name; other attributes of the handler.
    If two have the same name, the first counts. A property may have the name of a standard
    attribute, which no environment variable can have: so a handler in another process reports
    standard attributes.

    Args:
        instance: The Instance. A property or attribute that does not fit is left out.
        capacities: Entries of the common limit that the capacity of the device takes.
    """
    chosen: dict[str, Mapping[str, Any]] = {
        ATTRIBUTE_CONFIGURATION: {"string": attribute_value(instance.configuration)},
        ATTRIBUTE_INSTANCE: {"string": attribute_value(instance.name)},
    }
    if (health := instance.properties.get(HEALTH)) and _fits(ATTRIBUTE_HEALTH, health):
        chosen[ATTRIBUTE_HEALTH] = {"string": health}
    for name, value in instance.user_attributes.items():
        chosen.setdefault(name, value)
    if instance.numa_node is not None:
        chosen.setdefault(NUMA_NODE, {"int": instance.numa_node})
    for name, text in _reported(instance):
        if name not in chosen and name != NUMA_NODE and _fits(name, text):
            chosen[name] = {"string": text}
    return dict(islice(chosen.items(), ENTRIES_LIMIT - capacities))


def _reported(instance: Instance) -> list[tuple[str, str]]:
    reported = list(instance.device_attributes.items())
    properties = sorted(instance.properties.items())
    standard = [each for each in (*reported, *properties) if "/" in each[0]]
    return [*standard, *properties, *reported]


@lru_cache(maxsize=1024)
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _fits(name: str, value: str) -> bool:
    if not _is_name(name):
        return False
    if value.isascii() and value.isprintable():  # The fast path, for nearly all values.
        return len(value) <= VALUE_LIMIT
    if _CONTROL.search(value):
        return False
    try:
        return len(value.encode()) <= VALUE_LIMIT
    except UnicodeEncodeError:  # A lone surrogate stands for a byte that was no UTF-8.
        return False

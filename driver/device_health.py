"""Device health: marks a device as degraded, so that no new claim gets it.

    properties ──degraded──► Degraded | None

Akri's contract has no field for it, so properties with names of Moorage have it. A handler reports
them, or a Configuration has them in `brokerProperties`. Containers do not get these properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driver.api import DRIVER_NAME, TaintEffect

RESERVED = f"{DRIVER_NAME}/"
"""Prefix of the names of properties for Moorage."""

HEALTH = f"{RESERVED}health"
HEALTH_MESSAGE = f"{RESERVED}health-message"
HEALTH_EFFECT = f"{RESERVED}health-effect"

DEGRADED = "degraded"
"""Value of `HEALTH`; any other value means that the device is well."""

LONGEST_MESSAGE = 512


@dataclass(frozen=True, slots=True)
class Degraded:
    """The state of a degraded device.

    Attributes:
        message: The reason, for people.
        effect: Effect of its taint.
    """

    message: str
    effect: TaintEffect


def degraded(properties: Mapping[str, str]) -> Degraded | None:
    """The degraded state in the properties; None if the device is well."""
    if properties.get(HEALTH) != DEGRADED:
        return None
    said = properties.get(HEALTH_MESSAGE, "")[:LONGEST_MESSAGE]
    message = "".join(one if one.isprintable() else "?" for one in said)
    evicts = properties.get(HEALTH_EFFECT) == "NoExecute"
    return Degraded(message or "the device is degraded", "NoExecute" if evicts else "NoSchedule")


def for_containers(properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties that are not for Moorage."""
    if not any(name.startswith(RESERVED) for name in properties):
        return properties
    return {name: v for name, v in properties.items() if not name.startswith(RESERVED)}

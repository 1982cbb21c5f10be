"""Device health: a device that is there, and that nobody new should get.

    properties ──degraded──► Degraded | None

Akri's contract has no word for it, so properties of Moorage's own names say it; a handler reports
them, or a Configuration's `brokerProperties`. No container learns properties of these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from driver.api import DRIVER_NAME, TaintEffect

RESERVED = f"{DRIVER_NAME}/"
"""Begins the names of properties that tell Moorage something."""

HEALTH = f"{RESERVED}health"
HEALTH_MESSAGE = f"{RESERVED}health-message"
HEALTH_EFFECT = f"{RESERVED}health-effect"

DEGRADED = "degraded"
"""Value of `HEALTH`; any other says that the device is well."""

LONGEST_MESSAGE = 512


@dataclass(frozen=True, slots=True)
class Degraded:
    """What is said of a degraded device.

    Attributes:
        message: Why, for people.
        effect: Of the taint that it bears.
    """

    message: str
    effect: TaintEffect


def degraded(properties: Mapping[str, str]) -> Degraded | None:
    """What the properties say of the device's health; None for nothing bad."""
    if properties.get(HEALTH) != DEGRADED:
        return None
    said = properties.get(HEALTH_MESSAGE, "")[:LONGEST_MESSAGE]
    message = "".join(one if one.isprintable() else "?" for one in said)
    evicts = properties.get(HEALTH_EFFECT) == "NoExecute"
    return Degraded(message or "the device is degraded", "NoExecute" if evicts else "NoSchedule")


def for_containers(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Those that are not for Moorage."""
    if not any(name.startswith(RESERVED) for name in properties):
        return properties
    return {name: v for name, v in properties.items() if not name.startswith(RESERVED)}

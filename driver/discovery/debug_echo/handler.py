"""The debugEcho handler: devices that exist only by name, for tests and first steps.

    descriptions: [foo0, foo1]     # one device for each
    shared: false                  # default: the handler's setting, which is true as in Akri

A file changes their state. OFFLINE: there is no device. DEGRADED: the devices are degraded.
DEGRADED and NoExecute: pods that use them are evicted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from driver.api import Problem
from driver.device_health import DEGRADED, HEALTH, HEALTH_EFFECT, HEALTH_MESSAGE
from driver.devices import Device
from driver.discovery.contract import NO_PROPERTIES, Properties
from driver.discovery.details import Fields


@dataclass(frozen=True, slots=True)
class DebugEchoDetails:
    """What a Configuration asks of the debugEcho handler.

    Attributes:
        descriptions: Ids of the devices, sorted, without duplicates.
        shared: True: all nodes see the same devices. False: each node has its own. None: not set.
    """

    descriptions: tuple[str, ...]
    shared: bool | None = None


def parse_debug_echo_details(text: str) -> DebugEchoDetails | tuple[Problem, ...]:
    """The details, or every problem with them."""
    fields = Fields(text, ("descriptions", "shared"))
    descriptions = {text.value for text in fields.strings("descriptions")}
    shared = fields.boolean("shared", default=True) if "shared" in fields else None
    return tuple(fields.problems) or DebugEchoDetails(tuple(sorted(descriptions)), shared)


OFFLINE = "OFFLINE"
NOT_WELL = "DEGRADED"
EVICTS = "NoExecute"
DESCRIPTION = "DEBUG_ECHO_DESCRIPTION"

LOOK_INTERVAL = timedelta(seconds=1)
"""How often the handler reads the file."""


class DebugEchoHandler:
    """The debugEcho handler.

    Args:
        availability: The file. A file that cannot be read counts as empty.
        shared: Whether devices are shared if the details do not say.
    """

    name = "debugEcho"
    problem = None

    def __init__(
        self,
        availability: Path,
        look_interval: timedelta = LOOK_INTERVAL,
        *,
        shared: bool = True,
    ) -> None:
        self._availability = availability
        self._shared = shared
        self._look_interval = look_interval

    def is_shared(self, details: DebugEchoDetails) -> bool:
        """As the details say, else as this handler's setting says."""
        return self._shared if details.shared is None else details.shared

    async def discover(
        self, details: DebugEchoDetails, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield the devices, and again whenever the file changes their state."""
        shown: tuple[Device, ...] | None = None
        while True:
            found = _devices(details, self._content())
            if found != shown:
                shown = found
                yield found
            await asyncio.sleep(self._look_interval.total_seconds())

    def _content(self) -> str:
        try:
            return self._availability.read_text(errors="replace")
        except OSError:
            return ""


def _devices(details: DebugEchoDetails, content: str) -> tuple[Device, ...]:
    if OFFLINE in content:
        return ()
    health = _health(content)
    return tuple(Device(text, {DESCRIPTION: text, **health}) for text in details.descriptions)


def _health(content: str) -> dict[str, str]:
    if NOT_WELL not in content:
        return {}
    effect = {HEALTH_EFFECT: EVICTS} if EVICTS in content else {}
    return {HEALTH: DEGRADED, HEALTH_MESSAGE: "the file says so", **effect}

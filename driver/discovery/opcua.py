"""The opcua handler: every server that the configured URLs tell of is a device."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

from driver.devices import Device
from driver.discovery.details import shown
from driver.discovery.handlers import NO_PROPERTIES, Properties
from driver.discovery.opcua_applications import (
    Application,
    Place,
    device,
    devices,
    place_of,
    wanted,
)
from driver.discovery.opcua_details import OpcuaDetails
from driver.discovery.opcua_servers import (
    UnreachableError,
    find_servers,
    is_listening,
)
from driver.discovery.turns import REDISCOVERY_INTERVAL, Reasons, changes

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 64
"""Connections."""

MOST_SERVERS = 2_000


class OpcuaHandler:
    """The opcua handler.

    Args:
        interval: Between two looks at the same Configuration's servers.
    """

    name = "opcua"

    def __init__(self, interval: timedelta = REDISCOVERY_INTERVAL) -> None:
        self._interval = interval
        self._reasons = Reasons(logger)

    @property
    def problem(self) -> str | None:
        return self._reasons.problem

    def is_shared(self, _: OpcuaDetails) -> bool:
        """Always, as Akri has it."""
        return True

    async def discover(
        self, details: OpcuaDetails, properties: Properties = NO_PROPERTIES
    ) -> AsyncGenerator[tuple[Device, ...], None]:
        """Yield all servers, and again whenever there are others."""
        follower = object()

        async def look() -> tuple[Device, ...]:
            turn = _Turn(details)
            found = await turn.look()
            self._reasons.tell(follower, turn.reasons)
            return found

        try:
            async with aclosing(changes(look, self._interval)) as answers:
                async for found in answers:
                    yield found
        finally:
            self._reasons.forget(follower)


class _Turn:
    """One look."""

    def __init__(self, details: OpcuaDetails) -> None:
        self._details = details
        self._connections = asyncio.Semaphore(MOST_AT_ONCE)
        self.reasons: list[str] = []

    async def look(self) -> tuple[Device, ...]:
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(self._ask(url)) for url in self._details.discovery_urls]
        told = [one for task in asked for one in task.result()]
        if len(told) > MOST_SERVERS:
            self.reasons.append(f"There are more than {MOST_SERVERS} servers; the others are left.")
            del told[MOST_SERVERS:]
        async with asyncio.TaskGroup() as tasks:
            found = [tasks.create_task(self._find(*one)) for one in told]
        return devices(one for task in found if (one := task.result()) is not None)

    async def _ask(self, url: str) -> list[tuple[Application, Place]]:
        """The wanted servers that a URL tells of, and where each is."""
        try:
            async with self._connections:
                applications = await find_servers(url)
        except UnreachableError as error:
            self.reasons.append(f"{shown(url)}: {error}.")
            return []
        found = []
        for application in wanted(applications, self._details.application_names):
            place = place_of(application, url, alone=len(applications) == 1)
            if place is None:
                where = f"{shown(application.name)} of {shown(url)}"
                self.reasons.append(f"{where}: it has no URL of OPC UA over TCP.")
            else:
                found.append((application, place))
        return found

    async def _find(self, application: Application, place: Place) -> Device | None:
        """The device that a server is, if somebody listens there."""
        async with self._connections:
            url = place.url
            listening = await is_listening(url)
            if listening is None:
                url = place.instead
                listening = await is_listening(url)
        if listening:
            return device(url, application)
        self.reasons.append(f"{shown(application.name)} at {shown(url)}: nobody listens there.")
        return None

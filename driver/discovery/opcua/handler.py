"""The opcua handler: every server that the configured URLs report is a device."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from driver.devices import Device
from driver.discovery.contract import NO_PROPERTIES, Properties
from driver.discovery.details import shown
from driver.discovery.handler_cycles import DeviceLists, NetworkHandler
from driver.discovery.opcua.applications import Application, Place, device, devices, place_of
from driver.discovery.opcua.details import OpcuaDetails
from driver.discovery.opcua.servers import UnreachableError, addresses_of, find_servers, is_served
from driver.discovery.reach import Reach, read_ip

MOST_AT_ONCE = 64
"""Connections."""

MOST_SERVERS = 2_000
CLIENT_TOO = "it is a client and a server (ClientAndServer); only servers are devices, as in Akri."


class OpcuaHandler(NetworkHandler):
    """The opcua handler."""

    name = "opcua"

    def discover(
        self, details: OpcuaDetails, properties: Properties = NO_PROPERTIES
    ) -> DeviceLists:
        """Yield all servers, and again whenever the list changes.

        A new server is reported as soon as it answers, though other servers have not answered
        yet. The first list waits for all: a server that it lacks counts as absent.
        """
        follower = object()
        report = partial(self._reasons.record, follower)
        return self._changes(
            follower, lambda before: _Cycle(details, self._reach, report).look(before)
        )


class _Candidate(NamedTuple):
    """A reported server that is not verified yet.

    Attributes:
        by: The address of the server that reported it.
    """

    application: Application
    place: Place
    by: str


class _Cycle:
    """One discovery cycle."""

    def __init__(
        self, details: OpcuaDetails, reach: Reach, on_end: Callable[[list[str]], None]
    ) -> None:
        """`on_end` gets the reasons why servers were not discovered, before the last list."""
        self._on_end = on_end
        self._details = details
        self._reach = reach
        self._connections = asyncio.Semaphore(MOST_AT_ONCE)
        self.reasons: list[str] = []

    async def look(self, before: tuple[Device, ...] | None) -> DeviceLists:
        """Yield the servers from before and the new ones, at each new one; last all servers."""
        new: dict[str, Device] = {}
        known, changed = {device.id for device in before or ()}, asyncio.Event()

        def report(device: Device) -> None:
            # Before the first cycle has ended, a server that a list lacks would count as absent.
            if before is not None and device.id not in known:
                new.setdefault(device.id, device)
                changed.set()

        looking = asyncio.create_task(self._look(report))
        looking.add_done_callback(lambda _: changed.set())
        try:
            while True:
                await changed.wait()
                if looking.done():
                    break
                changed.clear()
                yield devices((*(before or ()), *new.values()))[:MOST_SERVERS]
            found = await looking
            self._on_end(self.reasons)
            yield found
        finally:
            looking.cancel()

    async def _look(self, report: Callable[[Device], None]) -> tuple[Device, ...]:
        async with asyncio.TaskGroup() as tasks:
            urls = self._details.discovery_urls
            asked = [tasks.create_task(self._follow(url, report)) for url in urls]
        found = [one for task in asked for one in task.result()]
        # What a server reports of itself has precedence over what others report.
        found.sort(key=lambda one: not one[0].place.is_own)
        there = devices(device for _, device in found)
        if len(there) > MOST_SERVERS:
            self._note_too_many()
        return there[:MOST_SERVERS]

    async def _follow(
        self, url: str, report: Callable[[Device], None]
    ) -> list[tuple[_Candidate, Device]]:
        """The servers that a URL reports and that answer; `report` gets each as it is found."""
        candidates = await self._ask(url)
        if len(candidates) > MOST_SERVERS:
            self._note_too_many()
        candidates = candidates[:MOST_SERVERS]
        async with asyncio.TaskGroup() as tasks:
            finding = [(one, tasks.create_task(self._find(one, report))) for one in candidates]
        return [(one, found) for one, task in finding if (found := task.result()) is not None]

    def _note_too_many(self) -> None:
        self.reasons.append(f"There are more than {MOST_SERVERS} servers; the others are ignored.")

    async def _ask(self, url: str) -> list[_Candidate]:
        """The servers that a URL reports and that pass the filter, and where each answers."""
        try:
            async with self._connections:
                known = await find_servers(url)
        except UnreachableError as error:
            self.reasons.append(f"{shown(url)}: {error}.")
            return []
        found, alone = [], len(known.applications) == 1
        for one in known.applications:
            if not self._details.application_names.accepts((one.name,)):
                continue
            where = f"{shown(one.name)} of {shown(url)}"
            if one.is_both:
                self.reasons.append(f"{where}: {CLIENT_TOO}")
            elif one.is_server and (place := place_of(one, url, alone=alone)):
                found.append(_Candidate(one, place, known.by))
            elif one.is_server:
                self.reasons.append(f"{where}: it has no URL of OPC UA over TCP.")
        return found

    async def _find(self, candidate: _Candidate, report: Callable[[Device], None]) -> Device | None:
        """The device for a server that answers where it was reported; `report` gets it, too."""
        async with self._connections:
            url, addresses = await self._locate(candidate)
            where = f"{shown(candidate.application.name)} at {shown(url)}"
            if isinstance(addresses, str):
                why = f"reported by {candidate.by}, is not contacted: {addresses}"
                self.reasons.append(f"{where}, {why}.")
            elif await is_served(url, addresses):
                found = device(url, candidate.application)
                report(found)
                return found
            else:
                self.reasons.append(f"{where}: no OPC UA server answers there.")
        return None

    async def _locate(self, candidate: _Candidate) -> tuple[str, list[str] | str]:
        """The URL of a server, and the addresses to contact, or why there is none."""
        place = candidate.place
        addresses = await self._asked_of(place.url, candidate.by)
        if addresses == [] or (isinstance(addresses, str) and place.is_own):
            return place.instead, await self._asked_of(place.instead, candidate.by)
        return place.url, addresses

    async def _asked_of(self, url: str, by: str) -> list[str] | str:
        """The addresses of a URL that may be contacted, or why none of them may."""
        asked, refusal = [], ""
        for address in await addresses_of(url):
            why = self._refusal(address, by)
            asked += [] if why else [address]
            refusal = why or refusal
        return asked or (f"its address {refusal}" if refusal else [])

    def _refusal(self, address: str, by: str) -> str | None:
        here, there = read_ip(address), read_ip(by)
        return self._reach.refusal_of_reported(here, there) if here and there else None

"""Fakes of what claims are prepared from: the API server's claims, and the node's devices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from driver.api import ClaimUid, ConfigurationName, DeviceName
from driver.instances.instances import Instance
from driver.preparing.files.prepared import ClaimReference, Home
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.device_views import DevicesView
from tests.driver.claim_builders import HOME, a_claim, a_config, some_instances, with_configs


@dataclass
class FakeReader:
    """ResourceClaims of an API server that may be away, or for some names alone.

    Reads by UID have the name "".
    """

    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: Exception | None = None
    errors: dict[str, Exception | None] = field(default_factory=dict)
    delay_seconds: float = 0.0
    home_error: Exception | None = None
    homes: int = 0
    asked: int = 0

    def put(
        self,
        reference: ClaimReference,
        *results: Mapping[str, Any],
        asked: Mapping[str, Any] | None = None,
    ) -> ClaimReference:
        """`asked` are the fields of the claim's DeviceConfig."""
        configs = [] if asked is None else [a_config(asked)]
        self.stored[reference.name] = with_configs(a_claim(reference, *results), *configs)
        return reference

    async def claim(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        await self._served(name)
        return self.stored.get(name)

    async def claim_of(self, uid: ClaimUid) -> Mapping[str, Any] | None:
        await self._served("")
        return next((c for c in self.stored.values() if c["metadata"]["uid"] == uid), None)

    async def home(self) -> Home:
        self.homes += 1
        if error := self.error or self.home_error:
            raise error
        return HOME

    async def _served(self, name: str) -> None:
        self.asked += 1
        await asyncio.sleep(self.delay_seconds)
        if error := self.error or self.errors.get(name):
            raise error


@dataclass
class FakeSource:
    """Instances, known once the first discovery is over.

    What is offline here, or unreported, is published still, and reported no longer.
    """

    known: dict[tuple[str, DeviceName], Instance] = field(default_factory=dict)
    unheard: frozenset[ConfigurationName] = frozenset()
    unreported: set[str] = field(default_factory=set)
    discovered: asyncio.Event = field(default_factory=asyncio.Event)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def on_changed(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def see(self, instance: Instance) -> None:
        """A device is another by now, and whoever listens is told."""
        self.known.update(some_instances(instance))
        for listener in self.listeners:
            listener()

    @property
    def view(self) -> DevicesView | None:
        if not self.discovered.is_set():
            return None
        there = (i for i in self.known.values() if i.name not in self.unreported)
        reported = (instance for instance in there if instance.online)
        return DevicesView(dict(self.known), DeviceLocator(reported, self.unheard))

    async def decided(self) -> None:
        await self.discovered.wait()

"""An API server that is upgraded beneath the running driver."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import pytest

from driver.publishing.apiserver_upgrades import Upgrades
from driver.server_versions import READINGS, UNSETTLED_READINGS, FeaturesChangedError
from kube.calls.api import ApiClient
from kube.calls.apiserver_reads import Server

OLD, NEW = "v1.34.10", "v1.37.2"


@dataclass
class FakeServer:
    """Keeps fields by its version.

    Attributes:
        probes: The versions at which it was probed.
    """

    version: str = OLD
    keeps: frozenset[str] = frozenset({"slots"})
    probes: list[str] = field(default_factory=list)

    async def server(self) -> Server:
        return Server(self.version, datetime(2026, 11, 27, tzinfo=UTC))

    async def probe(self) -> frozenset[str]:
        self.probes.append(self.version)
        return self.keeps

    def upgrades(self) -> Upgrades[frozenset[str]]:
        return Upgrades(cast("ApiClient", self), self.probe)

    async def upgrade(self, upgrades: Upgrades[frozenset[str]], version: str) -> None:
        self.version = version
        for _ in range(READINGS):
            upgrades.read(version)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_the_process_ends_when_an_upgraded_server_keeps_other_fields() -> None:
    server = FakeServer()
    upgrades = server.upgrades()
    watching = asyncio.create_task(upgrades.watch(await upgrades.found()))

    server.keeps = frozenset({"slots", "taints"})
    await server.upgrade(upgrades, NEW)

    with pytest.raises(FeaturesChangedError, match=NEW):
        await watching
    assert server.probes == [OLD, NEW]


async def test_it_goes_on_while_the_upgraded_server_keeps_the_same() -> None:
    server = FakeServer()
    upgrades = server.upgrades()
    watching = asyncio.create_task(upgrades.watch(await upgrades.found()))

    await server.upgrade(upgrades, NEW)
    await server.upgrade(upgrades, NEW)

    assert not watching.done()
    assert server.probes == [OLD, NEW]
    watching.cancel()


async def test_readings_before_the_first_probe_ask_for_nothing() -> None:
    server = FakeServer()
    upgrades = server.upgrades()

    await server.upgrade(upgrades, NEW)
    assert await upgrades.found() == server.keeps

    assert server.probes == [NEW]


async def test_a_server_that_is_upgraded_during_the_first_probe_is_probed_again() -> None:
    server = FakeServer()

    async def probe() -> frozenset[str]:
        kept, server.version, server.keeps = server.keeps, NEW, frozenset()
        return kept

    upgrades = Upgrades(cast("ApiClient", server), probe)
    watching = asyncio.create_task(upgrades.watch(await upgrades.found()))
    await server.upgrade(upgrades, NEW)

    with pytest.raises(FeaturesChangedError):
        await watching


async def test_a_first_probe_of_another_server_than_the_one_that_told_its_version_is_repeated() -> (
    None
):
    """Of two API servers behind one address, one is upgraded."""
    server = FakeServer(version=NEW)

    async def probe() -> frozenset[str]:
        kept, server.version, server.keeps = server.keeps, OLD, frozenset({"slots", "taints"})
        return kept

    upgrades = Upgrades(cast("ApiClient", server), probe)
    watching = asyncio.create_task(upgrades.watch(await upgrades.found()))
    for _ in range(UNSETTLED_READINGS):
        upgrades.read(NEW)

    with pytest.raises(FeaturesChangedError):
        await watching

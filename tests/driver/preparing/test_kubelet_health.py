"""The kubelet is told the health of what claims hold, and of nothing else."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.api import ConfigurationName
from driver.kubelet_api.dra_health.v1 import api_pb2 as health
from driver.preparing import kubelet_health
from tests.driver.claim_builders import (
    a_reference,
    an_instance,
    some_instances,
)
from tests.driver.preparing.dra_worlds import World

WANTED = a_reference(1)


@pytest.fixture
def world() -> Iterator[World]:
    """In a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield World(Path(root))


def a_report(
    status: health.HealthStatus.ValueType, message: str = ""
) -> health.NodeWatchResourcesResponse:
    device = health.DeviceIdentifier(pool_name="node-a", device_name="loop-aaaaaa")
    found = health.DeviceHealth(
        device=device,
        health=status,
        message=message,
        health_check_timeout_seconds=kubelet_health.LIMIT_SECONDS,
    )
    return health.NodeWatchResourcesResponse(devices=[found])


def test_health_is_repeated_within_its_time_limit() -> None:
    """Two lists may be late."""
    assert kubelet_health.RESEND_SECONDS * 3 <= kubelet_health.LIMIT_SECONDS


async def test_health_is_told_repeatedly(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelet_health, "RESEND_SECONDS", 0.1)
    world.reader.put(WANTED)

    async with world.plugin(), world.kubelet() as kubelet:
        await kubelet.prepare(WANTED)
        async with kubelet.health() as reports:
            assert [await anext(reports) for _ in range(3)] == [a_report(health.HEALTHY)] * 3


async def test_health_is_told_of_what_claims_hold_and_of_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_health, "RESEND_SECONDS", 3600.0)
    world.source.known.update(some_instances(an_instance("loop-bbbbbb")))
    world.reader.put(WANTED)

    async with world.plugin(), world.kubelet() as kubelet, kubelet.health() as reports:
        told = [await anext(reports)]
        for ask in (kubelet.prepare, kubelet.unprepare):
            await ask(WANTED)
            async with asyncio.timeout(5):
                told.append(await anext(reports))

    nothing = health.NodeWatchResourcesResponse()
    assert told == [nothing, a_report(health.HEALTHY), nothing]


@pytest.mark.parametrize(
    ("unheard", "report"),
    [
        (False, (health.UNHEALTHY, "the device is offline")),
        (True, (health.HEALTHY, "")),
    ],
)
async def test_health_is_told_of_a_device_that_went_away_while_no_driver_ran(
    world: World, unheard: bool, report: tuple[health.HealthStatus.ValueType, str]
) -> None:
    world.reader.put(WANTED)
    async with world.plugin(), world.kubelet() as kubelet:
        await kubelet.prepare(WANTED)
    world.source.known.clear()
    if unheard:
        world.source.unheard = frozenset({ConfigurationName("loop")})

    async with world.plugin(), world.kubelet() as kubelet, kubelet.health() as reports:
        assert await anext(reports) == a_report(*report)


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
async def test_health_is_told_at_once_when_it_changes(
    version: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_health, "RESEND_SECONDS", 3600.0)
    said = {"moorage.dev/health": "degraded", "moorage.dev/health-message": "it is hot"}
    world.reader.put(WANTED)

    async with world.plugin(), world.kubelet() as kubelet:
        await kubelet.prepare(WANTED)
        async with kubelet.health(version) as reports:
            told = [await anext(reports)]
            for changed in (an_instance(properties=said), an_instance(online=False)):
                world.source.see(changed)
                async with asyncio.timeout(5):
                    told.append(await anext(reports))

    assert told == [
        a_report(health.HEALTHY),
        a_report(health.UNHEALTHY, "it is hot"),
        a_report(health.UNHEALTHY, "the device is offline"),
    ]

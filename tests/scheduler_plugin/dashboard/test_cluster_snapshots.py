"""One look for all viewers, none for nobody, and never for long at one time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard import cluster_snapshots
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.recent_events import Recent
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import NamespaceView
from tests.scheduler_plugin.builders import (
    SETTINGS,
    a_claim,
    a_class,
    a_pod,
    a_queue,
    an_allocated_claim,
    put,
)


@pytest.fixture
def world() -> World:
    found = World(SETTINGS)
    found.put_namespace(NamespaceView("default", {}))
    put(found, a_class("onvif"), a_queue("vision", onvif=(1, 2)))
    return found


@pytest.fixture
async def snapshots(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Snapshots]:
    monkeypatch.setattr(cluster_snapshots, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(cluster_snapshots, "STEP_SECONDS", 0.0)
    found = Snapshots(world, Recent())
    running = asyncio.create_task(found.run())
    yield found
    running.cancel()
    await asyncio.wait((running,))


async def test_nobody_costs_nothing(world: World, snapshots: Snapshots) -> None:
    put(world, a_claim("cam"))
    snapshots.changed()
    for _ in range(20):
        await asyncio.sleep(0)

    assert snapshots.latest is None


async def test_the_first_viewer_gets_a_look(snapshots: Snapshots) -> None:
    found = await snapshots.now()

    assert found is not None
    assert [len(found.lines[part]) for part in Part] == [1, 0, 0, 0, 0]


async def test_a_change_is_a_new_number_and_none_is_not(world: World, snapshots: Snapshots) -> None:
    with snapshots.listening():
        first = await snapshots.now()
        assert first is not None
        assert not await snapshots.after(first.number, 0.1)
        put(world, a_claim("cam"))
        assert await snapshots.after(first.number, 10)

    assert snapshots.latest is not None
    assert len(snapshots.latest.lines[Part.CLAIMS]) == 1


async def test_another_replica_has_other_numbers(world: World) -> None:
    """A viewer who came from there would take its rows for those that he has."""
    numbers = set()
    for started in (1000.0, 1000.5):
        replica = Snapshots(world, Recent(), clock=lambda now=started: now)  # type: ignore[misc]
        running = asyncio.create_task(replica.run())
        found = await replica.now()
        assert found is not None
        numbers.add(found.number)
        running.cancel()
        await asyncio.wait((running,))

    assert len(numbers) == 2


async def test_others_have_their_turn_during_a_look(
    world: World, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_snapshots, "PIECE_SECONDS", 0.0)
    for number in range(50):
        put(world, a_claim(f"cam-{number}"))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while snapshots.latest is None:
            turns += 1
            await asyncio.sleep(0)

    await asyncio.gather(other(), snapshots.now())
    assert turns > 50


async def test_what_goes_during_a_look_is_left_out(
    world: World, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_snapshots, "PIECE_SECONDS", 0.0)
    claims = [a_claim(f"cam-{number}") for number in range(50)]
    put(world, *claims)

    async def clear() -> None:
        await asyncio.sleep(0)
        for claim in claims:
            world.delete_claim(claim.uid)
            await asyncio.sleep(0)
        world.delete_queue(QueueName("vision"))

    _, found = await asyncio.gather(clear(), snapshots.now())
    assert found is not None
    assert len(found.lines[Part.CLAIMS]) < 50


async def test_samples_are_taken_while_nobody_looks(world: World, snapshots: Snapshots) -> None:
    put(world, a_pod("v", queue="vision", claims=["cam"], node="node-a"))
    put(world, an_allocated_claim("cam", "v", queue="vision"))
    async with asyncio.timeout(30):
        while not snapshots.history.of(("vision", "onvif")).usage:  # noqa: ASYNC110  It rests.
            await asyncio.sleep(0.01)

    assert snapshots.latest is None
    assert snapshots.history.of(("vision", "onvif")).usage[-1] == 1

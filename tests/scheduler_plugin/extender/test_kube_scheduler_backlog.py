"""When the next pod's turn comes."""

from __future__ import annotations

import asyncio

import pytest

from scheduler_plugin.extender import kube_scheduler_backlog as turns
from scheduler_plugin.extender.kube_scheduler_backlog import Backlog


async def is_kept(task: asyncio.Task[None]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return not task.done()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes on by itself within a test."""
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 60)


@pytest.fixture
async def full(patient: None) -> Backlog:
    found = Backlog(most=2)
    found.begin("a")
    found.begin("b")
    return found


async def test_there_is_room_until_so_many_are_on_their_way(patient: None) -> None:
    found = Backlog(most=2)
    found.begin("a")

    await found.next()


async def test_next_pod_waits_until_one_before_it_ended(full: Backlog) -> None:
    task = asyncio.create_task(full.next())
    assert await is_kept(task)

    full.end("another")
    assert await is_kept(task)
    full.end("a")

    await task


async def test_pod_that_is_asked_about_twice_counts_once(patient: None) -> None:
    found = Backlog(most=2)
    found.begin("a")
    found.begin("a")

    await found.next()


async def test_pod_that_waits_before_its_binding_keeps_nobody_waiting(
    full: Backlog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "RESERVED_SECONDS", -1.0)
    full.begin("a")
    full.begin("b")

    await full.next()
    assert len(full) == 0


async def test_nobody_waits_for_long(full: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 0.001)

    await full.next()
    assert len(full) == 2


async def test_pod_that_is_being_bound_counts_until_that_ends(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "RESERVED_SECONDS", -1.0)
    found = Backlog(most=1)
    found.begin("a")
    found.bind("a")
    found.begin("a")
    task = asyncio.create_task(found.next())
    assert await is_kept(task)

    found.end("a")

    await task
    assert len(found) == 0

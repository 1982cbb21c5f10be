"""When the next pod's turn comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from scheduler_plugin import turns
from scheduler_plugin.turns import Turns


async def is_kept(task: asyncio.Task[None]) -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return not task.done()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing goes on by itself within a test."""
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 60)


async def test_there_is_room_until_so_many_are_bound_at_one_time(patient: None) -> None:
    found = Turns(most=2)
    with found.taken():
        await found.next()


async def test_next_pod_waits_until_one_before_it_ended(patient: None) -> None:
    found = Turns(most=2)
    with found.taken():
        with found.taken():
            task = asyncio.create_task(found.next())
            assert await is_kept(task)

        await task


async def test_call_that_failed_ended_too(patient: None) -> None:
    found = Turns(most=1)
    with suppress(ValueError), found.taken():
        raise ValueError

    await found.next()


async def test_nobody_waits_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 0.001)
    found = Turns(most=1)
    with found.taken():
        await found.next()

        assert not found.has_room

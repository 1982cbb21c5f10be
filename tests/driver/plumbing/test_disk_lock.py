"""One process is inside a lock at a time, and its tasks are together."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from driver.plumbing import disk_lock
from driver.plumbing.disk_lock import ProcessLock


async def nothing(_: bool) -> None:
    """What the first task to enter a lock does."""


async def test_lock_keeps_other_processes_out(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    ours, theirs = ProcessLock(path), ProcessLock(path)
    order: list[str] = []

    async def other() -> None:
        async with theirs.held(nothing):
            order.append("theirs")

    async with ours.held(nothing):
        waiting = asyncio.create_task(other())
        await asyncio.sleep(0.1)
        order.append("ours")
    await waiting

    assert order == ["ours", "theirs"]


async def test_tasks_of_one_process_are_inside_together(tmp_path: Path) -> None:
    lock = ProcessLock(tmp_path / "lock")
    entered: list[int] = []

    async def enter(_: bool) -> None:
        entered.append(len(entered))

    async with lock.held(enter), lock.held(enter):
        pass
    async with lock.held(enter):
        pass

    assert entered == [0, 1]


async def test_who_enters_knows_whether_another_process_was_inside_since(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    told: list[bool] = []

    async def enter(is_foreign: bool) -> None:
        told.append(is_foreign)

    ours, theirs = ProcessLock(path), ProcessLock(path)
    for lock in (ours, ours, theirs, ours, theirs, theirs):
        async with lock.held(enter):
            pass

    assert told == [True, False, True, True, True, False]


async def test_on_a_full_disk_every_process_looks_what_there_is(tiny: Path) -> None:
    told: list[bool] = []

    async def enter(is_foreign: bool) -> None:
        told.append(is_foreign)

    ours, theirs = ProcessLock(tiny / "lock"), ProcessLock(tiny / "lock")
    _fill(tiny)
    for lock in (ours, theirs, ours, ours):
        async with lock.held(enter):
            pass

    assert told == [True, True, True, True]


def _fill(folder: Path) -> None:
    (folder / "lock").touch()
    with suppress(OSError), (folder / "full").open("wb", buffering=0) as file:
        while file.write(bytes(512)):
            pass


async def test_entry_that_failed_counts_for_nothing(tmp_path: Path) -> None:
    lock = ProcessLock(tmp_path / "lock")
    told: list[bool] = []

    async def fail_once(is_foreign: bool) -> None:
        told.append(is_foreign)
        if len(told) == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        async with lock.held(fail_once):
            pass
    async with lock.held(fail_once):
        pass

    assert told == [True, True]


async def test_lock_is_free_again_after_a_failed_entry(tmp_path: Path) -> None:
    lock, other = ProcessLock(tmp_path / "lock"), ProcessLock(tmp_path / "lock")

    async def fail(_: bool) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        async with lock.held(fail):
            pass
    async with asyncio.timeout(1), other.held(nothing):
        pass


async def test_waiting_for_the_lock_can_be_given_up(tmp_path: Path) -> None:
    lock, other = ProcessLock(tmp_path / "lock"), ProcessLock(tmp_path / "lock")
    descriptors = len(os.listdir("/proc/self/fd"))

    async with lock.held(nothing):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), other.held(nothing):
                pass

    assert len(os.listdir("/proc/self/fd")) == descriptors
    async with asyncio.timeout(1), other.held(nothing):
        pass


async def test_lock_for_a_key_keeps_other_processes_from_that_key_alone(tmp_path: Path) -> None:
    ours, theirs = ProcessLock(tmp_path / "lock"), ProcessLock(tmp_path / "lock")

    async with ours.held_for("claim-1"):
        async with asyncio.timeout(5), theirs.held_for("claim-2"), theirs.held(nothing):
            pass
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), theirs.held_for("claim-1"):
                pytest.fail("two processes have it")

    async with asyncio.timeout(5), theirs.held_for("claim-1"):
        pass


async def test_process_that_is_never_empty_lets_others_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_lock, "HELD_SECONDS", 0.05)
    busy, other = ProcessLock(tmp_path / "lock"), ProcessLock(tmp_path / "lock")

    async def work(seconds: float) -> None:
        while True:
            async with busy.held(nothing):
                await asyncio.sleep(seconds)

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        workers = [tasks.create_task(work(seconds)) for seconds in (0.007, 0.011, 0.013)]
        await asyncio.sleep(0.02)
        async with other.held(nothing):
            pass
        for worker in workers:
            worker.cancel()

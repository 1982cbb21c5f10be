"""Files are replaced whole or not at all, and one process is inside a lock at a time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from driver.plumbing import disk
from driver.plumbing.disk import (
    ABANDONED_SECONDS,
    Folder,
    ProcessLock,
    boot_id,
)
from tests.driver.plumbing.writers import (
    ROUNDS,
    Writers,
    contents,
    fail_to_write,
    write_often,
)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs takes root")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


async def nothing(_: bool) -> None:
    """What the first task to enter a lock does."""


def test_file_is_written_read_replaced_and_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "a" / "b")

    assert (folder.names(), folder.read("x"), folder.signature("x")) == ([], None, None)
    folder.write("x", b"1")
    first = folder.signature("x")
    folder.write("x", b"2")

    assert (folder.names(), folder.read("x")) == (["x"], b"2")
    assert folder.signature("x") != first
    folder.remove("x")
    folder.remove("x")
    assert folder.names() == []


def test_no_look_at_a_file_that_two_processes_write_is_torn(tmp_path: Path) -> None:
    folder, writers = Folder(tmp_path), Writers(tmp_path, a=write_often, b=write_often)

    looks = {folder.read("x") for _ in writers.meanwhile()}

    assert looks <= {None, contents("a"), contents("b")}
    assert folder.read("x") is not None
    assert writers.told() == {"a": 0, "b": 0}
    assert folder.names() == ["x"]


def test_a_process_that_cannot_write_leaves_the_file_of_one_that_can(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("x", contents("a"))
    writers = Writers(tmp_path, a=write_often, b=fail_to_write)

    looks = {folder.read("x") for _ in writers.meanwhile()}

    assert looks == {contents("a")}
    assert writers.told() == {"a": 0, "b": ROUNDS}
    assert folder.names() == ["x"]


def test_what_killed_writers_left_is_removed_with_the_first_write(tmp_path: Path) -> None:
    left = [".moorage.dev-0123456789abcdef.tmp", ".akri.sh-akri-onvif-8120fe.json.tmp"]
    others = [".moorage.dev-fedcba9876543210.tmp", ".vendor.json.tmp", "moorage.dev-1.tmp"]
    for name in (*left, *others):
        (tmp_path / name).write_bytes(b"half")
    for name in (*left, *others[1:]):
        os.utime(tmp_path / name, (0, time.time() - 2 * ABANDONED_SECONDS))

    Folder(tmp_path).write("x", b"1")

    assert Folder(tmp_path).names() == sorted([*others, "x"])


def test_names_of_any_length_can_be_written(tmp_path: Path) -> None:
    name = "x" * 255

    Folder(tmp_path).write(name, b"1")

    assert Folder(tmp_path).names() == [name]


def test_file_gets_another_name_whoever_has_that(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("x", b"new")
    folder.write("y", b"old")

    folder.rename("x", "y")

    assert (folder.names(), folder.read("y")) == (["y"], b"new")
    with pytest.raises(FileNotFoundError):
        folder.rename("x", "y")


def test_full_disk_leaves_the_old_file_and_no_other(tiny: Path) -> None:
    folder = Folder(tiny)
    folder.write("x", b"old")

    with pytest.raises(OSError, match="No space left"):
        folder.write("x", bytes(64 * 1024))

    assert folder.read("x") == b"old"
    assert folder.names() == ["x"]
    folder.write("x", b"new")
    assert folder.read("x") == b"new"


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
    monkeypatch.setattr(disk, "HELD_SECONDS", 0.05)
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


def test_files_are_for_root_only(tmp_path: Path) -> None:
    Folder(tmp_path).write("x", b"secret")

    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600


def test_boot_has_an_id() -> None:
    assert boot_id()
    assert boot_id() == boot_id()


def test_a_folder_says_why_nothing_can_be_written_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "cdi"
    folder = Folder(path)

    assert (folder.problem(), folder.problem(thoroughly=True), folder.names()) == ("", "", [])
    (tmp_path / "file").touch()
    assert "Not a directory" in Folder(tmp_path / "file" / "cdi").problem()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        path.rmdir()  # as of a mount whose folder was removed on the node
        mounted = Folder(Path(f"/proc/self/fd/{descriptor}"))
        assert mounted.problem().endswith(" was removed on the node")
        with pytest.raises(FileNotFoundError):
            mounted.write("x", b"")
    finally:
        os.close(descriptor)
    assert folder.problem() == ""
    assert path.is_dir()


def test_a_full_disk_is_told_by_a_thorough_look(tiny: Path) -> None:
    folder = Folder(tiny)
    with pytest.raises(OSError, match="No space left"):
        folder.write("x", bytes(32 * 1024))
    (tiny / "much").write_bytes(bytes(12 * 1024))

    assert folder.problem() == ""
    assert folder.problem(thoroughly=True).endswith(": No space left on device")
    (tiny / "much").unlink()
    assert folder.problem(thoroughly=True) == ""
    assert folder.names() == []

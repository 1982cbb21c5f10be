"""Drivers of one node on different paths: one waits for the end of the other, however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from driver.offer_paths import OfferPath
from driver.publishing.disk_path_lock import PathLock

SECONDS = 30.0
TAKE = """
import asyncio, pathlib, sys
from driver.publishing.disk_path_lock import PathLock
from driver.offer_paths import OfferPath

turns = PathLock(pathlib.Path(sys.argv[1]))
asyncio.run(turns.take(OfferPath(sys.argv[2])))
print("taken", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def another(file: Path, path: OfferPath) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that has taken a path."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        TAKE,
        str(file),
        path,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(SECONDS):
            assert await process.stdout.readline() == b"taken\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "not yet there" / "path"


def said(file: Path) -> str:
    return file.read_text()


def say(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)


async def test_the_first_takes_any_path_at_once(file: Path) -> None:
    async with asyncio.timeout(SECONDS):
        await PathLock(file).take(OfferPath.DRA)

    assert said(file) == "dra"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
async def test_another_path_waits_until_the_process_ends(file: Path, end: signal.Signals) -> None:
    async with another(file, OfferPath.DEVICE_PLUGIN) as process:
        waiting = asyncio.create_task(PathLock(file).take(OfferPath.DRA))
        await asyncio.wait([waiting], timeout=0.3)
        assert not waiting.done()

        process.send_signal(end)
        async with asyncio.timeout(SECONDS):
            await waiting

    assert said(file) == "dra"


async def test_processes_of_one_path_serve_together(file: Path) -> None:
    async with another(file, OfferPath.DRA), another(file, OfferPath.DRA):
        async with asyncio.timeout(SECONDS):
            await PathLock(file).take(OfferPath.DRA)


async def test_what_a_file_says_that_nobody_holds_counts_for_nothing(file: Path) -> None:
    say(file, "device-plugin, and more that makes no sense")

    async with asyncio.timeout(SECONDS):
        await PathLock(file).take(OfferPath.DEVICE_PLUGIN)

    assert said(file) == "device-plugin"

"""Processes that a test ends between two of their system calls."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from local_cluster.debian import ensure_packages

WAITS = frozenset(
    {"clock_gettime", "clock_nanosleep", "epoll_wait", "futex", "getpid", "gettid", "poll"}
)
"""System calls after which the disk is what it was before, and nobody has heard of anything."""

CHANGES = frozenset({"fsync", "rename", "unlink"})
"""System calls that come as often however fast the machine is: they are what is to be done."""

ALL_VARIABLE = "MOORAGE_CRASHES"
"""Set to try all boundaries."""

SAMPLE = 4
"""How many are tried without that, beside those of `CHANGES`."""

SECONDS = 30.0

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["tests.driver.crashes.claims_process", "tests.driver.crashes.slots_process"]
)

P = ParamSpec("P")
T = TypeVar("T")

Serve = Callable[[Path, Connection], None]


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a process dies: before a system call of this name comes for the nth time."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call} {self.number}"


class Boundaries:
    """Those of what a process does; iterate, and let one process live for each.

    The first, None, is of a process that is only watched: it shows which others there are. How
    often one waits, wakes itself or reads depends on the machine, so the last of those need not
    come again. What changes the disk has to, each time (`check`).
    """

    def __init__(self, root: Path) -> None:
        self.log = root / "calls"
        self.found: list[Boundary] = []
        self._survived: list[Boundary] = []

    def __iter__(self) -> Iterator[Boundary | None]:
        yield None
        numbers: Counter[str] = Counter()
        for call in _calls(self.log.read_text()):
            numbers[call] += 1
            self.found.append(Boundary(call, numbers[call]))
        step = 1 if ALL_VARIABLE in os.environ else len(self.found) // SAMPLE
        sample = self.found[::step]
        yield from (b for b in self.found if b.call in CHANGES or b in sample)

    def note_survived(self, boundary: Boundary | None) -> None:
        """Say that the process went on: another timer, another order."""
        if boundary is not None:
            self._survived.append(boundary)

    def check(self, least: int) -> None:
        """Whether so many there were, and no process outlived one that changes the disk."""
        assert len(self.found) >= least, self.found
        assert {boundary.call for boundary in self.found} & CHANGES
        assert [str(b) for b in self._survived if b.call in CHANGES] == []


def _calls(log: str) -> Iterator[str]:
    for line in log.splitlines():
        call, parenthesis, _ = line.partition("(")
        if parenthesis and call.isidentifier() and call not in WAITS:
            yield call


class AtOnce(ThreadPoolExecutor):
    """Runs what is given to a thread in the one that gives it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is raised again where it is waited for
            done.set_exception(error)
        return done


@dataclass
class Life:
    """A process of the driver, that serves once it is told to begin.

    Attributes:
        orders: Where it is told what to do besides what the kubelet asks for.
    """

    process: BaseProcess
    orders: Any
    tracer: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        self.orders.send("begin")

    async def trace(self, log: Path, boundary: Boundary | None) -> None:
        """From now on write down its system calls; let it be killed at this one."""
        kill = f"--inject={boundary.call}:signal=KILL:when={boundary.number}" if boundary else "-q"
        into = "/dev/null" if boundary else str(log)
        await asyncio.to_thread(self._trace, "-qq", "-o", into, kill)

    async def delay(self, call: str, seconds: float) -> None:
        """From now on let each system call of this name take so long, in whichever thread."""
        inject = f"--inject={call}:delay_enter={int(seconds * 1e6)}"
        await asyncio.to_thread(self._trace, "-f", "-qq", "-o", "/dev/null", inject)

    def _trace(self, *options: str) -> None:
        """Either may be gone when strace has hardly begun."""
        pid = self.process.pid
        self.tracer = tracer = subprocess.Popen(("strace", *options, "-p", str(pid)))
        until(lambda: tracer.poll() is not None or _is_traced(Path(f"/proc/{pid}/status")))

    async def end(self) -> None:
        """As a power cut of this process alone."""
        self.process.kill()
        await asyncio.to_thread(self.process.join)
        self.orders.close()
        if self.tracer is not None:
            await asyncio.to_thread(self.tracer.wait)  # it ends with whom it follows


def _is_traced(status: Path) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return "TracerPid:\t0\n" not in status.read_text()
    return True


def until(condition: Callable[[], bool]) -> None:
    """Wait for what no descriptor tells of."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@asynccontextmanager
async def life(serve: Serve, root: Path) -> AsyncIterator[Life]:
    """A process that waits for `begin`."""
    ensure_packages({"strace": "strace"})
    ours, its = _PROCESSES.Pipe()
    process = _PROCESSES.Process(target=serve, args=(root, its), daemon=True)
    await asyncio.to_thread(process.start)
    its.close()
    found = Life(process, ours)
    try:
        assert await asyncio.to_thread(ours.recv) == "ready"
        yield found
    finally:
        await found.end()

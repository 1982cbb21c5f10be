"""Processes that write one file at one time, as an old and a new driver do during an update."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from driver.plumbing.disk import Folder

ROUNDS = 300
SECONDS = 60.0

Work = Callable[[Path, str, Connection], None]
"""Something in a folder, by a writer of this name; it sends what it did."""

_PROCESSES = multiprocessing.get_context("forkserver")


def contents(writer: str) -> bytes:
    """What a writer writes: enough for several system calls to show."""
    return (writer * 200_000).encode()


def write_often(root: Path, writer: str, told: Connection) -> None:
    """Write; tells how many writes failed."""
    folder, failures = Folder(root, lasting=False), 0
    for _ in range(ROUNDS):
        try:
            folder.write("x", contents(writer))
        except OSError:
            failures += 1
    told.send(failures)


def fail_to_write(root: Path, writer: str, told: Connection) -> None:
    """The same on what is to this process a full disk."""
    limit_files(16)
    write_often(root, writer, told)


def limit_files(size: int) -> None:
    """Let this process write no file that is larger."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _begin(work: Work, root: Path, writer: str, told: Connection) -> None:
    told.send("ready")
    told.recv()
    work(root, writer, told)


class Writers:
    """Processes that work in one folder at one time: none begins before all can."""

    def __init__(self, root: Path, **works: Work) -> None:
        self._running: dict[str, tuple[BaseProcess, Connection]] = {}
        for writer, work in works.items():
            ours, its = _PROCESSES.Pipe()
            arguments = (work, root, writer, its)
            process = _PROCESSES.Process(target=_begin, args=arguments, daemon=True)
            process.start()
            its.close()
            self._running[writer] = process, ours
        for _, ours in self._running.values():
            assert ours.poll(SECONDS)
            assert ours.recv() == "ready"
        for _, ours in self._running.values():
            ours.send("go")

    def meanwhile(self) -> Iterator[None]:
        """Again and again until all have ended."""
        yield
        while any(process.is_alive() for process, _ in self._running.values()):
            yield

    def told(self) -> dict[str, int]:
        """By writer."""
        found = {}
        for writer, (process, ours) in self._running.items():
            assert ours.poll(SECONDS)
            found[writer] = ours.recv()
            ours.close()
            process.join(SECONDS)
        return found

"""Processes are known by pid and start time, and found by their mark."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from local_cluster import processes
from local_cluster.health import wait_until
from local_cluster.processes import Process

ENV = {"PATH": os.environ["PATH"]}
# Says when it is ready, and ignores what is polite.
STUBBORN = "trap '' TERM; echo ready; while true; do sleep 0.1; done"
# Compresses in eight threads, which needs no lock of the interpreter's.
BUSY = """
import threading, zlib
def work():
    while True:
        zlib.compress(bytes(4_000_000), 9)
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def mark() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    processes.end_all(processes.marked(value), seconds=0)


def start(tmp_path: Path, mark: str, *argv: str) -> Process:
    return processes.start(argv, tmp_path / "log", ENV, mark)


def test_process_lives_until_it_is_ended(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "sleep", "60")
    assert process.is_alive()

    process.end(seconds=5)

    assert not process.is_alive()
    assert not process.signal(signal.SIGTERM)


def test_recycled_pid_is_not_signalled(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "sleep", "60")
    earlier = replace(process, start_time=process.start_time - 1)

    assert not earlier.is_alive()
    assert not earlier.signal(signal.SIGKILL)

    assert process.is_alive()


def states(process: Process) -> set[str]:
    """Of all its threads."""
    files = Path("/proc", str(process.pid), "task").glob("*/stat")
    return {file.read_text().rpartition(")")[2].split()[0] for file in files}


def test_a_stopped_process_does_nothing_more(tmp_path: Path, mark: str) -> None:
    """Not even what a thread was at: a story that stops a kubelet relies on its silence."""
    process = start(tmp_path, mark, sys.executable, "-c", BUSY)
    while "ready" not in (tmp_path / "log").read_text():
        time.sleep(0.01)

    for _ in range(20):
        process.signal(signal.SIGSTOP)
        assert states(process) == {"T"}
        process.signal(signal.SIGCONT)


def test_stubborn_process_is_killed_after_its_time(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "sh", "-c", STUBBORN)
    while "ready" not in (tmp_path / "log").read_text():
        time.sleep(0.01)

    process.end(seconds=0.1)

    assert not process.is_alive()


def test_stopped_process_can_be_ended(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "sleep", "60")
    process.signal(signal.SIGSTOP)

    process.end(seconds=5)

    assert not process.is_alive()


def test_killing_a_stopped_process_leaves_no_stopped_nsenter(tmp_path: Path, mark: str) -> None:
    """It stops itself together with its child, and a PID namespace waits for whom it reaps."""
    nsenter = start(tmp_path, mark, "nsenter", f"--target={os.getpid()}", "--pid", "sleep", "60")
    child = processes.only_child(nsenter)
    child.signal(signal.SIGSTOP)
    assert wait_until(lambda: states(nsenter) == {"T"}, seconds=10)

    child.kill()

    assert wait_until(lambda: not nsenter.is_alive(), seconds=10)


def test_mark_finds_children_that_nobody_recorded(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "sh", "-c", "sleep 60 & sleep 60")
    child = processes.only_child(process)

    assert {process, child} <= set(processes.marked(mark))

    processes.end_all(processes.marked(mark), seconds=5)
    assert processes.marked(mark) == ()


def test_process_without_a_child_yields_one_that_is_dead(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "true")

    assert not processes.only_child(process).is_alive()


def test_record_remembers_process_and_fingerprint(tmp_path: Path) -> None:
    process = Process(4711, 12)

    processes.save(tmp_path / "record.json", process, "abc")

    assert processes.load(tmp_path / "record.json") == (process, "abc")
    assert processes.load(tmp_path / "missing.json") is None


def test_output_goes_to_the_log(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, mark, "sh", "-c", "echo out; echo err >&2")

    while process.is_alive():
        time.sleep(0.01)

    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_session_finds_children_whose_parent_is_gone(tmp_path: Path, mark: str) -> None:
    parent = start(tmp_path, mark, "sh", "-c", "sleep 60 & sleep 60")
    child = processes.only_child(parent)
    parent.kill()

    processes.kill_all(processes.in_session(parent.pid))

    assert not child.is_alive()

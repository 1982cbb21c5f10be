"""What a terminal and a pipe show: every name whole, and no blank at the end of a line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler_plugin.asking.test_snapshots import (
    a_configuration,
    a_device,
    a_slice_object,
    raw,
)
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_class_object,
    a_pod_object,
    a_queue_object,
    a_request,
    a_result,
)
from tests.scheduler_plugin.kubectl.snapshots import RUN, Objects, a_file, ask

QUEUES = ("robotics-research-and-development", "vision-quality-assurance-of-line-four")
PODS = tuple(f"inspection-of-the-front-door-{number}" for number in range(4))
CLASS = "camera-with-a-long-name-and-a-long-class"
DEVICE = "camera-317-at-the-front-door-of-the-second-floor"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def long_names() -> Objects:
    """A cluster in which nothing fits into 80 columns."""
    pods = [a_pod_object(n, queue=QUEUES[0], claims=("cam",), node="n") for n in PODS]
    waiting = a_pod_object("waits-for-a-camera", queue=QUEUES[1], claims=("more",))
    result = a_result(device=DEVICE)
    claim = a_claim_object(
        "cam", queue=QUEUES[0], requests=[a_request(CLASS)], results=[result], pods=list(PODS)
    )
    device = a_device(DEVICE)
    device["attributes"]["configuration"]["string"] = CLASS
    report = {"name": "n", "handler": "Offline", "since": "2026-11-21T23:00:00Z"}
    return {
        **raw(),
        "pods": [*pods, waiting],
        "resourceclaims": [claim, a_claim_object("more", requests=[a_request(CLASS)])],
        "deviceclasses": [a_class_object(CLASS, configuration=CLASS)],
        "resourceslices": [a_slice_object(device, nodeName="n")],
        "configurations": [a_configuration(nodes=[report])],
        "queues": [a_queue_object(name, **{CLASS: (0, 1)}) for name in QUEUES],
    }


CASES = [
    (("queues",), (*QUEUES, CLASS, "NON-PREEMPTIBLE")),
    (("queues", "-o", "wide"), (*QUEUES, CLASS, "NON-PREEMPTIBLE", "SHARE")),
    (("claims",), (QUEUES[0], CLASS, DEVICE, *PODS, "USERS")),
    (("charge", QUEUES[0]), (QUEUES[0], CLASS, *PODS, "USERS")),
    (("devices", "-o", "wide"), (DEVICE, QUEUES[0], "default/cam", *PODS, "INSTANCE")),
    (("handlers",), ("default/onvif", "60m ago", "REGISTERED", "MESSAGE")),
    (("why", "waits-for-a-camera"), (QUEUES[1], CLASS, "CHECK", "RESULT", "ADDED")),
]


def on_terminal(columns: int, *words: str) -> str:
    """What a terminal of so many columns is sent, without the ends of lines that it adds."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "NO_COLOR"):
        environment.pop(name, None)
    command = (sys.executable, "-c", RUN, *words)
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        sent = b""
        with suppress(OSError):  # The other end is closed.
            while part := os.read(leader, 65536):
                sent += part
    os.close(leader)
    assert process.returncode == 0, sent
    return sent.decode().replace("\r\n", "\n")


def whole(text: str) -> str:
    """As a terminal shows it once what it wraps is joined: a line is as long as it was sent."""
    return _STYLE.sub("", text)


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(("words", "names"), CASES)
def test_a_terminal_shows_every_name_whole(
    columns: int, words: tuple[str, ...], names: tuple[str, ...], tmp_path: Path
) -> None:
    file = a_file(tmp_path, long_names())

    shown = on_terminal(columns, *words, f"--snapshot={file}")

    lines = whole(shown).splitlines()
    assert {name for name in names if not any(name in line for line in lines)} == set()
    assert [line for line in lines if line != line.rstrip()] == []
    assert "─" not in shown


@pytest.mark.parametrize(("words", "names"), CASES)
def test_a_pipe_gets_the_same_lines_without_styles(
    words: tuple[str, ...], names: tuple[str, ...], tmp_path: Path
) -> None:
    file = a_file(tmp_path, long_names())

    done = ask(*words, f"--snapshot={file}", COLUMNS="80")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == whole(on_terminal(80, *words, f"--snapshot={file}"))
    assert "\x1b" not in done.stdout


def test_every_row_of_a_table_has_a_word_in_every_column(tmp_path: Path) -> None:
    """So that `awk '{print $5}'` means the same in each line."""
    file = a_file(tmp_path, long_names())

    done = ask("queues", f"--snapshot={file}")

    assert {len(line.split()) for line in done.stdout.splitlines()} == {8}


def test_checks_that_fail_come_first(tmp_path: Path) -> None:
    lines = ask("why", "b", f"--snapshot={a_file(tmp_path)}").stdout.splitlines()

    (head,) = (number for number, line in enumerate(lines) if line.startswith("CHECK"))
    results = [line.split()[1] for line in lines[head + 1 : lines.index("", head)]]
    assert results[0] == "FAIL"
    assert set(results[1:]) == {"pass"}


@pytest.mark.parametrize("view", ["queues", "claims", "devices", "handlers"])
def test_no_row_is_a_sentence_as_with_kubectl(view: str, tmp_path: Path) -> None:
    nothing: dict[str, list[dict[str, Any]]] = {kind: [] for kind in raw()}

    done = ask(view, f"--snapshot={a_file(tmp_path, nothing)}")

    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"No [A-Za-z ]+ found\.\n", done.stderr)


NOT_NEEDED = ("aiohttp", "asyncio", "kubernetes", "prometheus_client", "pydantic", "rich", "ssl")


@pytest.mark.parametrize("words", [("queues",), ("claims",), ("devices",), ("why", "b")])
def test_a_call_on_a_file_imports_nothing_that_it_does_not_use(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """Imports are what a call spends its time on."""
    seen = (
        "import sys; from scheduler_plugin.kubectl.commands import main; main();"
        f"print([m for m in {NOT_NEEDED} if m in sys.modules], file=sys.stderr)"
    )
    command = (sys.executable, "-c", seen, *words, f"--snapshot={a_file(tmp_path)}")

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stderr == "[]\n"


def test_a_call_looks_for_no_garbage_while_it_reads_and_when_it_ends(tmp_path: Path) -> None:
    seen = (
        "import gc, sys; from scheduler_plugin.kubectl.commands import main; main();"
        "print(gc.isenabled(), gc.get_freeze_count() > 0, file=sys.stderr)"
    )
    command = (sys.executable, "-c", seen, "queues", f"--snapshot={a_file(tmp_path)}")

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stderr == "False True\n"

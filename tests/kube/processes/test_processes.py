"""The process: it ends when it is told to, whatever its threads are waiting for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime, timedelta

STUCK = """
import asyncio, time
from kube.processes.api import run_process

async def work():
    looking_up = asyncio.create_task(asyncio.to_thread(time.sleep, 60))
    await asyncio.sleep(0.1)
    print("running", flush=True)
    await looking_up

run_process(work())
"""

SEARCHING = """
import asyncio, re
from kube.processes.api import run_process

async def search_without_end():
    await asyncio.sleep(0)
    re.match("(a*)*b", "a" * 64)

run_process(search_without_end(), stuck_seconds=1.0)
"""

TURNING = """
import asyncio, faulthandler
from kube.processes.api import run_process
put_off = []
faulthandler.dump_traceback_later = lambda seconds, exit: put_off.append((seconds, exit))
faulthandler.cancel_dump_traceback_later = lambda: print("ended", set(put_off), flush=True)

async def turn():
    while len(put_off) < 3:
        await asyncio.sleep(0.01)

run_process(turn(), stuck_seconds=0.4)
"""

FAILING = """
import asyncio
from kube.calls.api import KubeconfigError
from kube.processes.api import log_to_stderr, run_process

class PlainError(Exception): ...

async def fail():
    raise {error}

async def work():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fail())

log_to_stderr("INFO")
run_process(work(), plain_errors=(PlainError,))
"""


def test_a_stuck_thread_does_not_keep_the_process_from_stopping() -> None:
    argv = [sys.executable, "-c", STUCK]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"

        process.send_signal(signal.SIGTERM)

        try:
            assert process.wait(timeout=5) == 0
        finally:
            process.kill()


def test_a_process_whose_loop_is_stuck_ends_and_says_where() -> None:
    """No thread of Python's own comes in between while a regular expression is tried."""
    argv = [sys.executable, "-c", SEARCHING]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert "search_without_end" in done.stderr


def test_each_turn_of_the_loop_puts_the_end_off() -> None:
    argv = [sys.executable, "-c", TURNING]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "ended {(0.4, True)}\n"


def fails(error: str) -> str:
    """What a process says whose task fails with this error."""
    argv = [sys.executable, "-c", FAILING.replace("{error}", error)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    return done.stderr


def test_an_error_whose_sentence_says_it_all_is_told_without_a_traceback() -> None:
    for error in ("PlainError('no such port')", "KubeconfigError('no such port')"):
        said = fails(error)

        assert "ERROR kube.processes.processes no such port" in said
        assert "Traceback" not in said


def test_any_other_error_is_told_with_its_traceback() -> None:
    said = fails("ValueError('what is this')")

    assert "stopped by an error" in said
    assert "ValueError: what is this" in said


def lines(form: str) -> list[str]:
    """What a process logs in this form."""
    argv = [sys.executable, "-c", NAMING, form]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True)
    return done.stderr.splitlines()


NAMING = """
import asyncio, logging, sys
from kube.processes.api import log_context, log_to_stderr

async def say(what):
    logging.getLogger("ours.room").info("bound pod=%s", what)

async def work():
    with log_context(podUID="u1"):
        task = asyncio.ensure_future(say("a\\nb"))
        with log_context(claimUID="u2"):
            await say("a")
    await task
    await say("c")
    try:
        1 / 0
    except ArithmeticError:
        logging.getLogger("ours").exception("failed")

log_to_stderr("INFO", "ours", form=sys.argv[1])
asyncio.run(work())
"""


def test_lines_name_the_pod_and_the_claim_that_they_are_about() -> None:
    said = [line.split(" INFO ")[-1] for line in lines("text")]

    assert said[:2] == [
        "ours.room bound pod=a podUID=u1 claimUID=u2",
        "ours.room bound pod=a",
    ]
    assert said[2:4] == ["b podUID=u1", "ours.room bound pod=c"]


def test_each_line_may_be_an_object() -> None:
    first, second, third, failed = map(json.loads, lines("json"))

    assert first == {
        "time": first["time"],
        "level": "INFO",
        "logger": "ours.room",
        "message": "bound pod=a",
        "podUID": "u1",
        "claimUID": "u2",
    }
    assert datetime.fromisoformat(first["time"]).utcoffset() == timedelta(0)
    assert (second["message"], second["podUID"]) == ("bound pod=a\nb", "u1")
    assert "podUID" not in third
    assert failed["exc_info"].startswith("Traceback")

"""The process: it ends when it is told to, whatever its threads are waiting for."""

from __future__ import annotations

import signal
import subprocess
import sys

STUCK = """
import asyncio, sys, time
from driver import __main__

async def work():
    looking_up = asyncio.create_task(asyncio.to_thread(time.sleep, 60))
    await asyncio.sleep(0.1)
    print("running", flush=True)
    await looking_up

__main__.run(work())
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

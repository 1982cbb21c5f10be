"""Ends a process whose event loop is stuck, with a traceback; a slow process goes on.

A liveness probe cannot tell the two apart: on a busy node a working process answers late, too, and
a restart makes it repeat the same work. So the event loop resets a timer, and the process ends only
if the loop makes no iteration for `STUCK_SECONDS`. The timer is a C thread: it fires even if Python
code never releases the interpreter, as in a regular expression that does not terminate.
"""

from __future__ import annotations

import asyncio
import faulthandler
from typing import NoReturn

STUCK_SECONDS = 120.0
"""A stuck process stays stuck, and one more minute costs little. Ending a slow process costs all
its work."""

_BEATS = 20
"""How often the timer is reset in that time."""


async def end_when_stuck(seconds: float = STUCK_SECONDS) -> NoReturn:
    """End the process with status 1 if the loop makes no iteration for so long, until cancelled.

    The tracebacks of all threads are written to stderr.
    """
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(seconds / _BEATS)
    finally:
        faulthandler.cancel_dump_traceback_later()

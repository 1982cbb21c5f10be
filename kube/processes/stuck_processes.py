"""A process whose event loop is stuck ends itself, and says where; one that is slow goes on.

A probe from outside cannot tell the two apart: on a busy node the answer of a process that works is
late, too, and ending it makes it do the same work again. So each turn of the loop puts the end off,
and only a loop that makes no turn for `STUCK_SECONDS` comes to it. The end is a thread of C: it
comes although the interpreter never lets go, as in a regular expression without an end.
"""

from __future__ import annotations

import asyncio
import faulthandler
from typing import NoReturn

STUCK_SECONDS = 120.0
"""Who is stuck stays so, and a minute more costs little; ending who is slow costs all its work."""

_BEATS = 20
"""How often the end is put off in that time."""


async def end_when_stuck(seconds: float = STUCK_SECONDS) -> NoReturn:
    """End the process with status 1 if the loop makes no turn for so long, until cancelled.

    What all threads do at that moment is written to stderr.
    """
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(seconds / _BEATS)
    finally:
        faulthandler.cancel_dump_traceback_later()

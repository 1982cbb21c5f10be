"""Threads for work that would block the event loop: on many values, and on slow disks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

MANY = 256
"""Values that take some milliseconds of work."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread_if_many(many: int, function: Callable[[*Ts], T], *values: *Ts) -> T:
    """Return the result of a function; for many values run it in a thread.

    Args:
        many: How many values these are.
        function: A pure function.
        values: Its arguments; no other code may change them meanwhile.
    """
    if many <= MANY:
        return function(*values)
    return await asyncio.to_thread(function, *values)


async def in_shielded_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread and return its result; a cancelled caller waits for its end.

    A thread cannot be cancelled. So a caller that holds a lock keeps it until the thread has
    written, and no write of the next holder comes before.
    """
    running = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # so that asyncio does not log it as not retrieved
        raise cancelled
    return running.result()

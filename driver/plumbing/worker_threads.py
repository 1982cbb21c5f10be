"""Threads for what would hold up the event loop: work on many values, and on slow disks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

MANY = 256
"""Values of which some milliseconds of work are made."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def worked_out(many: int, function: Callable[[*Ts], T], *values: *Ts) -> T:
    """What the function returns; of many values in a thread, so that others come in between.

    Args:
        many: How many values these are.
        function: Pure.
        values: Nobody changes them meanwhile.
    """
    if many <= MANY:
        return function(*values)
    return await asyncio.to_thread(function, *values)


async def to_the_end(work: Callable[[], T]) -> T:
    """What `work` returns, from a thread; who is cancelled meanwhile waits until it has ended.

    A thread cannot be cancelled. So a lock that is held while it writes is held until it has
    written, and what it writes cannot come after what the next holder writes.
    """
    running = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # so that nobody is told of it
        raise cancelled
    return running.result()

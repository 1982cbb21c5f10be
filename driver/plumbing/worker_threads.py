"""Threads for what would hold up the event loop: pure functions of many values."""

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

"""Tasks of a test: run one beside it, and wait for what they do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator[None]:
    """Run something without an end until the context ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds, ten seconds at the most."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  Many things make it true.
            await asyncio.sleep(0.005)

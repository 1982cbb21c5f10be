"""Calls of the kubelet that go on although nobody waits for them any more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any


async def finish(running: Collection[asyncio.Future[Any]], seconds: float) -> None:
    """Let what runs come to an end, for this long; then it is cancelled."""
    if not running:
        return
    _, unfinished = await asyncio.wait(running, timeout=seconds)
    for task in unfinished:
        task.cancel()
    await asyncio.gather(*unfinished, return_exceptions=True)

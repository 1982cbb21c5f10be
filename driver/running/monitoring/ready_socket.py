"""Reports the readiness of this process at a Unix socket of its own.

During an update two processes of a node share its network and so one port, where the old process
would answer for the new one. This socket is named after the pod. A client reads why the driver is
not ready, or nothing if it is ready; `ready_main` is the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

WhyNotReady = Callable[[], str]
"""Returns the reason as a sentence; "" once the driver does its work."""


async def serve(path: Path, why_not_ready: WhyNotReady) -> NoReturn:
    """Answer until cancelled.

    Raises:
        OSError: The socket cannot be opened.
    """

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(why_not_ready().encode())
        writer.close()

    _clear(path)  # An earlier container of this pod may have left it.
    server = await asyncio.start_unix_server(answer, path)
    try:
        await server.serve_forever()
    finally:
        _clear(path)
    raise AssertionError("a server serves until it is cancelled")


def _clear(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)

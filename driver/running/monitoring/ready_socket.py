"""Whether this very process does its work, told at a socket of its own.

While an update goes on two processes of a node share its network and so one port: there the old
one answers for the new one. At this socket, named after the pod, nobody else does. Who connects is
told why the driver is not ready, or nothing; `ready_main` asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

WhyNotReady = Callable[[], str]
"""A sentence; "" once the driver does its work."""


async def serve(path: Path, why_not_ready: WhyNotReady) -> NoReturn:
    """Answer until cancelled.

    Raises:
        OSError: If nobody can listen there.
    """

    async def told(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(why_not_ready().encode())
        writer.close()

    _clear(path)  # this pod's container may have run before
    server = await asyncio.start_unix_server(told, path)
    try:
        await server.serve_forever()
    finally:
        _clear(path)
    raise AssertionError("a server serves until it is cancelled")


def _clear(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)

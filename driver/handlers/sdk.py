"""Write a discovery handler: a name, and an async generator that yields the devices there are.

    from driver.handlers.sdk import Device, Handler, Request, run

    async def discover(request: Request):
        while True:
            yield [Device(line, {"SHELF_PLACE": line}) for line in lines(request.details)]
            await asyncio.sleep(1)

    run(Handler("shelf", discover))

Everything else is done here: it serves Akri's contract, registers with the agent of its node, and
again whenever the agent restarts. `docs/write-your-own-handler.md` is the guide.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from contextlib import suppress

from driver.devices import Device, DeviceSpec, Mount
from driver.handlers.sdk_requests import (
    Handler,
    InvalidDetailsError,
    Place,
    Request,
    TlsFiles,
    place_from,
)
from driver.handlers.service import serve

__all__ = [
    "Device",
    "DeviceSpec",
    "Handler",
    "InvalidDetailsError",
    "Mount",
    "Place",
    "Request",
    "TlsFiles",
    "place_from",
    "run",
    "serve",
]


def run(handler: Handler, place: Place | None = None) -> None:
    """Serve until a signal."""

    async def until_signal() -> None:
        task = asyncio.current_task()
        assert task is not None, "inside a coroutine"
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await serve(handler, place or place_from(os.environ))

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    with suppress(asyncio.CancelledError):
        asyncio.run(until_signal())

"""The sockets where discovery handlers register, as a process."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from driver.handlers.external_handlers import ExternalHandlers
from driver.handlers.registration_socket import RegistrationSocket
from driver.plumbing.disk import Folder

SOCKET = "agent.sock"


def serve_handlers(root: Path, orders: Connection) -> None:
    """Take registrations at `<root>/agent.sock` until killed."""
    asyncio.run(_main(root, orders))


async def _main(root: Path, orders: Connection) -> None:
    handlers = ExternalHandlers(Folder(root / "data"))
    orders.send("ready")
    orders.recv()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(handlers.run())
        tasks.create_task(RegistrationSocket(root / SOCKET, handlers.register).serve())

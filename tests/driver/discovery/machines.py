"""OPC UA servers of the project open62541, in processes of their own, and one that is hostile.

python -m tests.driver.discovery.machines NUMBER ...       # of presses; 0 is the Discovery Server
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from types import TracebackType

LDS_PORT = 4840
HOSTILE_PORT = 4862
PRESSES = {7: 4855, 8: 4861, 9: 4856}
"""Their ports, by number."""

REGISTERED = (7, 9)
"""Those that the Discovery Server knows."""


async def serve(numbers: list[int]) -> None:
    importlib.import_module("o6.server")  # takes two seconds
    sys.stdin.readline()
    async with contextlib.AsyncExitStack() as serving:
        for number in numbers:
            await serving.enter_async_context(_server(number))
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def _server(number: int) -> AsyncIterator[None]:
    import o6
    from o6.server import Server

    port = PRESSES[number] if number else LDS_PORT
    server = Server(port=port, applicationUri=f"urn:press:{number}")
    description = server.config.applicationDescription
    if number:
        description.applicationName = o6.LocalizedText(f"Press {number}", "en")
        description.discoveryUrls = [f"opc.tcp://localhost:{port}"]
    else:
        description.applicationType = 3  # Discovery Server
    server.config.applicationDescription = description
    async with server:
        if number in REGISTERED:
            await server.registerDiscovery(f"opc.tcp://localhost:{LDS_PORT}")
        yield


class Machines:
    """A Discovery Server, two servers that it knows, one that it does not, and a hostile one."""

    def __enter__(self) -> Machines:
        self._hostile = socket.create_server(("127.0.0.1", HOSTILE_PORT))
        threading.Thread(target=_flood, args=(self._hostile,), daemon=True).start()
        self._processes = [start(0, 8, 9), start(7)]
        for process in self._processes:
            let_serve(process)
        return self

    def kill_press_7(self) -> None:
        self._processes[1].kill()
        self._processes[1].wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()
        self._hostile.close()


def start(*numbers: int, beside: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start the process of some servers; `beside` is a command by which it is run elsewhere."""
    module = ["-m", "tests.driver.discovery.machines", *map(str, numbers)]
    pipe = subprocess.PIPE
    return subprocess.Popen([*beside, sys.executable, *module], stdin=pipe, stdout=pipe, text=True)


def let_serve(process: subprocess.Popen[str]) -> None:
    """Let them serve, and wait until they do."""
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    for line in iter(process.stdout.readline, ""):
        if line == "serving\n":
            return
    raise AssertionError("the server failed")


def _flood(server: socket.socket) -> None:
    """Answer with one message that has no end."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with contextlib.suppress(OSError), connection:
                connection.sendall(b"ACKF\xff\xff\xff\x7f")
                while True:
                    connection.sendall(bytes(65536))


if __name__ == "__main__":
    asyncio.run(serve([int(number) for number in sys.argv[1:]]))

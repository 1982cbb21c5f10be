"""OPC UA servers of the project open62541, in processes of their own, and one that is hostile.

python -m tests.driver.discovery.machines PORT NAME [URL]    # a Discovery Server has no name
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from types import TracebackType

LDS_PORT = 4840
HOSTILE_PORT = 4862
PRESSES = {7: 4855, 8: 4861, 9: 4856}
"""By number; those but 8 are registered with the Discovery Server."""


async def serve(port: int, name: str, discovery_server: str) -> None:
    import o6
    from o6.server import Server

    server = Server(port=port, applicationUri=f"urn:press:{port}")
    description = server.config.applicationDescription
    if name:
        description.applicationName = o6.LocalizedText(name, "en")
        description.discoveryUrls = [f"opc.tcp://localhost:{port}"]
    else:
        description.applicationType = 3  # Discovery Server
    server.config.applicationDescription = description
    async with server:
        if discovery_server:
            await server.registerDiscovery(discovery_server)
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


class Machines:
    """A Discovery Server, two servers that it knows, one that it does not, and a hostile one."""

    def __enter__(self) -> Machines:
        self._hostile = socket.create_server(("127.0.0.1", HOSTILE_PORT))
        threading.Thread(target=_flood, args=(self._hostile,), daemon=True).start()
        lds = f"opc.tcp://localhost:{LDS_PORT}"
        self._processes = {0: _start(LDS_PORT, "", "")}
        _await(self._processes[0])
        for number, port in PRESSES.items():
            self._processes[number] = _start(port, f"Press {number}", "" if number == 8 else lds)
        for number in PRESSES:
            _await(self._processes[number])
        return self

    def stop_press(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.communicate()
        self._hostile.close()


def _start(port: int, *arguments: str) -> subprocess.Popen[str]:
    module = ["-m", "tests.driver.discovery.machines", str(port), *arguments]
    return subprocess.Popen([sys.executable, *module], stdout=subprocess.PIPE, text=True)


def _await(process: subprocess.Popen[str]) -> None:
    assert process.stdout
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
    asyncio.run(serve(int(sys.argv[1]), *sys.argv[2:]))

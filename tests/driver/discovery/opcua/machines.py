"""OPC UA servers of the project gopcua, in processes of their own, and one that is hostile."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType

from local_cluster.go_toolchain import ensure_built
from local_cluster.programs import OPCUA_MACHINES

LDS_PORT = 4840
HOSTILE_PORT = 4862
PRESSES = {7: 4855, 8: 4861, 9: 4856}
"""Their ports, by number."""

REGISTERED = (7, 9)
"""Those that the Discovery Server knows."""

HOSTS = {8: "press-8.invalid"}
"""Where some take themselves to be; nobody else knows it by that name."""


class Machines:
    """A Discovery Server, two servers that it knows, one that it does not, and a hostile one."""

    def __enter__(self) -> Machines:
        self._hostile = socket.create_server(("127.0.0.1", HOSTILE_PORT))
        threading.Thread(target=_flood, args=(self._hostile,), daemon=True).start()
        self._processes = [start(0, 8, 9), start(7)]
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
    """The process of some presses, which serve; 0 is the Discovery Server.

    Args:
        numbers: In this order.
        beside: A command by which others are run elsewhere.
    """
    program = ensure_built(OPCUA_MACHINES) / "opcua-machines"
    argv = [*beside, str(program), *(json.dumps(_machine(number)) for number in numbers)]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert process.stdout
    said = []
    for line in process.stdout:
        if line == "serving\n":
            return process
        said.append(line)
    process.communicate()
    raise AssertionError(f"the servers failed: {''.join(said)}")


def _machine(number: int) -> dict[str, object]:
    if not number:
        return {"port": LDS_PORT}
    host = HOSTS.get(number, "localhost")
    known_to = LDS_PORT if number in REGISTERED else 0
    return {"name": f"Press {number}", "port": PRESSES[number], "host": host, "knownTo": known_to}


def _flood(server: socket.socket) -> None:
    """Answer with one message that has no end."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = server.accept()
            with contextlib.suppress(OSError), connection:
                connection.sendall(b"ACKF\xff\xff\xff\x7f")
                while True:
                    connection.sendall(bytes(65536))

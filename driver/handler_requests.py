"""What a discovery handler is, is asked, and where it is found; the SDK's shapes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from driver.devices import Device

AGENT_FOLDER = Path("/var/lib/akri")
AGENT_SOCKET = "agent-registration.sock"
NETWORK_PORT = 10000


class InvalidDetailsError(Exception):
    """Raised by a handler that cannot make sense of the details; users see the text."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one Configuration asks for.

    Attributes:
        details: `discoveryDetails`, as written.
        properties: `discoveryProperties` by name; None for one without a value. They may be
            passwords, so they are not shown.
    """

    details: str
    properties: Mapping[str, bytes | None] = field(default_factory=dict, repr=False)


Discover = Callable[[Request], AsyncGenerator[Sequence[Device], None]]
"""Yields all devices that a request asks for, and again whenever they change.

It yields nothing before the devices are known. Its end means that they will not change any more;
when nobody asks any more, it is closed.
"""


@dataclass(frozen=True, slots=True)
class Handler:
    """A discovery handler.

    Attributes:
        name: What Configurations call it.
        shared: Whether several nodes may see one and the same device.
    """

    name: str
    discover: Discover
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a handler and its agent meet.

    Attributes:
        folder: Of sockets, at the same path for both.
        address: Of the network, `<host>:<port>`, where the handler is to listen; None for a socket
            in the folder.
    """

    folder: Path = AGENT_FOLDER
    address: str | None = None

    @property
    def agent_socket(self) -> Path:
        return self.folder / AGENT_SOCKET

    def handler_socket(self, name: str) -> Path:
        return self.folder / f"{name}.sock"


def place_from(environ: Mapping[str, str]) -> Place:
    """The place that the environment gives, in variables of the same names as for Akri."""
    folder = Path(environ.get("DISCOVERY_HANDLERS_DIRECTORY") or AGENT_FOLDER)
    ip = environ.get("POD_IP")
    host = f"[{ip}]" if ip and ":" in ip else ip
    return Place(folder, f"{host}:{NETWORK_PORT}" if host else None)

"""What a discovery handler is, is asked, and where it is found; the SDK's shapes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from driver.devices import Device

AGENT_FOLDER = Path("/var/lib/akri")
AGENT_SOCKET = "agent-registration.sock"
NETWORK_PORT = 10000
TLS_VARIABLES = ("HANDLER_TLS_CA", "HANDLER_TLS_CERT", "HANDLER_TLS_KEY")


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
        problem: Why devices cannot be discovered now, for users; asked with each list.
    """

    name: str
    discover: Discover
    shared: bool = False
    problem: Callable[[], str | None] = lambda: None


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM by which handler and agent know each other; read again for each connection.

    Attributes:
        authority: Certificates, one of which vouches for the other side.
        certificate: Of this side, with those between it and the authority. A handler's bears the
            handler's name as a DNS name.
        key: Of the certificate.
    """

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where a handler and its agent meet.

    Attributes:
        folder: Of sockets, at the same path for both.
        address: Of the network, `<host>:<port>`, where the handler is to listen; None for a socket
            in the folder.
        tls: What it shows and asks for there; None to speak in the clear.
    """

    folder: Path = AGENT_FOLDER
    address: str | None = None
    tls: TlsFiles | None = None

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
    return Place(folder, f"{host}:{NETWORK_PORT}" if host else None, tls_from(environ))


def tls_from(environ: Mapping[str, str]) -> TlsFiles | None:
    """The files that the environment names; None where it names none.

    Raises:
        ValueError: If it names some of them only.
    """
    files = [environ.get(name, "") for name in TLS_VARIABLES]
    if not any(files):
        return None
    if not all(files):
        raise ValueError(f"{', '.join(TLS_VARIABLES)}: all of them, or none")
    return TlsFiles(*map(Path, files))

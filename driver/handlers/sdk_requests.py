"""The types of the SDK: a discovery handler, its requests, and its place."""

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
    """Raised by a handler for invalid details; users read the text."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request of one Configuration.

    Attributes:
        details: The text of `discoveryDetails`.
        properties: `discoveryProperties` by name; None for one without a value. They may be
            passwords, so no repr shows them.
    """

    details: str
    properties: Mapping[str, bytes | None] = field(default_factory=dict, repr=False)


Discover = Callable[[Request], AsyncGenerator[Sequence[Device], None]]
"""Yields all devices for a request, and again whenever they change.

It yields nothing before the devices are known. After its end the last list stays in force. The
caller closes it when the request ends.
"""


@dataclass(frozen=True, slots=True)
class Handler:
    """A discovery handler.

    Attributes:
        name: The name that Configurations give.
        shared: Whether several nodes may see the same device.
        problem: Returns a sentence for users: why devices cannot be discovered now. It is called
            for each list.
    """

    name: str
    discover: Discover
    shared: bool = False
    problem: Callable[[], str | None] = lambda: None


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files for mutual TLS of handler and agent; they are read for each connection.

    Attributes:
        authority: CA certificates that verify the other side.
        certificate: The certificate of this side, with intermediate certificates. A handler's has
            the handler's name as a DNS name.
        key: The key of the certificate.
    """

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Place:
    """Where a handler and its agent connect.

    Attributes:
        folder: The folder of sockets, at the same path for both.
        address: `<host>:<port>` on the network at which the handler listens; None for a socket in
            the folder.
        tls: Files for mutual TLS on the network; None for no TLS.
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
    """The place in the environment, in variables with Akri's names."""
    folder = Path(environ.get("DISCOVERY_HANDLERS_DIRECTORY") or AGENT_FOLDER)
    ip = environ.get("POD_IP")
    host = f"[{ip}]" if ip and ":" in ip else ip
    return Place(folder, f"{host}:{NETWORK_PORT}" if host else None, tls_from(environ))


def tls_from(environ: Mapping[str, str]) -> TlsFiles | None:
    """The TLS files that the environment names; None if it names none.

    Raises:
        ValueError: If it names only some of them.
    """
    files = [environ.get(name, "") for name in TLS_VARIABLES]
    if not any(files):
        return None
    if not all(files):
        raise ValueError(f"set all of {', '.join(TLS_VARIABLES)}, or none of them")
    return TlsFiles(*map(Path, files))

"""Where metrics are served: `<host>:<port>`, as other parts of Kubernetes write it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port to listen at.

    Attributes:
        host: None for all addresses of the machine.
        port: 0 for any that is free.
    """

    host: str | None
    port: int

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


DEFAULT = Address(None, 8090)


def parse_address(text: str) -> Address | None:
    """`:8090`, `127.0.0.1:8090` or `[::1]:8090`; None for nowhere, which is the empty text.

    Raises:
        ValueError: With a sentence about what it should be.
    """
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    plain = host.removeprefix("[").removesuffix("]")
    is_bracketed = plain != host
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is no <host>:<port> such as :8090 or 127.0.0.1:8090")
    if (":" in plain) is not is_bracketed:
        raise ValueError(f"{text!r}: an IPv6 address, and no other host, stands in brackets")
    return Address(plain or None, int(port))

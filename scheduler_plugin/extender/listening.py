"""Where the extender listens, and which clients may call it: a client that may could bind pods.

Plain HTTP is for kube-scheduler in the same pod, at a loopback address. Any other address needs
mutual TLS and a certificate with an allowed name: an authority signs many certificates, so its
signature alone does not authorize a client. The read-only pages have a listener of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from driver.api import Problem

KUBE_SCHEDULER = "system:kube-scheduler"
"""The subject of the certificate that kubeadm gives to kube-scheduler."""

_ALTERNATIVES = frozenset({"DNS", "URI"})
ADDRESS_FLAG = "--listen-address"
PAGES_FLAG = "--pages-address"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files; "" for a file that was not given.

    Attributes:
        client_ca: The authority that must have signed the certificates of clients.
        client_names: Names of which a client's certificate must have one, see `client_names`.
    """

    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    client_names: frozenset[str] = frozenset({KUBE_SCHEDULER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A safe address to listen at.

    Attributes:
        host: An IP address, without brackets; "" for all addresses of both families.
        port: 0 for any free port.
        tls: All three files; None for plain HTTP.
    """

    host: str
    port: int
    tls: TlsFiles | None

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


def parse_listening(address: str, tls: TlsFiles) -> Listening | Problem:
    """Parse `host:port`; a Problem if the TLS files do not make the address safe."""
    found = _address(ADDRESS_FLAG, address, "127.0.0.1:10261")
    if isinstance(found, Problem):
        return found
    host, port = found
    given = _given(tls)
    missing = [flag for flag, path in given.items() if not path]
    if not missing:
        return Listening(host=host, port=port, tls=tls)
    if len(missing) < len(given):
        return Problem(missing[0], "must be set too: TLS needs a certificate, key and client CA.")
    if not ip_address(host).is_loopback:
        flags = ", ".join(missing)
        message = f"{address} is not a loopback address and needs mutual TLS: set {flags}."
        return Problem(ADDRESS_FLAG, message)
    return Listening(host=host, port=port, tls=None)


def parse_pages_address(address: str) -> Listening | Problem:
    """Parse `host:port` of the read-only pages: plain HTTP at any address, `:port` for all."""
    if address.startswith(":") and (port := _port(address[1:])) is not None:
        return Listening(host="", port=port, tls=None)
    found = _address(PAGES_FLAG, address, "127.0.0.1:10262")
    if isinstance(found, Problem):
        return found
    host, port = found
    return Listening(host=host, port=port, tls=None)


def _address(flag: str, address: str, example: str) -> tuple[str, int] | Problem:
    named, _, number = address.rpartition(":")
    host, port = _host(named), _port(number)
    if host is None or port is None:
        return Problem(flag, f'"{address}" is not an IP address and a port, such as {example}.')
    return host, port


def _given(tls: TlsFiles) -> dict[str, str]:
    """The paths by their flags, which are named as kube-apiserver's."""
    return {
        "--tls-cert-file": tls.certificate,
        "--tls-private-key-file": tls.key,
        "--client-ca-file": tls.client_ca,
    }


def _host(text: str) -> str | None:
    """The IP address; a host name is not resolved, since its address may change."""
    if text == "localhost":
        return "127.0.0.1"
    is_bracketed = text.startswith("[") and text.endswith("]")
    try:
        found = ip_address(text[1:-1] if is_bracketed else text)
    except ValueError:
        return None
    # Without brackets the last group of an IPv6 address would be parsed as the port.
    return str(found) if is_bracketed == (found.version == 6) else None


def _port(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 5
    return int(text) if is_number and int(text) <= 65535 else None


def client_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The subject's common names, then its alternative names that are DNS names or URIs.

    `certificate` is verified, in the form of Python's `ssl`.
    """
    return tuple(dict.fromkeys(_names(certificate)))


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for attributes in certificate.get("subject", ()):
        yield from (value for name, value in attributes if name == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in _ALTERNATIVES:
            yield value


def why_not_allowed(certificate: Mapping[str, Any], allowed: frozenset[str]) -> str:
    """Why a client is refused, as a sentence; "" if it is not."""
    names = client_names(certificate)
    if not allowed.isdisjoint(names):
        return ""
    shown = " or ".join(f'"{name}"' for name in names) if names else "no client"
    return f"Your certificate names {shown}: --client-names must have one of its names."

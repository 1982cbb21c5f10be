"""Where the extender listens, and who may reach it: whoever does could bind pods.

Plain HTTP is for kube-scheduler in the same pod, on a loopback address. Anything else takes mutual
TLS, so that nobody is heard without a certificate that names him: an authority signs for many, and
that a certificate is of it says only that its bearer is somebody. The pages, which only tell
something, listen elsewhere.
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
    """Paths of PEM files; "" for one that was not given.

    Attributes:
        client_ca: The authority whose certificates clients must show.
        client_names: Whom such a certificate must name, see `client_names`.
    """

    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    client_names: frozenset[str] = frozenset({KUBE_SCHEDULER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """A place to listen that is safe.

    Attributes:
        host: An IP address, without brackets; "" for all, of both families.
        port: 0 for any that is free.
        tls: All three files; None for plain HTTP.
    """

    host: str
    port: int
    tls: TlsFiles | None

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


def parse_listening(address: str, tls: TlsFiles) -> Listening | Problem:
    """Read `host:port` and say whether what was given with it makes it safe."""
    found = _address(ADDRESS_FLAG, address, "127.0.0.1:10261")
    if isinstance(found, Problem):
        return found
    host, port = found
    given = _given(tls)
    missing = [flag for flag, path in given.items() if not path]
    if not missing:
        return Listening(host=host, port=port, tls=tls)
    if len(missing) < len(given):
        return Problem(missing[0], "must be set too: TLS takes certificate, key and client CA.")
    if not ip_address(host).is_loopback:
        flags = ", ".join(missing)
        message = f"{address} is no loopback address: it needs mutual TLS, so set {flags}."
        return Problem(ADDRESS_FLAG, message)
    return Listening(host=host, port=port, tls=None)


def parse_pages_address(address: str) -> Listening | Problem:
    """Read `host:port` of what is only read: plain HTTP on any address, without a host on all."""
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
    """The paths by their flags, in the words of kube-apiserver's."""
    return {
        "--tls-cert-file": tls.certificate,
        "--tls-private-key-file": tls.key,
        "--client-ca-file": tls.client_ca,
    }


def _host(text: str) -> str | None:
    """A name is not looked up: what it resolves to may be another address tomorrow."""
    if text == "localhost":
        return "127.0.0.1"
    is_bracketed = text.startswith("[") and text.endswith("]")
    try:
        found = ip_address(text[1:-1] if is_bracketed else text)
    except ValueError:
        return None
    # Without its brackets, the last group of an IPv6 address would be read as the port.
    return str(found) if is_bracketed == (found.version == 6) else None


def _port(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 5
    return int(text) if is_number and int(text) <= 65535 else None


def client_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The common names of a subject, then its alternative names that are DNS names or URIs.

    `certificate` is verified, and as Python's `ssl` decodes it.
    """
    return tuple(dict.fromkeys(_names(certificate)))


def _names(certificate: Mapping[str, Any]) -> Iterator[str]:
    for attributes in certificate.get("subject", ()):
        yield from (value for name, value in attributes if name == "commonName")
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in _ALTERNATIVES:
            yield value


def why_not_heard(certificate: Mapping[str, Any], allowed: frozenset[str]) -> str:
    """Why a client is not heard, as a sentence; "" where it is."""
    names = client_names(certificate)
    if not allowed.isdisjoint(names):
        return ""
    shown = " or ".join(f'"{name}"' for name in names) if names else "nobody"
    return f"Your certificate names {shown}, and none of these is in --client-names."

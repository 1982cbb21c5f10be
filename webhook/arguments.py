"""Texts of the webhook's settings, parsed; each raises a ValueError that says what is wrong."""

from __future__ import annotations

from ipaddress import ip_address


def address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not an address such as :9443 or 10.0.0.1:9443")
    return host.removeprefix("[").removesuffix("]"), int(port)


def names(text: str) -> tuple[str, ...]:
    stripped = (name.strip() for name in text.split(","))
    found = tuple(dict.fromkeys(name for name in stripped if name))
    if not found:
        raise ValueError("at least one name must be given")
    return found


def namespaced(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name or "/" in name:
        raise ValueError(f"{text!r} is not NAMESPACE/NAME")
    return namespace, name


def hosts(text: str) -> frozenset[str]:
    """DNS names in lower case and addresses in one notation, as in a certificate."""
    found = frozenset(_host(name.strip()) for name in text.split(",")) - {""}
    if not found:
        raise ValueError("at least one name must be given")
    return found


def _host(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        if not text.isascii():
            raise ValueError(f"{text!r} is not a DNS name in ASCII") from None
        return text.lower()


def days(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 / 1440 <= number <= 3650:
        raise ValueError(f"{text!r} is not a number of days from 0.0007 (a minute) to 3650")
    return number

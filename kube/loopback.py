"""Loopback: who is there, and under which names it is asked."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether that is an address of loopback, be it IPv4 in the notation of IPv6."""
    try:
        found = ip_address(host)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


def why_not_under(named: str) -> str:
    """Why a loopback address is not asked under this name, as a sentence; "" where it is.

    `named` is what a request says in `Host`. A page of anybody may have its name stand for
    127.0.0.1, and then a browser lets its scripts read what is answered there (DNS rebinding).
    """
    host = _host(named)
    if host == "localhost" or is_loopback(host):
        return ""
    mend = "ask for localhost, 127.0.0.1 or [::1]"
    return f'"{named[:253]}" is no name of this address, which is loopback: {mend}.'


def _host(named: str) -> str:
    """Without port and brackets, in lower case; "" where it is no host."""
    try:
        parts = urlsplit(f"//{named}")
        _ = parts.port  # Raises as well.
    except ValueError:
        return ""
    is_whole = parts.netloc == named and "@" not in named
    return (parts.hostname or "") if is_whole else ""

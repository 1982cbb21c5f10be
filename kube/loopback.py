"""Loopback addresses, and the names under which they may be asked."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether this is a loopback address, also one of IPv4 in the notation of IPv6."""
    try:
        found = ip_address(host)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


def why_not_under(named: str) -> str:
    """Why a loopback address must not answer under this name, as a sentence; "" if it may.

    `named` is the `Host` header of a request. Any web page may let its name resolve to 127.0.0.1,
    and then a browser lets the page's scripts read the answers (DNS rebinding).
    """
    host = _host(named)
    if host == "localhost" or is_loopback(host):
        return ""
    mend = "ask for localhost, 127.0.0.1 or [::1]"
    return f'"{named[:253]}" is not a name of this loopback address: {mend}.'


def _host(named: str) -> str:
    """The host without port and brackets, in lower case; "" if the text is not a host."""
    try:
        parts = urlsplit(f"//{named}")
        _ = parts.port  # Raises as well.
    except ValueError:
        return ""
    is_whole = parts.netloc == named and "@" not in named
    return (parts.hostname or "") if is_whole else ""

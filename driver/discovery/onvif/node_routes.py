"""Routes of this machine: with which address of its own it would speak to another."""

from __future__ import annotations

import socket
from contextlib import closing

from driver.discovery.reach import Ip, read_ip

_DISCARD = 9


def source_towards(address: Ip, zone: int = 0) -> Ip | None:
    """This machine's own address on the way to another; None if there is no way.

    It is the address itself if that is this machine's own. Nothing is sent.

    Args:
        address: The other's.
        zone: The network interface of a link-local one; 0 for none.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    to = (str(address), _DISCARD) if address.version == 4 else (str(address), _DISCARD, 0, zone)
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as sock:
        try:
            sock.connect(to)
        except OSError:
            return None
        return read_ip(sock.getsockname()[0])

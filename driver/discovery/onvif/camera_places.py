"""Locations of cameras: whether an address may be contacted, and the addresses of a name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from itertools import product

from driver.discovery.name_servers import look_up
from driver.discovery.onvif.devices import Address, host_of
from driver.discovery.onvif.http_carrier import UnreachableError
from driver.discovery.onvif.ws_discovery_client import ProbeAnswer, Sender
from driver.discovery.reach import Ip, Reach, read_ip

_DISCARD = 9


def source_towards(address: Ip, zone: int = 0) -> Ip | None:
    """This machine's own address on the route to another; None if there is no route.

    The result is `address` itself if that is an address of this machine. Nothing is sent.

    Args:
        address: The address of the other machine.
        zone: The network interface of a link-local address; 0 for none.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    to = (str(address), _DISCARD) if address.version == 4 else (str(address), _DISCARD, 0, zone)
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as sock:
        try:
            sock.connect(to)
        except OSError:
            return None
        return read_ip(sock.getsockname()[0])


LOOK_UP_TIMEOUT = timedelta(seconds=3)
_NO_ADDRESS = "its name has no address"


def refusal(reach: Reach, host: str, sender: Sender) -> str | None:
    """Why an address may not be contacted; None if it may, and for a name."""
    address, asked = read_ip(host.partition("%")[0]), read_ip(sender.ip)
    if address is None or asked is None:
        return None
    if why := reach.refusal_of_reported(address, asked):
        return why
    return reach.refusal_of_multicast(address, asked, source_towards(address, sender.zone))


async def locate(
    reach: Reach, address: Address, answers: Iterable[ProbeAnswer]
) -> tuple[ProbeAnswer, str]:
    """Resolve a host name: the first answer that may name one of its addresses, and that address.

    Raises:
        UnreachableError: If it has no address, or none that may be contacted.
    """
    try:
        async with asyncio.timeout(LOOK_UP_TIMEOUT.total_seconds()):
            found = await look_up(host_of(address.url), 0)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise UnreachableError(_NO_ADDRESS) from error
    why = None
    for heard, ip in product(answers, found):
        why = refusal(reach, ip, heard.sender)
        if why is None:
            return heard, ip
    raise UnreachableError(f"its address {why}" if why else _NO_ADDRESS)

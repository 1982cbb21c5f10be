"""Places of cameras: whether an address that was heard of is asked, and where a name leads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextlib import closing
from datetime import timedelta
from typing import NamedTuple

from driver.discovery.name_servers import look_up
from driver.discovery.onvif.devices import Address, host_of
from driver.discovery.onvif.http_carrier import UnreachableError
from driver.discovery.onvif.ws_discovery_client import Heard, Refusal, Sender
from driver.discovery.reach import Ip, Reach, read_ip

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


LOOK_UP_TIMEOUT = timedelta(seconds=3)
_NO_ADDRESS = "its name has no address"


class Located(NamedTuple):
    """Who told of a name's address, and what that is."""

    heard: Heard
    ip: str


class CameraPlaces:
    """Judges by the settings, and by this machine's own addresses."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def refusal(self) -> Refusal:
        """What judges in one turn; routes may be others in the next."""
        known: dict[tuple[str, Sender], str | None] = {}

        def judge(host: str, sender: Sender) -> str | None:
            place = (host, sender)
            if place not in known:
                known[place] = self._refusal(host, sender)
            return known[place]

        return judge

    def _refusal(self, host: str, sender: Sender) -> str | None:
        """Why nobody is asked at an address; None if it is, or if it is a name."""
        address, asked = read_ip(host.partition("%")[0]), read_ip(sender.ip)
        if address is None or asked is None:
            return None
        refusal = self._reach.refusal_of_told(address, asked)
        if refusal is not None:
            return refusal
        source = source_towards(address, sender.zone)
        return self._reach.refusal_of_heard(address, asked, source)

    async def locate(self, address: Address, told: Iterable[Heard]) -> Located:
        """Look a name up; the first who told of it and is at one of its addresses is believed.

        Raises:
            UnreachableError: If it has no address, or none that is asked.
        """
        try:
            async with asyncio.timeout(LOOK_UP_TIMEOUT.total_seconds()):
                found = await look_up(host_of(address.url), 0)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise UnreachableError(_NO_ADDRESS) from error
        refusal = None
        for heard in told:
            for one in found:
                refusal = self._refusal(one.address, heard.sender)
                if refusal is None:
                    return Located(heard, one.address)
        raise UnreachableError(f"its address {refusal}" if refusal else _NO_ADDRESS)

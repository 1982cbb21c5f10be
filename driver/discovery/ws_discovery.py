"""WS-Discovery: asks the cameras in reach of every network interface to say where they are.

The probe goes out several times, since datagrams get lost, over IPv4 and IPv6. Anybody may answer,
so at most `MOST_ANSWERS` are read in a turn, and an answer that makes no sense is only counted.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from driver.discovery.onvif_devices import Address, addresses
from driver.discovery.onvif_messages import matches, probe
from driver.discovery.xml_trees import XmlError

PORT = 3702
GROUPS = {socket.AF_INET: "239.255.255.250", socket.AF_INET6: "ff02::c"}
MOST_ANSWERS = 4_000

_SENT_AT = (0.0, 0.15, 0.4)
"""When a probe is sent, as parts of the time that a turn waits; cameras wait up to 0.5 s."""

_LOOPBACK = "lo"


class NotSentError(Exception):
    """Raised when no probe left this machine; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of one address.

    Attributes:
        zone: The network interface over which a link-local IPv6 address was heard; 0 for none.
    """

    scopes: tuple[str, ...]
    zone: int = 0


@dataclass(slots=True)
class Answers:
    """What was heard in a turn.

    Attributes:
        unreadable: How many answers made no sense.
        unread: How many came after `MOST_ANSWERS`.
    """

    heard: dict[Address, Heard] = field(default_factory=dict)
    unreadable: int = 0
    unread: int = 0


async def ask(seconds: float) -> Answers:
    """Send probes, and listen for so long.

    Raises:
        NotSentError: If none could be sent.
    """
    answers = Answers()
    loop = asyncio.get_running_loop()
    message = probe(str(uuid.uuid4()))
    with _sockets() as sockets:
        transports = []
        try:
            for sock in sockets:
                made = await loop.create_datagram_endpoint(lambda: _Listener(answers), sock=sock)
                transports.append(made[0])
            await _send(sockets, message, seconds)
        finally:
            for transport in transports:
                transport.abort()
    return answers


class _Listener(asyncio.DatagramProtocol):
    """Reads answers."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._left = MOST_ANSWERS

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        if not self._left:
            self._answers.unread += 1
            return
        self._left -= 1
        zone = addr[3] if len(addr) > 3 else 0
        try:
            for match in matches(data):
                for address in addresses(match):
                    self._answers.heard[address] = Heard(match.scopes, int(zone))
        except XmlError:
            self._answers.unreadable += 1


@contextmanager
def _sockets() -> Iterator[list[socket.socket]]:
    """A socket of each family that there is."""
    made = []
    try:
        for family in GROUPS:
            with suppress(OSError):
                sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
                made.append(sock)
                sock.bind(("", 0))
        yield made
    finally:
        for sock in made:
            sock.close()


async def _send(sockets: list[socket.socket], message: bytes, seconds: float) -> None:
    waited, sent = 0.0, 0
    for part in _SENT_AT:
        await asyncio.sleep((part - waited) * seconds)
        waited = part
        sent += sum(_send_everywhere(sock, message) for sock in sockets)
    if not sent:
        raise NotSentError("No network interface takes multicast.")
    await asyncio.sleep((1 - waited) * seconds)


def _send_everywhere(sock: socket.socket, message: bytes) -> int:
    """Send over every interface; returns over how many it could be."""
    sent = 0
    for index, name in socket.if_nameindex():
        if name == _LOOPBACK:
            continue
        with suppress(OSError):  # it is down, has no address, or no room
            _choose(sock, index)
            sock.sendto(message, (GROUPS[socket.AddressFamily(sock.family)], PORT))
            sent += 1
    return sent


def _choose(sock: socket.socket, index: int) -> None:
    """Send multicast over this interface from now on."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    else:
        chosen = struct.pack("=4s4si", b"", b"", index)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, chosen)

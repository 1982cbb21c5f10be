"""WS-Discovery: probes every network interface for cameras, and collects their addresses.

The probe is sent several times, because datagrams get lost, over IPv4 and IPv6. Any host may
answer. So a cycle reads at most `MOST_ANSWERS`, and only counts answers that are invalid or belong
to no probe of this cycle. A sender may report only its own addresses, see `reach`.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from driver.discovery.details import shown
from driver.discovery.onvif.devices import Address, addresses, host_of
from driver.discovery.onvif.messages import Match, XmlError, matches, probe

PORT = 3702
GROUPS = {socket.AF_INET: "239.255.255.250", socket.AF_INET6: "ff02::c"}
MOST_ANSWERS = 4_000
MOST_REFUSED = 32
"""Addresses that are not contacted, and named in a reason."""

MOST_SENDERS = 4
"""Senders that are kept for one URL with a host name; a URL with an IP address has only one."""

_SENT_AT = (0.0, 0.15, 0.4)
"""When the probe is sent, as parts of a cycle's timeout; cameras delay answers up to 0.5 s."""

_LOOPBACK = "lo"


class NotSentError(Exception):
    """Raised when no probe could be sent; the text is a sentence."""


class Sender(NamedTuple):
    """The sender of an answer.

    Attributes:
        ip: Its address, without a zone.
        zone: The network interface that received the answer from a link-local IPv6 address; 0 for
            other addresses.
    """

    ip: str
    zone: int = 0


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """One answer that reports an address.

    Attributes:
        named: All hosts that the answer names for this camera.
    """

    scopes: tuple[str, ...]
    sender: Sender
    named: frozenset[str] = frozenset()


Refusal = Callable[[str, Sender], str | None]
"""(host, sender) → why it may not be contacted; a name is checked after it is resolved."""


@dataclass(slots=True)
class Answers:
    """The answers of one cycle.

    Attributes:
        heard: By address and sender, in the order of arrival.
        refused: Why some addresses may not be contacted, by URL and sender.
        unreadable: How many answers were invalid.
        unasked: How many belonged to no probe of this cycle.
        unread: How many came after `MOST_ANSWERS`.
    """

    heard: dict[Address, dict[Sender, ProbeAnswer]] = field(default_factory=dict)
    refused: dict[tuple[str, Sender], str] = field(default_factory=dict)
    unreadable: int = 0
    unasked: int = 0
    unread: int = 0

    def reasons(self) -> tuple[str, ...]:
        """Sentences: why answers or addresses were ignored."""
        reasons = [
            f"{shown(url)}, reported by {sender.ip}, is not contacted: its address {why}."
            for (url, sender), why in self.refused.items()
        ]
        if self.unreadable:
            reasons.append("Some answers to the probe are invalid.")
        if self.unasked:
            reasons.append("Some answers belong to no probe of this cycle.")
        if self.unread:
            reasons.append(f"There are more than {MOST_ANSWERS} answers to the probe.")
        return tuple(reasons)

    def take(self, match: Match, sender: Sender, refusal: Refusal) -> None:
        """Take the addresses of one answer that may be contacted."""
        found = tuple(addresses(match))
        heard = ProbeAnswer(match.scopes, sender, frozenset(host_of(one.url) for one in found))
        for address in found:
            if why := refusal(host_of(address.url), sender):
                if len(self.refused) < MOST_REFUSED:
                    self.refused[address.url, sender] = why
                continue
            senders = self.heard.setdefault(address, {})
            if sender in senders or len(senders) < MOST_SENDERS:
                senders[sender] = heard


async def ask(seconds: float, refusal: Refusal) -> Answers:
    """Send probes, and collect answers.

    Args:
        seconds: How long to wait for answers.
        refusal: Why an address may not be contacted.

    Raises:
        NotSentError: If no probe could be sent.
    """
    answers = Answers()
    loop = asyncio.get_running_loop()
    question = str(uuid.uuid4())
    with ExitStack() as opened:
        sockets = _sockets(opened)
        for sock in sockets:
            transport, _ = await loop.create_datagram_endpoint(
                lambda: _Listener(question, answers, refusal), sock=sock
            )
            opened.callback(transport.abort)
        await _send(sockets, probe(question), seconds)
    return answers


class _Listener(asyncio.DatagramProtocol):
    """Receives answers."""

    def __init__(self, question: str, answers: Answers, refusal: Refusal) -> None:
        self._question = question
        self._answers = answers
        self._refusal = refusal
        self._budget = MOST_ANSWERS

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        if not self._budget:
            self._answers.unread += 1
            return
        self._budget -= 1
        sender = Sender(str(addr[0]).partition("%")[0], int(addr[3]) if len(addr) > 3 else 0)
        try:
            for match in matches(data):
                if match.relates_to == self._question:
                    self._answers.take(match, sender, self._refusal)
                else:
                    self._answers.unasked += 1
        except XmlError:
            self._answers.unreadable += 1


def _sockets(opened: ExitStack) -> list[socket.socket]:
    """A socket of each address family that this machine supports."""
    made = []
    for family in GROUPS:
        with suppress(OSError):
            sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            made.append(opened.enter_context(sock))
            sock.bind(("", 0))
    return made


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
    """Send over every interface; return over how many that succeeded."""
    sent = 0
    for index, name in socket.if_nameindex():
        if name == _LOOPBACK:
            continue
        with suppress(OSError):  # the interface is down, has no address, or no buffer
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

"""Holders of UUIDs: of two machines that say they are one camera, the one known first is.

Anybody may answer with the UUID of a camera, and would get what is meant for it. So as long as
the holder answers, nothing is asked of others, unless the holder said that their address is one
of its own: a camera may have several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driver.discovery.reach import read_ip, unmapped


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a UUID.

    Attributes:
        sender: The address that it answers from.
        hosts: That, and those that it said are its own.
    """

    sender: str
    hosts: frozenset[str]

    def is_at(self, sender: str) -> bool:
        """Whether an answer from this address is the holder's."""
        return plain_host(sender) in self.hosts


def holder_of(sender: str, named: Iterable[str]) -> Holder:
    """Who answered from an address, and said that these hosts are its own."""
    return Holder(sender, frozenset(map(plain_host, (sender, *named))))


def rival(holders: Mapping[str, Holder], uuid: str, sender: str) -> Holder | None:
    """Another that holds the UUID; None if nobody else does, or there is no UUID."""
    holder = holders.get(uuid) if uuid else None
    return None if holder is None or holder.is_at(sender) else holder


def plain_host(host: str) -> str:
    """A host in the one form in which hosts are compared."""
    address = read_ip(host)
    return host.lower() if address is None else str(unmapped(address))

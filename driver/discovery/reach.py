"""Reach: which addresses that come from the network are contacted.

An answer from the network may name any address: of this node, of the cluster's services, of
another machine. A driver that contacted all of them would scan ports for an attacker. So it
contacts an address if the answer came from that address, or if a setting names its network.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import SplitResult, urlsplit

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_OTHERS = "is neither the sender's nor in a network of --discovery-networks"
_KUBEADM = ip_network("10.96.0.0/12")
_SERVICES = {4: 16, 6: 108}
"""How many leading bits the addresses of a cluster's services usually have in common."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Settings.

    Attributes:
        networks: Every address in these is contacted, whatever reported it.
        services: No address in these is contacted, such as the cluster's service network.
    """

    networks: tuple[Network, ...] = ()
    services: tuple[Network, ...] = ()

    def refusal_of_multicast(self, address: Ip, sender: Ip, source: Ip | None) -> str | None:
        """Why an address that a multicast answer names is not contacted; None if it is.

        Args:
            address: The address in the answer.
            sender: The sender of the answer; a link-local one is of the interface that received
                the answer.
            source: This machine's own address on the route there; None if there is no route.
        """
        if refusal := self.refusal_of_reported(address, sender):
            return refusal
        plain = unmapped(address)
        if self._is_named(plain):
            return None
        if plain.is_loopback or plain == (unmapped(source) if source else None):
            return "is this machine's own"
        if plain.is_link_local and plain.version == 4 and not (source and source.is_link_local):
            return "is link-local, and this machine is not on that link"
        if any(plain in network for network in self.services):
            return "is in a network of --service-networks"
        return None

    def refusal_of_reported(self, address: Ip, asked: Ip) -> str | None:
        """Why an address that a configured server reported is not contacted; None if it is.

        Args:
            address: The reported address.
            asked: The address of the server that reported it.
        """
        plain = unmapped(address)
        if plain.is_multicast or plain.is_unspecified or plain == IPv4Address("255.255.255.255"):
            return "is not the address of a machine"
        if plain == unmapped(asked) or self._is_named(plain):
            return None
        return _OTHERS

    def _is_named(self, address: Ip) -> bool:
        return any(address in network for network in self.networks)


SENDERS_ONLY = Reach()
"""The default: contact only the addresses that answers come from."""


def unmapped(address: Ip) -> Ip:
    """The IPv4 address that an IPv6 address maps; else the address itself, without its zone."""
    if isinstance(address, IPv4Address):
        return address
    return address.ipv4_mapped or IPv6Address(int(address))


def read_ip(text: str) -> Ip | None:
    """An address as URLs and sockets write it; None for a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def split_url(url: str, *schemes: str) -> SplitResult | None:
    """The parts of a URL that has a host and one of these schemes; None for any other text."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in schemes and parts.hostname and parts.port != 0
    except ValueError:  # the port is not a number, or half an IPv6 address
        return None
    return parts if known and url.isprintable() and " " not in url else None


def parse_networks(text: str) -> tuple[Network, ...]:
    """Parse networks such as `10.20.0.0/16`, separated by commas.

    Raises:
        ValueError: If the text is anything else; its message is a sentence.
    """
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def services_around(host: str) -> tuple[Network, ...]:
    """The network of a cluster's services, guessed from the address of the API server's service.

    Args:
        host: The value of `KUBERNETES_SERVICE_HOST`, which the kubelet sets; "" or a name give
            nothing.
    """
    address = read_ip(host)
    if address is None:
        return ()
    if address in _KUBEADM:
        return (_KUBEADM,)
    return (ip_network((int(address), _SERVICES[address.version]), strict=False),)

"""Reach: which addresses that strangers tell of are asked.

What comes from the network may name any address: of this node, of the cluster's services, of
somebody else's machine. Whoever asks there for a stranger scans ports for him. So an address is
asked if it is the one that the answer came from, or lies in a network that a setting names.
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

_OTHERS = "is neither that of whoever told of it nor in a network of --discovery-networks"
_KUBEADM = ip_network("10.96.0.0/12")
_SERVICES = {4: 16, 6: 108}
"""How many leading bits the addresses of a cluster's services have in common, as a rule."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Settings.

    Attributes:
        networks: In which all addresses are asked, whoever tells of them.
        services: In which none is, such as the cluster's service network.
    """

    networks: tuple[Network, ...] = ()
    services: tuple[Network, ...] = ()

    def refusal_of_heard(self, address: Ip, sender: Ip, source: Ip | None) -> str | None:
        """Why an address is not asked that somebody on the network told of; None if it is.

        Args:
            address: Which was told.
            sender: Who told; of a link-local one the interface is that at which it was heard.
            source: This machine's own address on the way there; None if there is no way.
        """
        if refusal := self.refusal_of_told(address, sender):
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

    def refusal_of_told(self, address: Ip, asked: Ip) -> str | None:
        """Why an address is not asked that somebody told of whom the Configuration names.

        Args:
            address: Which was told.
            asked: Who told.
        """
        plain = unmapped(address)
        if plain.is_multicast or plain.is_unspecified or plain == IPv4Address("255.255.255.255"):
            return "is no machine's"
        if plain == unmapped(asked) or self._is_named(plain):
            return None
        return _OTHERS

    def _is_named(self, address: Ip) -> bool:
        return any(address in network for network in self.networks)


SENDERS_ONLY = Reach()
"""Where nothing is set."""


def unmapped(address: Ip) -> Ip:
    """The IPv4 address that an IPv6 address stands for; else the address, without its zone."""
    if isinstance(address, IPv4Address):
        return address
    return address.ipv4_mapped or IPv6Address(int(address))


def read_ip(text: str) -> Ip | None:
    """An address as it is written in URLs and by sockets; None for a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def split_url(url: str, *schemes: str) -> SplitResult | None:
    """The parts of a URL with a host, of one of these schemes; None for anything else."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in schemes and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        return None
    return parts if known and url.isprintable() and " " not in url else None


def parse_networks(text: str) -> tuple[Network, ...]:
    """Networks, such as `10.20.0.0/16`, with commas between them.

    Raises:
        ValueError: On anything else; the text is a sentence.
    """
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def services_around(host: str) -> tuple[Network, ...]:
    """The network of a cluster's services, guessed from the address of its API server's.

    Args:
        host: What the kubelet writes into `KUBERNETES_SERVICE_HOST`; may be empty, or a name.
    """
    address = read_ip(host)
    if address is None:
        return ()
    if address in _KUBEADM:
        return (_KUBEADM,)
    return (ip_network((int(address), _SERVICES[address.version]), strict=False),)

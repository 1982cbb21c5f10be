"""Cameras as devices: their facts, whether they pass the filters, and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from driver.devices import Device
from driver.discovery.onvif.details import OnvifDetails
from driver.discovery.onvif.messages import LONGEST_WORD, Match
from driver.discovery.reach import read_ip, split_url, unmapped

SERVICE_URL = "ONVIF_DEVICE_SERVICE_URL"
UUID = "ONVIF_DEVICE_UUID"
IP_ADDRESS = "ONVIF_DEVICE_IP_ADDRESS"
MAC_ADDRESS = "ONVIF_DEVICE_MAC_ADDRESS"

_OF_SCOPES = {
    "name": "ONVIF_DEVICE_NAME",
    "hardware": "ONVIF_DEVICE_HARDWARE",
    "location": "ONVIF_DEVICE_LOCATION",
}
_LISTED_SCOPES = {"Profile": "ONVIF_DEVICE_PROFILES", "type": "ONVIF_DEVICE_TYPES"}
"""Scopes that a camera has several of; their words are joined to one property."""

_OF_INFORMATION = {
    "Manufacturer": "ONVIF_DEVICE_MANUFACTURER",
    "Model": "ONVIF_DEVICE_MODEL",
    "SerialNumber": "ONVIF_DEVICE_SERIAL_NUMBER",
    "FirmwareVersion": "ONVIF_DEVICE_FIRMWARE_VERSION",
}
_SCOPES = "onvif://www.onvif.org/"

SCHEMES = ("http", "https")


class Address(NamedTuple):
    """One address of one camera.

    Attributes:
        url: The URL of its device service, as the camera writes it.
        uuid: As Akri writes it; "" if the camera reports none.
    """

    url: str
    uuid: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a camera reports of itself when it is asked.

    Attributes:
        network: IP and MAC address; None if it does not report both.
        information: By the names of `GetDeviceInformationResponse`.
    """

    network: tuple[str, str] | None = None
    information: Mapping[str, str] = field(default_factory=dict)

    def or_else(self, before: Facts) -> Facts:
        """These facts, and for each missing one the fact from before."""
        return Facts(self.network or before.network, self.information or before.information)


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera that answers."""

    address: Address
    scopes: tuple[str, ...]
    facts: Facts = field(default_factory=Facts)


def addresses(match: Match) -> Iterator[Address]:
    """The addresses in an answer that have a valid URL."""
    return (Address(url, match.uuid) for url in match.urls if split_url(url, *SCHEMES))


def host_of(url: str) -> str:
    """The host in a URL, a name or an address; "" if the URL is invalid."""
    parts = split_url(url, *SCHEMES)
    return (parts and parts.hostname) or ""


def is_name(url: str) -> bool:
    """Whether the host in a URL is a name, which must be resolved."""
    return read_ip(host_of(url).partition("%")[0]) is None


def may_be_wanted(details: OnvifDetails, uuid: str, scopes: Iterable[str]) -> bool:
    """Whether a camera passes the filters on UUID and scopes, which its answer to a probe has."""
    return details.uuids.accepts((uuid,)) and details.scopes.accepts(frozenset(scopes))


def is_wanted(details: OnvifDetails, facts: Facts) -> bool:
    """Whether a camera passes the filters on IP and MAC address, which it reports when asked."""
    ip, mac = ((reported.lower(),) for reported in facts.network) if facts.network else (None, None)
    return details.ip_addresses.accepts(ip) and details.mac_addresses.accepts(mac)


def devices(cameras: Iterable[Camera], *, by_uuid: bool) -> tuple[Device, ...]:
    """The devices for some cameras, sorted by id.

    Args:
        cameras: Ordered by when they were first known.
        by_uuid: See `OnvifDetails`. A camera with several addresses gets the first of them, IPv4
            before IPv6.
    """
    found: dict[str, Device] = {}
    for camera in sorted(cameras, key=lambda camera: is_ipv6(camera.address)):
        identity = camera.address.uuid if by_uuid else "-".join(camera.address)
        if identity:
            found.setdefault(identity, Device(identity, _properties(camera)))
    return tuple(device for _, device in sorted(found.items()))


def is_ipv6(address: Address) -> bool:
    """Whether its host is an IPv6 address."""
    return ":" in host_of(address.url)


def _properties(camera: Camera) -> dict[str, str]:
    network = camera.facts.network
    known = {SERVICE_URL: camera.address.url, UUID: camera.address.uuid}
    if network is not None:
        known |= {IP_ADDRESS: network[0], MAC_ADDRESS: network[1]}
    information = camera.facts.information
    named = {
        ours: information[name] for name, ours in _OF_INFORMATION.items() if name in information
    }
    return {**_of_scopes(camera.scopes), **named, **known}


def _of_scopes(scopes: Iterable[str]) -> dict[str, str]:
    """Properties from scopes; of several scopes of one kind the last by text counts."""
    reported = sorted(_defined_scopes(scopes))
    listed = {
        ours: " ".join(dict.fromkeys(text for kind, text in reported if kind == theirs))
        for theirs, ours in _LISTED_SCOPES.items()
    }
    single = {_OF_SCOPES[kind]: text for kind, text in reported if kind in _OF_SCOPES}
    return {name: text[:LONGEST_WORD] for name, text in {**listed, **single}.items() if text}


def _defined_scopes(scopes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Kind and value of the scopes that ONVIF defines."""
    for scope in scopes:
        kind, _, value = scope.removeprefix(_SCOPES).partition("/")
        text = " ".join(unquote(value).split())
        if scope.startswith(_SCOPES) and text and text.isprintable():
            yield kind, text


def rivals(reported: Iterable[tuple[Address, str, Iterable[str]]]) -> dict[Address, str]:
    """The addresses whose UUID another camera has: each with the sender that was known first.

    Any host may answer with the UUID of a camera, and would then get the camera's login. So while
    the first sender answers, no other address with this UUID is contacted, unless the first sender
    named it as its own: a camera may have several addresses.

    Args:
        reported: Each address with the sender of the answer, and the hosts that the answer names;
            ordered by when they were first known.
    """
    holders: dict[str, tuple[str, frozenset[str]]] = {}
    found = {}
    for address, sender, named in reported:
        hosts = frozenset(map(plain_host, (sender, *named)))
        first, own = holders.setdefault(address.uuid, (sender, hosts))
        if address.uuid and plain_host(sender) not in own:
            found[address] = first
    return found


def plain_host(host: str) -> str:
    """A host in the form in which hosts are compared."""
    address = read_ip(host)
    return host.lower() if address is None else str(unmapped(address))

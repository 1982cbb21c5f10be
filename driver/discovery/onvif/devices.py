"""Cameras as devices: what is known of them, whether they are wanted, and what they are called."""

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
"""Of which a camera has several, all of them words: they make one list."""

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
        url: Of its device service, as the camera writes it.
        uuid: As Akri writes it; empty if the camera says none.
    """

    url: str
    uuid: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a camera says of itself when it is asked.

    Attributes:
        network: IP and MAC address; None if it does not say both.
        information: By the names of `GetDeviceInformationResponse`.
    """

    network: tuple[str, str] | None = None
    information: Mapping[str, str] = field(default_factory=dict)

    def or_else(self, before: Facts) -> Facts:
        """These, and those before where it does not say any more."""
        return Facts(self.network or before.network, self.information or before.information)


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera that answers."""

    address: Address
    scopes: tuple[str, ...]
    facts: Facts = field(default_factory=Facts)


def addresses(match: Match) -> Iterator[Address]:
    """The addresses that an answer tells of and that can be used."""
    return (Address(url, match.uuid) for url in match.urls if split_url(url, *SCHEMES))


def host_of(url: str) -> str:
    """The host in a URL, a name or an address; empty if it is none."""
    parts = split_url(url, *SCHEMES)
    return (parts and parts.hostname) or ""


def is_name(url: str) -> bool:
    """Whether the host in a URL is to be looked up."""
    return read_ip(host_of(url).partition("%")[0]) is None


def may_be_wanted(details: OnvifDetails, uuid: str, scopes: Iterable[str]) -> bool:
    """Whether a camera passes the filters on what it says without being asked."""
    return details.uuids.accepts((uuid,)) and details.scopes.accepts(frozenset(scopes))


def is_wanted(details: OnvifDetails, facts: Facts) -> bool:
    """Whether a camera passes the filters on what it says when it is asked."""
    ip, mac = ((told.lower(),) for told in facts.network) if facts.network else (None, None)
    return details.ip_addresses.accepts(ip) and details.mac_addresses.accepts(mac)


def devices(cameras: Iterable[Camera], *, by_uuid: bool) -> tuple[Device, ...]:
    """The devices that some cameras are, sorted by id.

    Args:
        cameras: Those that were known first come first.
        by_uuid: See `OnvifDetails`. A camera with several addresses is shown at the first of
            them, IPv4 before IPv6.
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
    """What scopes say; of several that say the same thing the last by text."""
    told = sorted(_told(scopes))
    listed = {
        ours: " ".join(dict.fromkeys(text for kind, text in told if kind == theirs))
        for theirs, ours in _LISTED_SCOPES.items()
    }
    single = {_OF_SCOPES[kind]: text for kind, text in told if kind in _OF_SCOPES}
    return {name: text[:LONGEST_WORD] for name, text in {**listed, **single}.items() if text}


def _told(scopes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Kind and value of the scopes that ONVIF defines."""
    for scope in scopes:
        kind, _, value = scope.removeprefix(_SCOPES).partition("/")
        text = " ".join(unquote(value).split())
        if scope.startswith(_SCOPES) and text and text.isprintable():
            yield kind, text


def rivals(told: Iterable[tuple[Address, str, Iterable[str]]]) -> dict[Address, str]:
    """Those whose UUID another has, and the address from which he answers who was known first.

    Anybody may answer with the UUID of a camera, and would get what is meant for it. So as long as
    the first answers, nothing is asked of others, unless he said that their address is one of his
    own: a camera may have several.

    Args:
        told: Each with the address that it was told from, and the hosts that were told to be the
            camera's; those that were known first come first.
    """
    holders: dict[str, tuple[str, frozenset[str]]] = {}
    found = {}
    for address, sender, named in told:
        hosts = frozenset(map(plain_host, (sender, *named)))
        first, own = holders.setdefault(address.uuid, (sender, hosts))
        if address.uuid and plain_host(sender) not in own:
            found[address] = first
    return found


def plain_host(host: str) -> str:
    """A host in the one form in which hosts are compared."""
    address = read_ip(host)
    return host.lower() if address is None else str(unmapped(address))

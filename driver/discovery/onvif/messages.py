"""Messages of WS-Discovery and ONVIF: what is asked, and what the answers say.

Source: Web Services Dynamic Discovery (April 2005), ONVIF Core Specification, WS-Security
UsernameToken Profile 1.0.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from driver.discovery.onvif.details import plain_uuid
from driver.discovery.onvif.xml_trees import named, read_xml, text_of

DEVICE = "http://www.onvif.org/ver10/device/wsdl"
LONGEST_URL = 2048
LONGEST_WORD = 256
"""Characters of a UUID, and of anything that a camera says of itself."""

MOST_ADDRESSES = 16
"""Of one camera."""

_CLOCK = tuple(("Date", name) for name in ("Year", "Month", "Day")) + tuple(
    ("Time", name) for name in ("Hour", "Minute", "Second")
)
_INFORMATION = ("Manufacturer", "Model", "FirmwareVersion", "SerialNumber", "HardwareId")
_SECURITY = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss"
_DIGEST = f"{_SECURITY}-username-token-profile-1.0#PasswordDigest"
_BASE64 = f"{_SECURITY}-soap-message-security-1.0#Base64Binary"


class Login(NamedTuple):
    """Who asks."""

    user: str
    password: str


@dataclass(frozen=True, slots=True)
class Match:
    """One answer to a probe.

    Attributes:
        uuid: Empty if it says none.
        urls: Of the camera's device service.
        relates_to: The UUID of the question that it answers; empty if it says none.
    """

    uuid: str
    urls: tuple[str, ...]
    scopes: tuple[str, ...]
    relates_to: str = ""


def probe(message_id: str) -> bytes:
    """What asks all cameras in reach to answer.

    Args:
        message_id: A new UUID; repetitions of a probe bear the same.
    """
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"'
        ' xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"'
        ' xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery"'
        ' xmlns:dn="http://www.onvif.org/ver10/network/wsdl">'
        f"<s:Header><a:MessageID>urn:uuid:{message_id}</a:MessageID>"
        "<a:To>urn:schemas-xmlsoap-org:ws:2005:04:discovery</a:To>"
        "<a:Action>http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe</a:Action></s:Header>"
        "<s:Body><d:Probe><d:Types>dn:NetworkVideoTransmitter</d:Types></d:Probe></s:Body>"
        "</s:Envelope>"
    ).encode()


def matches(datagram: bytes) -> tuple[Match, ...]:
    """All cameras that an answer tells of; () for any other message.

    Raises:
        XmlError: If it cannot be read.
    """
    return tuple(_matches(read_xml(datagram)))


def request(operation: str, security: str = "") -> bytes:
    """One of the device service's operations that take no arguments.

    Args:
        operation: Its name.
        security: What `security` gives.
    """
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope">'
        f"<s:Header>{security}</s:Header>"
        f'<s:Body><{operation} xmlns="{DEVICE}"/></s:Body></s:Envelope>'
    ).encode()


def security(login: Login, nonce: bytes, created: datetime) -> str:
    """The header by which a camera knows who asks, without the password in it.

    Args:
        login: Who asks.
        nonce: Random, and never used before.
        created: What the camera's clock shows; it does not accept another time.
    """
    stamp = created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # The profile knows no other hash; what is hashed is not kept anywhere.
    digest = hashlib.sha1(nonce + stamp.encode() + login.password.encode()).digest()
    return (
        f'<w:Security s:mustUnderstand="1" xmlns:w="{_SECURITY}-wssecurity-secext-1.0.xsd">'
        f"<w:UsernameToken><w:Username>{escape(login.user)}</w:Username>"
        f'<w:Password Type="{_DIGEST}">{_base64(digest)}</w:Password>'
        f'<w:Nonce EncodingType="{_BASE64}">{_base64(nonce)}</w:Nonce>'
        f'<u:Created xmlns:u="{_SECURITY}-wssecurity-utility-1.0.xsd">{stamp}</u:Created>'
        "</w:UsernameToken></w:Security>"
    )


def clock(answer: Element) -> datetime | None:
    """What a camera's clock shows; None if it does not say."""
    parts = [text_of(answer, "UTCDateTime", kind, name) for kind, name in _CLOCK]
    try:
        year, month, day, hour, minute, second = (int(part) for part in parts)
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def network(answer: Element) -> tuple[str, str] | None:
    """The IP and the MAC address that a camera says it has; None if one is missing.

    Of several the first, as Akri has it.
    """
    interfaces = list(named(answer, "NetworkInterfaces"))
    configs = [config for one in interfaces for v4 in one.iter("IPv4") for config in v4]
    ips = [ip for config in configs if (ip := _words(text_of(config, "Address")))]
    macs = [mac for one in interfaces if (mac := _words(text_of(one, "Info", "HwAddress")))]
    return (ips[0], macs[0]) if ips and macs else None


def information(answer: Element) -> Mapping[str, str]:
    """What a camera says it is, by the names of `GetDeviceInformationResponse`."""
    told = {name: _words(text_of(answer, name)) for name in _INFORMATION}
    return {name: value for name, value in told.items() if value}


def _matches(root: Element) -> Iterator[Match]:
    relates_to = plain_uuid(text_of(root, "Header", "RelatesTo"))
    for found in named(root, "ProbeMatch"):
        uuid = plain_uuid(text_of(found, "EndpointReference", "Address"))
        scopes = tuple(text_of(found, "Scopes").split())
        urls = (url for url in text_of(found, "XAddrs").split() if len(url) <= LONGEST_URL)
        if len(uuid) <= LONGEST_WORD and uuid.isprintable():
            yield Match(uuid, tuple(dict.fromkeys(urls))[:MOST_ADDRESSES], scopes, relates_to)


def _words(text: str) -> str:
    words = " ".join(text.split())[:LONGEST_WORD]
    return words if words.isprintable() else ""


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()

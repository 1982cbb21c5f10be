"""Messages of WS-Discovery (April 2005): the probe, and the answers.

Untrusted XML is read as a tree, within limits. A document type is refused: lxml neither loads one
nor expands its entities. The caller limits the size, lxml the depth (256 levels), `MOST_ELEMENTS`
the number of elements. Bytes that do not match their declared encoding are read as Latin-1, so
that one wrong letter does not exclude a camera.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lxml.etree import XMLParser, XMLSyntaxError, _Element, fromstring

from driver.discovery.onvif.details import plain_uuid

MOST_ELEMENTS = 5_000


class XmlError(Exception):
    """Raised for invalid or refused XML; the text is a part of a sentence."""


def read_xml(document: bytes) -> _Element:
    """The root of a document.

    Raises:
        XmlError: If it is invalid or refused.
    """
    root = _read(document)
    if root.getroottree().docinfo.internalDTD is not None:
        raise XmlError("it declares a document type")
    if sum(1 for _ in root.iter()) > MOST_ELEMENTS:
        raise XmlError("too many elements")
    return root


def text_of(root: _Element, *path: str) -> str:
    """The text of the first element on a path of names, each anywhere below the one before."""
    found = root.findtext(".//" + "//".join(f"{{*}}{name}" for name in path))
    return (found or "").strip()


def fault_codes(root: _Element) -> tuple[str, ...]:
    """The codes of a SOAP fault, 1.1 or 1.2, without prefixes; () if there is no fault."""
    fault = root.find(".//{*}Body/{*}Fault")
    if fault is None:
        return ()
    values = (*fault.iterfind("{*}Code//{*}Value"), *fault.iterfind("{*}faultcode"))
    return tuple((value.text or "").strip().rpartition(":")[2] for value in values)


def _read(document: bytes) -> _Element:
    try:
        return fromstring(document, _parser(None))
    except XMLSyntaxError as error:
        if _is_utf8(document):
            raise XmlError(error.msg) from error
    try:
        return fromstring(document, _parser("iso-8859-1"))
    except XMLSyntaxError as error:
        raise XmlError(error.msg) from error


def _parser(encoding: str | None) -> XMLParser:
    return XMLParser(encoding=encoding, resolve_entities=False, no_network=True)


def _is_utf8(document: bytes) -> bool:
    try:
        document.decode()
    except UnicodeDecodeError:
        return False
    return True


LONGEST_URL = 2048
LONGEST_WORD = 256
"""Characters of a UUID, and of each word that a camera reports."""

MOST_ADDRESSES = 16
"""Addresses of one camera."""


@dataclass(frozen=True, slots=True)
class Match:
    """One answer to a probe.

    Attributes:
        uuid: "" if the answer has none.
        urls: URLs of the camera's device service.
        relates_to: The UUID of the probe that it answers; "" if the answer has none.
    """

    uuid: str
    urls: tuple[str, ...]
    scopes: tuple[str, ...]
    relates_to: str = ""


def probe(message_id: str) -> bytes:
    """The message that asks all cameras in the network to answer.

    Args:
        message_id: A new UUID; repetitions of a probe have the same.
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
    """All cameras that an answer reports; () for any other message.

    Raises:
        XmlError: If it is invalid or refused.
    """
    return tuple(_matches(read_xml(datagram)))


def _matches(root: _Element) -> Iterator[Match]:
    relates_to = plain_uuid(text_of(root, "Header", "RelatesTo"))
    for found in root.iter("{*}ProbeMatch"):
        uuid = plain_uuid(text_of(found, "EndpointReference", "Address"))
        scopes = tuple(text_of(found, "Scopes").split())
        urls = (url for url in text_of(found, "XAddrs").split() if len(url) <= LONGEST_URL)
        if len(uuid) <= LONGEST_WORD and uuid.isprintable():
            yield Match(uuid, tuple(dict.fromkeys(urls))[:MOST_ADDRESSES], scopes, relates_to)

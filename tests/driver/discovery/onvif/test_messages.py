"""Answers to probes, in all the ways in which cameras answer, and what hostile ones say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from driver.discovery.onvif.messages import (
    MOST_ELEMENTS,
    Match,
    XmlError,
    fault_codes,
    matches,
    probe,
    read_xml,
)
from tests.driver.discovery.onvif.cameras import PROBE_MATCH

UUID = "12345678-1234-5678-abcd-123456789abc"
CAMERA = Match(UUID, ("http://10.0.0.2/svc",), ("onvif://www.onvif.org/name/A",), "q")

_ENTITIES = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha"}">' for i in range(10))
BILLION_LAUGHS = f"<!DOCTYPE a [{_ENTITIES}]><a>&l9;</a>"


def _match(**given: str) -> str:
    told = {"uuid": UUID, "urls": CAMERA.urls[0], "scopes": CAMERA.scopes[0]}
    fields = {**told, "relates_to": "urn:uuid:Q", **given}
    return PROBE_MATCH.format(**fields)


@pytest.mark.parametrize("address", [UUID, UUID.upper(), f"uuid:{UUID}", f" urn:uuid:{UUID} "])
def test_the_uuid_is_as_akri_writes_it(address: str) -> None:
    message = _match().replace(f"urn:uuid:{UUID}", address)

    assert matches(message.encode()) == (CAMERA,)


def test_all_cameras_and_addresses_of_an_answer_are_told() -> None:
    two = _match(urls="http://a/ https://b/\n http://a/")
    two = two.replace("</d:ProbeMatch>", "</d:ProbeMatch><d:ProbeMatch/>")

    assert matches(two.encode()) == (
        Match(UUID, ("http://a/", "https://b/"), CAMERA.scopes, "q"),
        Match("", (), (), "q"),
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_any_encoding_is_read(encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    text = _match(scopes="Büro").replace('<?xml version="1.0"?>', head)

    assert matches(text.encode(encoding))[0].scopes == ("Büro",)


def test_a_wrong_encoding_costs_a_letter_and_not_the_camera() -> None:
    assert matches(_match(scopes="Büro").encode("latin-1"))[0].scopes == ("Büro",)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"hello",
        b"<a>",
        b"<a></b>",
        b"\xff\xfe\x00",
        b'<?xml version="1.0" encoding="klingon"?><a/>',
        f"<!DOCTYPE a [{_ENTITIES}]><a b='&l9;'/>".encode(),
        f"<!DOCTYPE a [{_ENTITIES}<!ATTLIST a b CDATA '&l9;'>]><a/>".encode(),
        b"<a>\x00</a>",
        BILLION_LAUGHS.encode(),
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<a>" * 1000 + b"</a>" * 1000,
        b"<a>" + b"<b/>" * MOST_ELEMENTS + b"</a>",
    ],
)
def test_hostile_messages_are_refused(message: bytes) -> None:
    with pytest.raises(XmlError):
        matches(message)


_MESSAGE = _match().encode()


@settings(max_examples=300, phases=[Phase.generate])
@given(st.integers(0, len(_MESSAGE)), st.integers(0, 9), st.binary(max_size=12))
def test_any_bytes_are_read_or_refused(start: int, length: int, put: bytes) -> None:
    message = _MESSAGE[:start] + put + _MESSAGE[start + length :]

    with suppress(XmlError):
        for match in matches(message):
            assert match.uuid.isprintable()


def test_other_messages_tell_of_no_camera() -> None:
    assert matches(probe("1")) == ()


@pytest.mark.parametrize("uuid", ["x" * 300, "a\x85b"])
def test_a_uuid_that_is_none_is_left_out(uuid: str) -> None:
    assert matches(_match(uuid=uuid).encode()) == ()


SOAP_11 = (
    b'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault>'
    b"<faultcode>wsse:FailedAuthentication</faultcode><faultstring>No</faultstring>"
    b"</e:Fault></e:Body></e:Envelope>"
)
SOAP_12 = (
    b'<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><e:Fault><e:Code>'
    b"<e:Value>e:Sender</e:Value><e:Subcode><e:Value>ter:NotAuthorized</e:Value></e:Subcode>"
    b"</e:Code></e:Fault></e:Body></e:Envelope>"
)


@pytest.mark.parametrize(
    ("document", "codes"),
    [
        (SOAP_11, ("FailedAuthentication",)),
        (SOAP_12, ("Sender", "NotAuthorized")),
        (b"<faultcode>wsse:FailedAuthentication</faultcode>", ()),
        (b"<html><body>Bad Request</body></html>", ()),
    ],
)
def test_a_fault_has_codes(document: bytes, codes: tuple[str, ...]) -> None:
    assert fault_codes(read_xml(document)) == codes

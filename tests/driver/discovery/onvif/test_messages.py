"""What cameras say, in all the ways in which they say it, and what hostile ones say."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from driver.discovery.onvif.messages import (
    Login,
    Match,
    clock,
    information,
    matches,
    network,
    probe,
    request,
    security,
)
from driver.discovery.onvif.xml_trees import MOST_ELEMENTS, XmlError, read_xml, text_of
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
        b'<?xml version="1.0" encoding="utf-7"?><a/>',
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


def test_a_request_says_who_asks_but_not_the_password() -> None:
    """The digest was computed with openssl."""
    nonce, created = b"0123456789abcdef", datetime(2026, 11, 21, 10, 9, 8, tzinfo=UTC)

    body = request("GetX", security(Login("<root>", "geheim"), nonce, created))

    told = read_xml(body)
    assert text_of(told, "UsernameToken", "Username") == "<root>"
    assert text_of(told, "UsernameToken", "Created") == "2026-11-21T10:09:08Z"
    assert text_of(told, "UsernameToken", "Password") == "/xO6osO4MBYNCACl20p53+PXvWw="
    assert b"geheim" not in body


def test_the_clock_is_read() -> None:
    date = "<Date><Year>2026</Year><Month>2</Month><Day>3</Day></Date>"
    time = "<Time><Hour>4</Hour><Minute>5</Minute><Second>6</Second></Time>"
    whole = f"<a><LocalDateTime/><UTCDateTime>{time}{date}</UTCDateTime></a>"

    assert clock(read_xml(whole.encode())) == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize("year", ["", "x", "99999999999", "0"])
def test_a_clock_that_is_wrong_tells_nothing(year: str) -> None:
    date = f"<Date><Year>{year}</Year><Month>2</Month><Day>3</Day></Date>"
    time = "<Time><Hour>4</Hour><Minute>5</Minute><Second>6</Second></Time>"

    assert clock(read_xml(f"<UTCDateTime>{date}{time}</UTCDateTime>".encode())) is None
    assert clock(read_xml(f"<a><UTCDateTime>{date}{time}</UTCDateTime></a>".encode())) is None


INTERFACES = """<r><NetworkInterfaces><Info><HwAddress>{mac}</HwAddress></Info><IPv4>
<Enabled>true</Enabled><Config><FromDHCP><Address>{ip}</Address></FromDHCP></Config></IPv4>
</NetworkInterfaces><NetworkInterfaces><Info><HwAddress>00:00:00:00:00:02</HwAddress></Info>
</NetworkInterfaces></r>"""


@pytest.mark.parametrize(
    ("ip", "mac", "told"),
    [
        ("10.0.0.2", "00:0A", ("10.0.0.2", "00:0A")),
        ("", "00:0A", None),
        ("10.0.0.2", "", ("10.0.0.2", "00:00:00:00:00:02")),
    ],
)
def test_the_first_addresses_are_taken(ip: str, mac: str, told: tuple[str, str] | None) -> None:
    assert network(read_xml(INTERFACES.format(ip=ip, mac=mac).encode())) == told


def test_information_is_shortened_and_printable() -> None:
    answer = read_xml(
        b"<r><Manufacturer> A \n B </Manufacturer><Model/>"
        + b"<SerialNumber>%s</SerialNumber>" % (b"7" * 999)
        + b"<FirmwareVersion>\xc2\x85x\xe2\x80\xae</FirmwareVersion></r>"
    )

    assert information(answer) == {"Manufacturer": "A B", "SerialNumber": "7" * 256}

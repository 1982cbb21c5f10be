"""Cameras that are slow, broken or hostile, and what good ones say."""

from __future__ import annotations

import base64
import hashlib
import ssl
from datetime import UTC, datetime

import pytest

from driver.discovery.onvif.cameras import connected
from driver.discovery.onvif.credentials import Login
from driver.discovery.onvif.devices import Address
from driver.discovery.onvif.http_carrier import RefusedError, Target, UnreachableError, tls
from driver.discovery.onvif.messages import MOST_ELEMENTS, read_xml, text_of
from tests.fakes.cameras import FLOOD, GOOD, FakeCamera, http

MULTIPART = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/related; boundary=x\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"hello\r\n\r\n", "its answer is invalid (ClientResponseError)"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<a>>", "is invalid (XmlError)"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "HTTP status 401"),
        (b"HTTP/1.1 302 No\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "HTTP status 302"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "is invalid"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", "(XmlError)"),
        (http(b"<a/>"), "is invalid (XMLSyntaxError)"),
        (http(b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), "is invalid (XmlError)"),
        (http(b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'), "is invalid (XmlError)"),
        (http(b"<a>" + b"<b/>" * MOST_ELEMENTS + b"</a>"), "is invalid (XmlError)"),
        (http(b"<a>" * 300 + b"</a>" * 300), "is invalid (XmlError)"),
        (MULTIPART + b"--x\r\n\r\n<a/>\r\n--x--", "is invalid (XmlError)"),
    ],
)
async def test_a_bad_camera_is_unreachable(answer: bytes, why: str) -> None:
    async with FakeCamera(answer).serving() as address, connected(tls(None), 9) as cameras:
        with pytest.raises(UnreachableError) as caught:
            await cameras.clock(Target(address))
    assert why in str(caught.value)


@pytest.mark.usefixtures("_impatient")
async def test_a_silent_camera_is_unreachable() -> None:
    async with FakeCamera(b"").serving() as address, connected(tls(None), 9) as cameras:
        with pytest.raises(UnreachableError, match="no answer within 1 seconds"):
            await cameras.clock(Target(address))


async def test_no_more_is_read_than_an_answer_may_have() -> None:
    async with (
        FakeCamera(FLOOD, endless=bytes(65536)).serving() as address,
        connected(tls(None), 9) as cameras,
    ):
        with pytest.raises(UnreachableError, match="more than 262144 bytes"):
            await cameras.clock(Target(address))


@pytest.mark.parametrize(
    ("head", "part", "pause", "why"),
    [
        (
            b"Transfer-Encoding: chunked",
            b"3e8\r\n%s\r\n" % bytes(1000),
            0,
            "more than 262144 bytes",
        ),
        (b"Content-Length: 50000000", b"<a>" * 1000, 0, "more than 262144 bytes"),
        (b"Content-Length: 5000", b"<", 0.01, "no answer within 1 seconds"),
    ],
)
@pytest.mark.usefixtures("_impatient")
async def test_chunks_without_end_megabytes_and_drips_cost_the_camera_alone(
    head: bytes, part: bytes, pause: float, why: str
) -> None:
    camera = FakeCamera(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", endless=part, pause=pause)
    async with camera.serving() as address, connected(tls(None), 9) as cameras:
        with pytest.raises(UnreachableError, match=why):
            await cameras.clock(Target(address))


async def test_nobody_listens() -> None:
    async with FakeCamera(GOOD).serving() as address:
        pass
    async with connected(tls(None), 9) as cameras:
        with pytest.raises(UnreachableError, match="connection refused"):
            await cameras.clock(Target(address))


async def test_a_password_is_used_for_facts_and_never_sent() -> None:
    camera = FakeCamera(GOOD)
    async with camera.serving() as address, connected(tls(None), 9) as cameras:
        target = Target(address, login=Login("root", "geheim"))
        await cameras.facts(target, await cameras.clock(target))

    assert ["UsernameToken" in asked.decode() for asked in camera.asked] == [False, True, True]
    assert "geheim" not in b"".join(camera.asked).decode()


async def test_who_asks_is_told_at_the_time_of_the_cameras_clock() -> None:
    """The digest is SHA-1 of nonce, time and password (WS-Security UsernameToken Profile 1.0)."""
    camera, now = FakeCamera(GOOD), datetime(2016, 11, 21, 10, 9, 8, tzinfo=UTC)
    async with camera.serving() as address, connected(tls(None), 9) as cameras:
        await cameras.facts(Target(address, login=Login("<root>", "geheim")), now)

    told = read_xml(camera.asked[0].partition(b"\r\n\r\n")[2])
    assert text_of(told, "UsernameToken", "Username") == "<root>"
    created = text_of(told, "UsernameToken", "Created")
    assert created == "2016-11-21T10:09:08Z"
    nonce = base64.b64decode(text_of(told, "UsernameToken", "Nonce"))
    digest = base64.b64encode(hashlib.sha1(nonce + f"{created}geheim".encode()).digest())
    assert text_of(told, "UsernameToken", "Password") == digest.decode()


async def test_a_camera_that_refuses_says_nothing_of_itself() -> None:
    refusal = b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"
    async with FakeCamera(refusal).serving() as address, connected(tls(None), 9) as cameras:
        told, _ = await cameras.facts(Target(address), None)
        assert told.network is None
        with pytest.raises(RefusedError):
            await cameras.clock(Target(address))


async def test_https_is_checked_where_an_authority_is_given(
    certificate: tuple[ssl.SSLContext, str],
) -> None:
    context, authority = certificate
    async with FakeCamera(GOOD).serving(context) as address:
        for trusted in (None, authority):
            async with connected(tls(trusted), 9) as cameras:
                await cameras.clock(Target(address))
        async with connected(tls(""), 9) as cameras:
            with pytest.raises(UnreachableError, match="https fails"):
                await cameras.clock(Target(address))
    with pytest.raises(ssl.SSLError):
        tls("no certificate")


def test_a_link_local_address_is_asked_over_the_interface_that_heard_of_it() -> None:
    link_local, other = Address("http://[fe80::2]:80/x", "u"), Address("http://[fd00::2]/x", "u")

    assert Target(link_local, 7).url.host == "fe80::2%7"
    assert Target(link_local).url.host == "fe80::2"
    assert Target(other, 7).url.host == "fd00::2"

"""The onvif handler: cameras that are slow, broken or hostile, and answers that get lost."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from driver.discovery.name_servers import Found
from driver.discovery.onvif import camera_places
from driver.discovery.onvif import cameras as onvif_cameras
from driver.discovery.onvif import handler as onvif
from driver.discovery.onvif.cameras import Cameras, RefusedError, Target, UnreachableError, tls
from driver.discovery.onvif.details import OnvifDetails
from driver.discovery.onvif.devices import Address
from driver.discovery.onvif.handler import OnvifHandler
from driver.discovery.onvif.messages import Login
from driver.discovery.onvif.ws_discovery import Answers, Heard, NotSentError, Refusal, Sender
from driver.discovery.reach import SENDERS_ONLY, Reach, parse_networks
from tests.driver.discovery.certificates import self_signed

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<a/>"
FLOOD = b"HTTP/1.1 200 OK\r\n\r\n"
SOON = timedelta(milliseconds=1)
HERE = Sender("127.0.0.1")
TOLD = {HERE: Heard((), HERE)}
Hearsay = dict[Address, dict[Sender, Heard]]


class FakeCamera:
    """Listens on loopback and answers each request with the same bytes.

    After them comes `endless`, if anything, again and again, with pauses of so many seconds.

    Attributes:
        asked: The requests, heads and bodies.
    """

    def __init__(self, answer: bytes, *, endless: bytes = b"", pause: float = 0) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self._endless = endless
        self._pause = pause
        self._tasks: set[asyncio.Task[None] | None] = set()

    @asynccontextmanager
    async def serving(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Address]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        async with server:
            scheme = "https" if context else "http"
            yield Address(f"{scheme}://127.0.0.1:{port}/onvif", f"uuid-{port}")
            await asyncio.gather(*(task for task in self._tasks if task))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readuntil(b"Envelope>")
        self.asked.append(head + body)
        writer.write(self.answer)
        try:
            while self._endless:
                writer.write(self._endless)
                await writer.drain()
                await asyncio.sleep(self._pause)
            await writer.drain()
            if self.answer:
                writer.close()
                await writer.wait_closed()
            else:
                await reader.read()  # says nothing until the other side has had enough
        except ConnectionError:
            pass
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no camera that is silent."""
    monkeypatch.setattr(onvif_cameras, "REQUEST_TIMEOUT", timedelta(seconds=20))


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch, _patient: None) -> None:
    monkeypatch.setattr(onvif_cameras, "REQUEST_TIMEOUT", timedelta(seconds=1))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"hello\r\n\r\n", "its answer makes no sense (ClientResponseError)"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<a>>", "makes no sense (XmlError)"),
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "HTTP status 401"),
        (b"HTTP/1.1 302 No\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "HTTP status 302"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, "makes no sense"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", "(XmlError)"),
    ],
)
async def test_a_bad_camera_is_unreachable(answer: bytes, why: str) -> None:
    async with FakeCamera(answer).serving() as address, Cameras(None, 9) as cameras:
        with pytest.raises(UnreachableError) as caught:
            await cameras.clock(Target(address))
    assert why in str(caught.value)


@pytest.mark.usefixtures("_impatient")
async def test_a_silent_camera_is_unreachable() -> None:
    async with FakeCamera(b"").serving() as address, Cameras(None, 9) as cameras:
        with pytest.raises(UnreachableError, match="no answer within 1 seconds"):
            await cameras.clock(Target(address))


async def test_no_more_is_read_than_an_answer_may_have() -> None:
    async with (
        FakeCamera(FLOOD, endless=bytes(65536)).serving() as address,
        Cameras(None, 9) as cameras,
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
    async with camera.serving() as address, Cameras(None, 9) as cameras:
        with pytest.raises(UnreachableError, match=why):
            await cameras.clock(Target(address))


async def test_nobody_listens() -> None:
    async with FakeCamera(GOOD).serving() as address:
        pass
    async with Cameras(None, 9) as cameras:
        with pytest.raises(UnreachableError, match="connection refused"):
            await cameras.clock(Target(address))


async def test_a_password_is_used_for_facts_and_never_sent() -> None:
    camera = FakeCamera(GOOD)
    async with camera.serving() as address, Cameras(None, 9) as cameras:
        target = Target(address, login=Login("root", "geheim"))
        await cameras.facts(target, await cameras.clock(target))

    assert ["UsernameToken" in asked.decode() for asked in camera.asked] == [False, True, True]
    assert "geheim" not in b"".join(camera.asked).decode()


async def test_a_camera_that_refuses_says_nothing_of_itself() -> None:
    refusal = b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"
    async with FakeCamera(refusal).serving() as address, Cameras(None, 9) as cameras:
        assert (await cameras.facts(Target(address), None)).network is None
        with pytest.raises(RefusedError):
            await cameras.clock(Target(address))


async def test_https_is_checked_where_an_authority_is_given(
    certificate: tuple[ssl.SSLContext, str],
) -> None:
    context, authority = certificate
    async with FakeCamera(GOOD).serving(context) as address:
        for trusted in (None, authority):
            async with Cameras(trusted, 9) as cameras:
                await cameras.clock(Target(address))
        async with Cameras("", 9) as cameras:
            with pytest.raises(UnreachableError, match="https fails"):
                await cameras.clock(Target(address))
    with pytest.raises(ssl.SSLError):
        tls("no certificate")


def test_a_link_local_address_is_asked_over_the_interface_that_heard_of_it() -> None:
    link_local, other = Address("http://[fe80::2]:80/x", "u"), Address("http://[fd00::2]/x", "u")

    assert Target(link_local, 7).url.host == "fe80::2%7"
    assert Target(link_local).url.host == "fe80::2"
    assert Target(other, 7).url.host == "fd00::2"


@pytest.mark.usefixtures("_impatient")
async def test_a_bad_camera_does_not_hold_up_the_others(heard: Hearsay) -> None:
    async with (
        FakeCamera(GOOD).serving() as good,
        FakeCamera(b"").serving() as silent,
        FakeCamera(FLOOD, endless=bytes(65536)).serving() as flood,
    ):
        heard.update(dict.fromkeys((good, silent, flood), TOLD))
        heard[Address("http://no.such.host.invalid/", "u")] = TOLD
        handler = OnvifHandler(SOON)
        async with asyncio.timeout(30), aclosing(handler.discover(OnvifDetails())) as answers:
            [device] = await anext(answers)

            assert device.id == "-".join(good)
            problem = handler.problem or ""
            assert all(one.url in problem for one in (silent, flood))
            assert "no.such.host" in problem
        assert handler.problem is None


async def test_a_lost_answer_takes_no_camera_away_but_silence_does(
    heard: Hearsay,
) -> None:
    """It is asked directly in the turns in which nothing is heard of it, but not for ever."""
    camera = FakeCamera(GOOD)
    async with camera.serving() as address:
        heard[address] = TOLD
        async with (
            asyncio.timeout(30),
            aclosing(OnvifHandler(SOON).discover(OnvifDetails())) as answers,
        ):
            assert len(await anext(answers)) == 1
            before = len(camera.asked)
            heard.clear()
            assert await anext(answers) == ()
            assert len(camera.asked) - before >= onvif.TURNS_UNHEARD - 2
            heard[address] = TOLD
            assert len(await anext(answers)) == 1
            camera.answer = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
            assert await anext(answers) == ()


async def test_a_login_that_is_refused_is_not_tried_at_every_turn(
    monkeypatch: pytest.MonkeyPatch, heard: Hearsay
) -> None:
    """The camera wants a login even for its clock; meanwhile the reason stays."""
    camera = FakeCamera(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
    turns = asyncio.Queue[str | None]()
    login = {"username_default": b"root"}
    async with camera.serving() as address:
        heard[address] = TOLD
        handler = OnvifHandler(SOON)

        async def ask(_: float, __: Refusal) -> Answers:
            turns.put_nowait(handler.problem)
            return Answers(dict(heard))

        monkeypatch.setattr(onvif, "ask", ask)
        async with aclosing(
            handler.discover(OnvifDetails(default_to_anyone=True), login)
        ) as answers:
            assert await anext(answers) == ()
            waiting = asyncio.ensure_future(anext(answers))
            told = [await turns.get() for _ in range(onvif.TURNS_OF_FACTS)]
            assert len(camera.asked) == 2, "as nobody, and with the login"
            assert all(problem and "401" in problem for problem in told[1:])
            while len(camera.asked) < 4:
                await turns.get()
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


@pytest.mark.parametrize(
    ("details", "properties", "sent"),
    [
        (OnvifDetails(), {}, False),
        (OnvifDetails(default_to_anyone=True), {}, True),
        (OnvifDetails(), {"username_{uuid}": b"root"}, True),
    ],
)
async def test_default_credentials_are_not_sent_to_just_anyone(
    heard: Hearsay, details: OnvifDetails, properties: dict[str, bytes], sent: bool
) -> None:
    camera = FakeCamera(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
    async with camera.serving() as address:
        heard[address] = TOLD
        own = {
            name.format(uuid=address.uuid.replace("-", "_")): v for name, v in properties.items()
        }
        handler = OnvifHandler(SOON)
        answers = handler.discover(details, {"username_default": b"root", **own})
        async with aclosing(answers):
            assert await anext(answers) == ()
            asked = [b"UsernameToken" in one for one in camera.asked]
            assert asked[:2] == ([False, True] if sent else [False])
            assert (onvif.WITHHELD in (handler.problem or "")) is not sent


async def test_default_credentials_are_sent_to_whom_a_certificate_vouches_for(
    heard: Hearsay, certificate: tuple[ssl.SSLContext, str]
) -> None:
    context, authority = certificate
    camera = FakeCamera(GOOD)
    properties = {"username_default": b"root", "ca_certificates": authority.encode()}
    async with camera.serving(context) as address:
        heard[address] = TOLD
        async with aclosing(OnvifHandler(SOON).discover(OnvifDetails(), properties)) as answers:
            assert len(await anext(answers)) == 1
    assert [b"UsernameToken" in one for one in camera.asked[:2]] == [False, True]


async def test_a_name_is_asked_at_the_address_of_whoever_told_of_it(
    heard: Hearsay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked up once: by the next time it might lead elsewhere."""
    looked: list[str] = []

    async def look_up(host: str, *_: object) -> list[Found]:
        looked.append(host)
        return [Found(socket.AF_INET, 6, "127.0.0.1")]

    monkeypatch.setattr(camera_places, "look_up", look_up)
    camera, other = FakeCamera(GOOD), Sender("10.0.0.9")
    everywhere = Reach(parse_networks("127.0.0.0/8"))
    async with camera.serving() as address:
        named = Address(address.url.replace("127.0.0.1", "gate.example"), "u")
        for reach, found in ((everywhere, 1), (SENDERS_ONLY, 0)):
            heard[named] = {other: Heard((), other)}
            handler = OnvifHandler(SOON, reach)
            async with aclosing(handler.discover(OnvifDetails())) as answers:
                assert len(await anext(answers)) == found
                told = f'"{named.url}": its address is neither that of whoever told of it'
                assert (told in (handler.problem or "")) is not bool(found)
    assert set(looked) == {"gate.example"}
    port = address.url.split(":")[2].split("/")[0]
    assert f"Host: gate.example:{port}\r\n".encode() in camera.asked[0]


async def test_the_second_with_a_uuid_is_asked_when_the_first_is_gone(heard: Hearsay) -> None:
    first, second = FakeCamera(GOOD), FakeCamera(GOOD)
    other = Sender("10.0.0.9")
    async with first.serving() as here, second.serving() as there:
        rival = Address(there.url, here.uuid)
        heard[here] = TOLD
        heard[rival] = {other: Heard((), other)}
        handler, by_uuid = OnvifHandler(SOON), OnvifDetails(by_uuid=True)
        async with aclosing(handler.discover(by_uuid)) as answers:
            (shown,) = await anext(answers)
            assert shown.properties["ONVIF_DEVICE_SERVICE_URL"] == here.url
            assert f"of the camera at {HERE.ip}, which was known first" in (handler.problem or "")
            assert second.asked == []
            first.answer = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
            (now,) = await anext(answers)
            assert now.properties["ONVIF_DEVICE_SERVICE_URL"] == there.url
            first.answer = GOOD
            assert second.asked != []


async def test_nothing_is_said_while_no_probe_can_be_sent(
    monkeypatch: pytest.MonkeyPatch, heard: Hearsay
) -> None:
    sendable = asyncio.Event()

    async def cannot(_: float, __: Refusal) -> Answers:
        if sendable.is_set():
            return Answers(heard)
        raise NotSentError("No network.")

    monkeypatch.setattr(onvif, "ask", cannot)
    handler = OnvifHandler(SOON)
    async with asyncio.timeout(30), aclosing(handler.discover(OnvifDetails())) as answers:
        waiting = asyncio.ensure_future(anext(answers))
        while handler.problem is None:  # noqa: ASYNC110 - nothing else would tell
            await asyncio.sleep(0.001)
        assert handler.problem == "No network."
        assert not waiting.done()
        sendable.set()
        assert await waiting == ()
        assert handler.problem is None


async def test_properties_that_make_no_sense_are_told(heard: Hearsay) -> None:
    handler = OnvifHandler(SOON)
    properties = {"ca_certificates": b"none", "device_credential_list": b"none"}
    async with aclosing(handler.discover(OnvifDetails(), properties)) as answers:
        assert await anext(answers) == ()
        assert handler.problem == (
            "The property ca_certificates holds no certificates in PEM. "
            "The property device_credential_list holds no JSON list."
        )


@pytest.fixture(name="heard")
def _heard(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Hearsay:
    """What probes hear of, in place of the network."""
    caplog.set_level(logging.CRITICAL)
    heard: Hearsay = {}

    async def ask(_: float, __: Refusal) -> Answers:
        return Answers(dict(heard))

    monkeypatch.setattr(onvif, "ask", ask)
    return heard


@pytest.fixture(name="certificate", scope="module")
def _certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """A camera's own certificate."""
    folder: Path = tmp_path_factory.mktemp("camera")
    certificate, key = self_signed()
    (folder / "both.pem").write_text(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    return context, certificate

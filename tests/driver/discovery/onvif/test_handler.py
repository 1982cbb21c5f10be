"""The onvif handler: cameras that are slow, broken or hostile, and answers that get lost."""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import aclosing, suppress
from datetime import timedelta

import pytest

from driver.discovery.onvif import camera_places
from driver.discovery.onvif import handler as onvif
from driver.discovery.onvif.details import OnvifDetails
from driver.discovery.onvif.devices import Address
from driver.discovery.onvif.handler import OnvifHandler
from driver.discovery.onvif.logins import WITHHELD
from driver.discovery.onvif.ws_discovery_client import (
    Answers,
    NotSentError,
    ProbeAnswer,
    Refusal,
    Sender,
)
from driver.discovery.reach import SENDERS_ONLY, Reach, parse_networks
from tests.fakes.cameras import FLOOD, GOOD, FakeCamera, answer

SOON = timedelta(milliseconds=1)
HERE = Sender("127.0.0.1")
TOLD = {HERE: ProbeAnswer((), HERE)}
Hearsay = dict[Address, dict[Sender, ProbeAnswer]]


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
            assert len(camera.asked) - before >= onvif.CYCLES_UNHEARD - 2
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
            told = [await turns.get() for _ in range(onvif.CYCLES_OF_FACTS)]
            assert len(camera.asked) == 2, "as nobody, and with the login"
            assert all(problem and "401" in problem for problem in told[1:])
            while len(camera.asked) < 4:
                await turns.get()
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


UNAUTHORIZED = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
FAULT = answer(
    '<s:Fault><s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value xmlns:ter="http://www.onvif.org/'
    'ver10/error">ter:NotAuthorized</s:Value></s:Subcode></s:Code><s:Reason><s:Text>No</s:Text>'
    "</s:Reason></s:Fault>"
)


def as_bad_request(fault: bytes) -> bytes:
    """As SOAP over HTTP has it where the sender is at fault."""
    return fault.replace(b" 200 OK", b" 400 Bad Request", 1)


OTHER_FAULT = as_bad_request(FAULT.replace(b"ter:NotAuthorized", b"ter:ActionUnknown"))
OWN = {"username_{uuid}": b"root", "password_{uuid}": b"geheim"}
DEFAULTS = {"username_default": b"root", "password_default": b"geheim"}


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (UNAUTHORIZED, "HTTP status 401"),
        (FAULT, "the fault NotAuthorized"),
        (as_bad_request(FAULT), "HTTP status 400 with the fault NotAuthorized"),
    ],
)
@pytest.mark.parametrize(
    ("properties", "named"),
    [
        (DEFAULTS, '"username_default" and "password_default"'),
        (OWN, '"username_{uuid}" and "password_{uuid}"'),
        (
            {
                "device_credential_list": b'["all"]',
                "all": b'{"default": {"username": "root", "password": "geheim"}}',
            },
            '"all"',
        ),
        (
            {
                "device_credential_ref_list": b'["all"]',
                "all": b'{"default": {"username_ref": "u", "password_ref": "geheim"}}',
                "u": b"root",
            },
            '"u" and "all"',
        ),
    ],
)
async def test_a_camera_that_refuses_a_login_is_there_and_told_until_it_takes_it(
    heard: Hearsay, refusal: bytes, said: str, properties: dict[str, bytes], named: str
) -> None:
    """With what mends it, and without a password."""
    camera = FakeCamera(GOOD)
    camera.secretive = refusal
    async with camera.serving() as address:
        heard[address] = TOLD
        uuid = address.uuid.replace("-", "_")
        handler = OnvifHandler(SOON)
        details = OnvifDetails(default_to_anyone=True)
        given = {name.format(uuid=uuid): value for name, value in properties.items()}
        async with asyncio.timeout(30), aclosing(handler.discover(details, given)) as answers:
            (device,) = await anext(answers)
            assert device.id == "-".join(address)
            assert handler.problem == (
                f'"{address.url}": it answers {said} to the user and the password of'
                f" discoveryProperties {named.format(uuid=uuid)}. Correct them there, or in the"
                " Secret that they come from; the driver then tries again at once."
            )
            assert "geheim" not in handler.problem
            camera.secretive = None
            waiting = asyncio.ensure_future(anext(answers))
            while handler.problem is not None:  # noqa: ASYNC110 - nothing else would tell
                await asyncio.sleep(0.001)
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting


@pytest.mark.parametrize("refusal", [b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", OTHER_FAULT])
async def test_a_camera_that_does_not_understand_is_not_said_to_refuse_a_password(
    heard: Hearsay, refusal: bytes
) -> None:
    camera = FakeCamera(GOOD)
    camera.secretive = refusal
    async with camera.serving() as address:
        heard[address] = TOLD
        handler = OnvifHandler(SOON)
        details = OnvifDetails(default_to_anyone=True)
        async with asyncio.timeout(30), aclosing(handler.discover(details, DEFAULTS)) as answers:
            (device,) = await anext(answers)
            assert device.id == "-".join(address)
            assert "password" not in (handler.problem or "")


@pytest.mark.parametrize("properties", [{}, {"username_other": b"root"}])
async def test_a_camera_that_wants_a_user_where_none_is_given_is_no_problem(
    heard: Hearsay, properties: dict[str, bytes]
) -> None:
    camera = FakeCamera(GOOD)
    camera.secretive = UNAUTHORIZED
    async with camera.serving() as address:
        heard[address] = TOLD
        handler = OnvifHandler(SOON)
        async with aclosing(handler.discover(OnvifDetails(), properties)) as answers:
            assert len(await anext(answers)) == 1
            assert handler.problem is None


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
            assert (WITHHELD in (handler.problem or "")) is not sent


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

    async def look_up(host: str, *_: object) -> list[str]:
        looked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(camera_places, "look_up", look_up)
    camera, other = FakeCamera(GOOD), Sender("10.0.0.9")
    everywhere = Reach(parse_networks("127.0.0.0/8"))
    async with camera.serving() as address:
        named = Address(address.url.replace("127.0.0.1", "gate.example"), "u")
        for reach, found in ((everywhere, 1), (SENDERS_ONLY, 0)):
            heard[named] = {other: ProbeAnswer((), other)}
            handler = OnvifHandler(SOON, reach)
            async with aclosing(handler.discover(OnvifDetails())) as answers:
                assert len(await anext(answers)) == found
                told = f'"{named.url}": its address is neither the sender'
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
        heard[rival] = {other: ProbeAnswer((), other)}
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
            "The property device_credential_list is not a JSON list."
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

"""The opcua handler and servers that are gone, silent or hostile (others: `in_networks`)."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from contextlib import aclosing
from datetime import timedelta

import pytest
from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.ua.ua_binary import struct_from_binary, struct_to_binary

from driver.discovery.filters import Filter
from driver.discovery.opcua import handler as opcua
from driver.discovery.opcua.applications import Application
from driver.discovery.opcua.details import OpcuaDetails
from driver.discovery.opcua.handler import OpcuaHandler
from driver.discovery.opcua.servers import (
    LONGEST_ANSWER,
    FoundServers,
    UnreachableError,
    find_servers,
)
from driver.discovery.reach import SENDERS_ONLY, Reach, parse_networks
from tests.driver.discovery.opcua.fake_servers import (
    ACKNOWLEDGE,
    fake_server,
    fault,
    found,
    message,
    opened,
)

SOON = timedelta(milliseconds=1)
LENGTH_WITHOUT_END = b"\xff\xff\xff\x7f"
STRING_TABLE, SERVERS = 21, 28
"""Where these lists begin in an answer without any."""

REWINDING = (100_000).to_bytes(4, "little") + b"\xfc\xff\xff\xff" * 2
"""A list whose first text has less than no letters: the codecs would read it again and again."""

NAMES = [f"press-{number}" for number in range(1_000)]


def an_answer(body: bytes) -> tuple[bytes, ...]:
    return ACKNOWLEDGE, opened(), message([(b"F", body)])


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((b"",), "no answer within 0.2 seconds"),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), "it does not speak OPC UA"),
        ((b"ERRF" + bytes([16, 0, 0, 0]) + b"\0\0\x7d\x80" + b"\xff" * 4,), "it refuses (BadTcp"),
        ((b"ACKF" + LENGTH_WITHOUT_END,), "its answer is longer than 512 KiB"),
        ((b"ACKF" + bytes(4),), "its answer is invalid"),
        ((ACKNOWLEDGE[:20], b""), "no answer within 0.2 seconds"),
        ((ACKNOWLEDGE,), "its answer is invalid"),
        ((ACKNOWLEDGE, opened()[:8] + bytes(200)), "its answer is invalid"),
        ((ACKNOWLEDGE, opened(), b"MSGF\x0b\0\0\0" * 9), "its answer is invalid"),
        (an_answer(found()[:STRING_TABLE] + REWINDING), "is invalid (NotEnoughData)"),
        (an_answer(found()[:SERVERS] + REWINDING), "is invalid (NotEnoughData)"),
        (an_answer(fault(ua.StatusCodes.BadServiceUnsupported)), "it refuses (BadServiceUns"),
        (an_answer(found("one")[:-9]), "its answer is invalid"),
        (an_answer(bytes(LONGEST_ANSWER)), "its answer is longer than 512 KiB"),
        ((ACKNOWLEDGE, opened(), message([(b"A", bytes(8))])), "it aborted its answer"),
        (
            (ACKNOWLEDGE, opened(), message([(b"C", bytes(60_000))] * 9)),
            "its answer is longer than 512 KiB",
        ),
    ],
)
async def test_a_bad_server_is_unreachable(answers: tuple[bytes, ...], why: str) -> None:
    within = timedelta(seconds=0.2 if why.startswith("no answer") else 20)
    async with fake_server(*answers) as url, asyncio.timeout(30):
        with pytest.raises(UnreachableError, match=re.escape(why)):
            await find_servers(url, within)


async def test_an_answer_in_several_chunks_is_read_as_one() -> None:
    body = found(*NAMES)
    parts = [(b"C", body[start : start + 9_999]) for start in range(0, len(body), 9_999)]
    answers = (ACKNOWLEDGE, opened(), message([*parts, (b"F", b"")]))
    async with fake_server(*answers) as url, asyncio.timeout(30):
        assert [one.name for one in (await find_servers(url)).applications] == NAMES


async def test_what_a_server_adds_to_its_header_is_not_looked_into() -> None:
    kind = ua.NodeId(ua.ObjectIds.AdditionalParametersType_Encoding_DefaultBinary)
    addition = ua.ExtensionObject(kind, b"\x01\0\0\0")  # a list of one, which is not there
    async with fake_server(*an_answer(found("one", addition=addition))) as url:
        assert [one.name for one in (await find_servers(url)).applications] == ["one"]


def test_a_length_below_zero_does_not_take_the_reader_back() -> None:
    buffer = Buffer(b"\0\0\xfc\xff\xff\xff")
    with pytest.raises(Exception, match="-4 bytes"):
        struct_from_binary(ua.QualifiedName, buffer)


async def test_names_are_not_looked_up_in_the_threads_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of the loop write checkpoints: name servers that are silent must not hold them up."""
    looked = []

    def look(*_: object) -> list[object]:
        looked.append(threading.current_thread().name)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look)
    with pytest.raises(UnreachableError, match="its name has no address"):
        await find_servers("opc.tcp://press-7:4840/")
    assert [name.split("_")[0] for name in looked] == ["names"]


async def test_a_server_that_ends_the_connection_is_unreachable() -> None:
    async def end(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UnreachableError, match=r"it ended the connection|connection reset"):
            await find_servers(f"opc.tcp://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("opc.tcp://127.0.0.1:1/", "connection refused"),
        ("opc.tcp://no.such.host.invalid:1/", "its name has no address"),
        (f"opc.tcp://{'a' * 70}:1/", "its name has no address"),
    ],
)
async def test_why_nobody_answers(url: str, why: str) -> None:
    with pytest.raises(UnreachableError, match=why):
        await find_servers(url)


async def test_what_is_not_a_device_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without an address is looked for where it was told of; nobody listens on port 1."""
    gone = Application("Gone", is_server=True, discovery_urls=("opc.tcp://x.invalid:1/",))
    web = Application("Web", is_server=True, discovery_urls=("https://x/",))

    async def find(url: str) -> FoundServers:
        return FoundServers([gone, web, Application("No", is_server=True)], "127.0.0.1")

    monkeypatch.setattr(opcua, "find_servers", find)
    details = OpcuaDetails(("opc.tcp://127.0.0.1:1/",), Filter(("No",), include=False))
    handler = OpcuaHandler(SOON)
    async with asyncio.timeout(30), aclosing(handler.discover(details)) as answers:
        assert await anext(answers) == ()
        assert handler.problem == (
            '"Gone" at "opc.tcp://127.0.0.1:1/": no OPC UA server answers there. '
            '"Web" of "opc.tcp://127.0.0.1:1/": it has no URL of OPC UA over TCP.'
        )
    assert handler.problem is None


@pytest.fixture(name="told")
def _told(monkeypatch: pytest.MonkeyPatch) -> list[Application]:
    """What a server at 127.0.0.1 tells."""
    told: list[Application] = []

    async def find(_: str) -> FoundServers:
        return FoundServers(told, "127.0.0.1")

    monkeypatch.setattr(opcua, "find_servers", find)
    return told


async def one_turn(reach: Reach = SENDERS_ONLY) -> tuple[list[str], str]:
    """The devices, and what is told, of a Configuration that names port 1 of this machine."""
    handler = OpcuaHandler(SOON, reach)
    details = OpcuaDetails(("opc.tcp://127.0.0.1:1/",))
    async with asyncio.timeout(30), aclosing(handler.discover(details)) as answers:
        return [device.id for device in await anext(answers)], handler.problem or ""


async def test_an_open_port_that_a_server_tells_of_is_not_told_from_a_closed_one(
    told: list[Application],
) -> None:
    """Neither on the machine that told, nor elsewhere: there nobody is asked."""
    accepted: list[object] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer.get_extra_info("sockname")[0])
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(other, ["127.0.0.1", "127.0.0.2"], 0) as server:
        places = (sock.getsockname() for sock in server.sockets)
        urls = [f"opc.tcp://{host}:{port}/" for host, port in places]
        urls += ["opc.tcp://127.0.0.1:1/", "opc.tcp://127.0.0.2:1/"]
        for url in urls:
            told[:] = [Application("Press", is_server=True, discovery_urls=(url,))] * 2
            devices, problem = await one_turn()
            assert devices == []
            assert re.sub(r":\d+/", ":0/", problem) == (
                '"Press" at "opc.tcp://127.0.0.1:0/": no OPC UA server answers there.'
                if "127.0.0.1" in url
                else '"Press" at "opc.tcp://127.0.0.2:0/", reported by 127.0.0.1, is not contacted:'
                " its address is neither the sender's nor in a network of"
                " --discovery-networks."
            )
    assert set(accepted) == {"127.0.0.1"}


@pytest.mark.parametrize("networks", ["", "127.0.0.0/8"])
async def test_a_server_elsewhere_is_asked_in_networks_that_are_named(
    told: list[Application], networks: str
) -> None:
    server = await asyncio.start_server(_acknowledge, "127.0.0.2", 0)
    async with server:
        url = f"opc.tcp://127.0.0.2:{server.sockets[0].getsockname()[1]}/"
        told[:] = [Application("Press", is_server=True, discovery_urls=(url,))] * 2
        devices, problem = await one_turn(Reach(parse_networks(networks)))
    assert devices == ([url] if networks else [])
    assert ("is not contacted" in problem) is not bool(networks)


async def _acknowledge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(65536)
    writer.write(ACKNOWLEDGE)
    await writer.drain()
    writer.close()


async def test_a_server_that_takes_itself_to_be_elsewhere_is_where_it_was_asked(
    told: list[Application],
) -> None:
    """Many say localhost, and so does one who tells of another's port."""
    told[:] = [Application("Press", is_server=True, discovery_urls=("opc.tcp://127.0.0.2:1/",))]

    assert await one_turn() == (
        [],
        '"Press" at "opc.tcp://127.0.0.1:1/": no OPC UA server answers there.',
    )


async def test_what_a_server_says_of_itself_counts_before_what_others_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with fake_server(ACKNOWLEDGE) as url:
        forged = Application("Forged", is_server=True, discovery_urls=(url,))
        own = Application("Press", is_server=True, discovery_urls=(url,))

        async def find(asked: str) -> FoundServers:
            return FoundServers([own] if asked == url else [forged, forged], "127.0.0.1")

        monkeypatch.setattr(opcua, "find_servers", find)
        details = OpcuaDetails(("opc.tcp://127.0.0.1:1/", url))
        async with asyncio.timeout(30), aclosing(OpcuaHandler(SOON).discover(details)) as answers:
            (device,) = await anext(answers)
    assert device.properties["OPCUA_APPLICATION_NAME"] == "Press"


async def test_a_server_that_comes_is_told_while_another_keeps_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each in its own time; what was there before stays until the silent one has had its time."""
    async with fake_server(ACKNOWLEDGE) as first, fake_server(ACKNOWLEDGE) as second:
        silent, there = asyncio.Event(), {first}
        silent.set()

        async def find(asked: str) -> FoundServers:
            if asked not in (first, second):
                await silent.wait()
            if asked not in there:
                raise UnreachableError("it is not there")
            press = Application("Press", is_server=True, discovery_urls=(asked,))
            return FoundServers([press], "127.0.0.1")

        monkeypatch.setattr(opcua, "find_servers", find)
        details = OpcuaDetails((first, second, "opc.tcp://127.0.0.1:1/"))
        async with asyncio.timeout(30), aclosing(OpcuaHandler(SOON).discover(details)) as answers:
            assert [device.id for device in await anext(answers)] == [first]
            silent.clear()
            there.add(second)
            assert {device.id for device in await anext(answers)} == {first, second}
            assert not silent.is_set()

            there.remove(first)
            silent.set()
            assert [device.id for device in await anext(answers)] == [second]


async def test_a_first_answer_waits_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not in it is not there."""
    async with fake_server(ACKNOWLEDGE) as one, fake_server(ACKNOWLEDGE) as slow:
        asked_for_one = asyncio.Event()

        async def find(asked: str) -> FoundServers:
            if asked == slow:
                await asked_for_one.wait()
                for _ in range(100):
                    await asyncio.sleep(0)
            asked_for_one.set()
            press = Application("Press", is_server=True, discovery_urls=(asked,))
            return FoundServers([press], "127.0.0.1")

        monkeypatch.setattr(opcua, "find_servers", find)
        details = OpcuaDetails((one, slow))
        async with asyncio.timeout(30), aclosing(OpcuaHandler(SOON).discover(details)) as answers:
            assert {device.id for device in await anext(answers)} == {one, slow}


async def test_a_client_that_is_a_server_too_is_left_out_and_told(told: list[Application]) -> None:
    """Asyncua's servers are that, unless they are told otherwise."""
    told[:] = [Application("Free", is_server=False, is_both=True)]

    assert await one_turn() == (
        [],
        '"Free" of "opc.tcp://127.0.0.1:1/": it is a client and a server (ClientAndServer);'
        " only servers are devices, as in Akri.",
    )


async def test_a_client_is_left_out_and_not_told(told: list[Application]) -> None:
    told[:] = [Application("Press", is_server=False)]

    assert await one_turn() == ([], "")


async def test_asyncuas_own_server_is_both() -> None:
    kind = ua.ApplicationType.ClientAndServer
    description = ua.ApplicationDescription(ApplicationType=kind)
    response = ua.FindServersResponse(Servers=[description])
    async with fake_server(*an_answer(bytes(struct_to_binary(response)))) as url:
        (application,) = (await find_servers(url)).applications
    assert (application.is_server, application.is_both) == (False, True)

"""The opcua handler and servers that are gone, silent or hostile (others: `in_networks`)."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import threading
from contextlib import aclosing
from datetime import timedelta

import pytest

from driver.discovery import opcua
from driver.discovery.filters import Filter
from driver.discovery.opcua import OpcuaHandler
from driver.discovery.opcua_applications import Application
from driver.discovery.opcua_codecs import Buffer, struct_from_binary, ua
from driver.discovery.opcua_details import OpcuaDetails
from driver.discovery.opcua_servers import LONGEST_ANSWER, UnreachableError, find_servers
from tests.driver.discovery.fake_opcua import (
    ACKNOWLEDGE,
    fake_server,
    fault,
    found,
    message,
    opened,
)

SOON = timedelta(milliseconds=1)
LENGTH_WITHOUT_END = b"\xff\xff\xff\x7f"
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
        ((b"ACKF" + bytes(4), b""), "no answer within 0.2 seconds"),
        ((ACKNOWLEDGE,), "it does not speak OPC UA"),
        ((ACKNOWLEDGE, opened()[:8] + bytes(200)), "it answers something else"),
        (an_answer(fault(ua.StatusCodes.BadServiceUnsupported)), "it refuses (BadServiceUns"),
        (an_answer(found("one")[:-9]), "its answer makes no sense"),
        (an_answer(bytes(LONGEST_ANSWER)), "its answer is longer than 512 KiB"),
        ((ACKNOWLEDGE, opened(), message([(b"A", bytes(8))])), "it broke its answer off"),
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
        assert [one.name for one in await find_servers(url)] == NAMES


async def test_what_a_server_adds_to_its_header_is_not_looked_into() -> None:
    kind = ua.NodeId(ua.ObjectIds.AdditionalParametersType_Encoding_DefaultBinary)
    addition = ua.ExtensionObject(kind, b"\xff" * 9)
    async with fake_server(*an_answer(found("one", addition=addition))) as url:
        assert [one.name for one in await find_servers(url)] == ["one"]


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


def test_the_codecs_come_without_a_client_and_encryption() -> None:
    program = (
        "import sys, driver.discovery.opcua\n"
        "print(*(name for name in ('asyncua.client', 'asyncua.server', 'cryptography')"
        " if name in sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout

    assert said.split() == []


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

    async def find(url: str) -> list[Application]:
        return [gone, web, Application("No", is_server=True)]

    monkeypatch.setattr(opcua, "find_servers", find)
    details = OpcuaDetails(("opc.tcp://127.0.0.1:1/",), Filter(("No",), include=False))
    handler = OpcuaHandler(SOON)
    async with asyncio.timeout(30), aclosing(handler.discover(details)) as answers:
        assert await anext(answers) == ()
        assert handler.problem == (
            '"Gone" at "opc.tcp://127.0.0.1:1/": nobody listens there. '
            '"Web" of "opc.tcp://127.0.0.1:1/": it has no URL of OPC UA over TCP.'
        )
    assert handler.problem is None

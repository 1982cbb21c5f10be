"""Cameras on loopback that answer whatever a test wants, and what good ones answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from driver.discovery.onvif.devices import Address

ENVELOPE = """<?xml version="1.0" encoding="UTF-8"?>
<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"
 xmlns:d="http://www.onvif.org/ver10/device/wsdl" xmlns:t="http://www.onvif.org/ver10/schema">
<s:Body>{}</s:Body></s:Envelope>"""
FLOOD = b"HTTP/1.1 200 OK\r\n\r\n"


def answer(body: str) -> bytes:
    """An answer of SOAP, and what HTTP puts before it."""
    return http(ENVELOPE.format(body).encode())


def http(content: bytes) -> bytes:
    """An answer of HTTP."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)


GOOD = answer("<d:GetSystemDateAndTimeResponse/>")


class FakeCamera:
    """Listens on loopback and answers each request with the same bytes.

    After them comes `endless`, if anything, again and again, with pauses of so many seconds.

    Attributes:
        asked: The requests, heads and bodies.
        secretive: What it answers to all but the question for its clock; None for the same.
    """

    def __init__(self, answer: bytes, *, endless: bytes = b"", pause: float = 0) -> None:
        self.answer = answer
        self.asked: list[bytes] = []
        self.secretive: bytes | None = None
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
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readuntil(b"Envelope>")
        except asyncio.IncompleteReadError:  # the other side has gone
            writer.close()
            return
        self.asked.append(head + body)
        tells_all = self.secretive is None or b"GetSystemDateAndTime" in body
        writer.write(self.answer if tells_all else self.secretive or b"")
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

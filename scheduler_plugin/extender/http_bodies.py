"""Request bodies, read within limits of size and time, and answers that are sent whole."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from starlette.types import Receive, Send


async def read_body(receive: Receive, most: int, discarded: int, seconds: float) -> bytes | str:
    """Read a body; returns a sentence if the body was not read to its end.

    Args:
        receive: The ASGI callable that brings the parts.
        most: The largest body that is returned, in bytes.
        discarded: The largest body that is read and dropped, in bytes, see `http_app.Limits`.
        seconds: How long the body may take to arrive.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more and size <= discarded:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return f"body: the client disconnected after {size} bytes."
                part: bytes = message.get("body", b"")
                size += len(part)
                more = message.get("more_body", False)
                if size <= most:
                    parts.append(part)
    except TimeoutError:
        return f"body: only {size} bytes arrived within {seconds:g} s."
    if size > most:
        return f"body: it is larger than {most} bytes."
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Response(NamedTuple):
    """An answer; `closes` ends the connection, since the rest of the request is not read."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    closes: bool = False


def plain(status: int, text: str) -> Response:
    """An answer of plain text."""
    # A request that is refused by its headers may have a body that was not read.
    body = text.encode(errors="backslashreplace")
    return Response(status, body, b"text/plain; charset=utf-8", closes=status in (403, 404, 405))


async def respond(response: Response, send: Send) -> None:
    """Send an answer in one part."""
    status, body, content_type, closes = response
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
    ]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

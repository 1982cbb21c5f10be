"""Bodies of HTTP requests, read within limits of size and time, and answers in one piece."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from starlette.types import Receive, Send


async def read_body(receive: Receive, most: int, discarded: int, seconds: float) -> bytes | str:
    """Read a body; a sentence where it was not read to its end.

    Args:
        receive: Brings it, part by part.
        most: Bytes of a body that is kept.
        discarded: Bytes of a longer one that are read and dropped, see `http_app.Limits`.
        seconds: For it to arrive.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more and size <= discarded:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return f"body: the client left after {size} bytes."
                part: bytes = message.get("body", b"")
                size += len(part)
                more = message.get("more_body", False)
                if size <= most:
                    parts.append(part)
    except TimeoutError:
        return f"body: stopped after {size} bytes for {seconds:g} s."
    if size > most:
        return f"body: larger than {most} bytes."
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Response(NamedTuple):
    """An answer; `closes` where more of the request may come that nobody reads."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    closes: bool = False


def plain(status: int, text: str) -> Response:
    """A sentence."""
    # A body that was not read may follow the headers of a request that is refused by them.
    body = text.encode(errors="backslashreplace")
    return Response(status, body, b"text/plain; charset=utf-8", closes=status in (403, 404, 405))


async def respond(response: Response, send: Send) -> None:
    """Send an answer."""
    status, body, content_type, closes = response
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
    ]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""Bodies of HTTP requests, read within limits of size and time."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from kube.http_server import Receive


class Cut(NamedTuple):
    """A body that was not read to its end."""

    why: str


async def read_body(receive: Receive, most: int, discarded: int, seconds: float) -> bytes | Cut:
    """Read a body.

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
                    return Cut(f"body: the client left after {size} bytes.")
                part: bytes = message.get("body", b"")
                size += len(part)
                more = message.get("more_body", False)
                if size <= most:
                    parts.append(part)
    except TimeoutError:
        return Cut(f"body: stopped after {size} bytes for {seconds:g} s.")
    if size > most:
        return Cut(f"body: larger than {most} bytes.")
    return parts[0] if len(parts) == 1 else b"".join(parts)

"""Calls of an ASGI application, as a server makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

GONE = {"type": "http.disconnect"}


def parts(bodies: Iterable[bytes]) -> list[Message]:
    """A body that comes in pieces."""
    found: list[Message] = [
        {"type": "http.request", "body": body, "more_body": True} for body in bodies
    ]
    return [*found[:-1], {**found[-1], "more_body": False}]


async def healthy(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An application that answers whatever it is asked, with nothing."""
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body"})


async def call(
    app: ASGIApp,
    method: str,
    path: str,
    messages: Iterable[Message],
    headers: Mapping[str, str] | None = None,
    client: str = "127.0.0.1",
    server: str = "",
) -> list[Message]:
    """All that is sent. When the messages are used up the client says nothing any more."""
    waiting, sent = list(messages), []

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path.partition("?")[0],
        "query_string": (path.partition("?")[2] or "timeout=5s").encode(),
        "root_path": "",
        "client": (client, 40000),
        "server": (server, 443) if server else None,
        "headers": [
            (b"content-type", b"application/json"),
            *((name.encode(), value.encode()) for name, value in (headers or {}).items()),
        ],
    }
    # An error of ours that was answered goes on to the server, which logs it.
    with suppress(RuntimeError):
        await app(scope, receive, send)
    return sent


async def status_and_text(
    app: ASGIApp,
    method: str,
    path: str,
    bodies: Iterable[bytes] = (b"",),
    client: str = "127.0.0.1",
) -> tuple[int, str]:
    start, *rest = await call(app, method, path, parts(bodies), client=client)
    body = b"".join(message["body"] for message in rest)
    assert dict(start["headers"])[b"content-length"] == str(len(body)).encode()
    return start["status"], body.decode()


async def status_and_body(
    app: ASGIApp, method: str, path: str, bodies: Iterable[bytes] = (b"",)
) -> tuple[int, Any]:
    status, body = await status_and_text(app, method, path, bodies)
    return status, json.loads(body)

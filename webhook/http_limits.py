"""What one client may take of the webhook, whoever it says that it is.

Whoever reaches the port may say that he is the API server, and no certificate shows it unless an
administrator sets one up. So nobody is believed, and everybody has an even part: of connections
(`kube.http_server`), of what is in memory of bodies, and of look-ups (`lookups`).
"""

from __future__ import annotations

import asyncio

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kube.api import EvenParts
from webhook.lookups import CLIENT

BODY_SECONDS = 5.0
"""How long all of a body may take to arrive."""

MOST_BODY_BYTES = 24 * 2**20
"""Of all bodies that are read or judged: as objects they take some eight times as much memory."""


class ClientLimits:
    """The limits that the framework lacks: on the time until all of a body is there, and on bodies.

    Whom a request is from is told to `lookups`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._bodies: EvenParts[str] = EvenParts(MOST_BODY_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope["client"][0] if scope.get("client") else ""
        until, taken = asyncio.get_running_loop().time() + BODY_SECONDS, 0

        async def in_time() -> Message:
            nonlocal taken
            message = await _in_time(receive, until)
            size = len(message.get("body", b""))
            if size and not self._bodies.take(client, size):
                raise _refused(429, "Too much is sent at one time from this address; try again.")
            taken += size
            return message

        CLIENT.set(client)
        try:
            await self._app(scope, in_time, send)
        finally:
            if taken:
                self._bodies.give_back(client, taken)


async def _in_time(receive: Receive, until: float) -> Message:
    try:
        async with asyncio.timeout_at(until):
            return await receive()
    except TimeoutError:
        raise _refused(408, f"The body took longer than {BODY_SECONDS:.0f} s.") from None


def _refused(code: int, sentence: str) -> HTTPException:
    """What is not read of the body may follow: so the connection ends."""
    return HTTPException(code, sentence, {"connection": "close"})

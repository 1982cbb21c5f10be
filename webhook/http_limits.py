"""Limits of one client, by its address.

Any client that reaches the port can claim to be the API server: without client certificates, which
an administrator must set up, the webhook cannot tell. So each address has a fair share: of
connections (`kube.http_server`), of memory for bodies, and of look-ups (`lookups`).
"""

from __future__ import annotations

import asyncio

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kube.fair_limit import FairLimit
from webhook.lookups import CLIENT

BODY_SECONDS = 5.0
"""Time-out for a whole body."""

MOST_BODY_BYTES = 24 * 2**20
"""Bodies of all requests in flight; parsed, they take about eight times as much memory."""


class ClientLimits:
    """Limits that the framework lacks: a time-out for bodies, and their size by client.

    It sets the client's address for `lookups`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._bodies: FairLimit[str] = FairLimit(MOST_BODY_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope["client"][0] if scope.get("client") else ""
        until, taken = asyncio.get_running_loop().time() + BODY_SECONDS, 0

        async def in_time() -> Message:
            nonlocal taken
            message = await _in_time(receive, until)
            size = len(message.get("body", b""))
            if size and not self._bodies.take(client, size):
                raise _refused(429, "This address sends too many bodies at once; try again.")
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
        raise _refused(408, f"The body did not arrive within {BODY_SECONDS:.0f} s.") from None


def _refused(code: int, sentence: str) -> HTTPException:
    """An error that closes the connection, since the rest of the body may follow on it."""
    return HTTPException(code, sentence, {"connection": "close"})

"""`/metrics` for all clients: made once, kept for some seconds, and sent as fast as each reads.

    many clients ──► one page, made in steps ──► pieces of it, to few clients concurrently

The page needs no token, and 10,000 rows are 0.7 s of work and 8 MB. So the work does not grow with
the number of clients. A slow client holds a piece, not a copy, and is disconnected after
`SEND_SECONDS`, so that few pages are in memory concurrently.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kube.client_semaphore import ClientSemaphore

logger = logging.getLogger(__name__)

KEPT_SECONDS = 5.0
"""How old a page may be; Prometheus scrapes every 15 s or more."""

SEND_SECONDS = 10.0
"""How long a client may take to read; as long as Prometheus waits for a page by default."""

AT_ONCE = 4
AT_ONCE_FOR_ONE = 2
"""How many pages are sent concurrently, to all clients and to each."""

PIECE_BYTES = 1 << 16


class FiguresPage:
    """The current page."""

    def __init__(
        self,
        make: Callable[[], Awaitable[bytes]],
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._make, self._monotonic = make, monotonic
        self._places: ClientSemaphore[str] = ClientSemaphore(AT_ONCE, AT_ONCE_FOR_ONE)
        self._making: asyncio.Task[bytes] | None = None
        self._made_at = 0.0

    def answer(self, request: Request) -> Response:
        """The answer to a request."""
        client = request.client.host if request.client else ""
        return _InPieces(self._now, self._places.of(client))

    async def _now(self) -> bytes:
        """The page, made again if it is too old; concurrent requests share it."""
        making = self._making
        if making is None or (making.done() and self._is_old(making)):
            making = self._making = asyncio.ensure_future(self._made())
        # A client that disconnects must not cancel the page for the others.
        return await asyncio.shield(making)

    async def _made(self) -> bytes:
        page = await self._make()
        self._made_at = self._monotonic()
        return page

    def _is_old(self, making: asyncio.Task[bytes]) -> bool:
        failed = making.cancelled() or making.exception() is not None
        return failed or self._monotonic() - self._made_at >= KEPT_SECONDS


class _InPieces(Response):
    """A shared page, sent piece by piece: the server buffers no more than the client reads."""

    def __init__(
        self, page: Callable[[], Awaitable[bytes]], place: AbstractAsyncContextManager[None]
    ) -> None:
        super().__init__(headers={"Content-Type": CONTENT_TYPE_LATEST})
        self._page, self._place = page, place

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        # A request that waits for its place holds no page yet.
        async with self._place:
            page = await self._page()
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._send(page, send)
            except TimeoutError:  # The server closes a connection whose answer is incomplete.
                logger.warning("client did not read the metrics within %g s", SEND_SECONDS)

    async def _send(self, page: bytes, send: Send) -> None:
        self.headers["content-length"] = str(len(page))
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for first in range(0, len(page), PIECE_BYTES):
            piece = page[first : first + PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b""})

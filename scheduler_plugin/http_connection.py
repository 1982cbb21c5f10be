"""One client's connection: requests are read and answered one after the other, HTTP/1.1.

    bytes ──httptools──► request ──application──► response ──► bytes

It does what a sidecar's few clients need and no more: a request costs a third of what it costs on
a server for whole web applications, and of kube-scheduler's calls there are two a pod. Nothing
that a client does or leaves out keeps a connection for longer than its limits.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus
from typing import cast
from urllib.parse import unquote

import httptools

from scheduler_plugin.http_limits import Limits
from scheduler_plugin.http_responses import Application, Cut, Request, Response, plain

logger = logging.getLogger(__name__)

HEAD_SECONDS = 10.0
"""How long a request may have begun before its headers are there."""

KEEP_ALIVE_SECONDS = 120.0
"""More than the 90 s after which Go closes an idle connection: were we first, a call could cross
the closing, and Go does not send a POST again."""

WRITE_SECONDS = 10.0
"""How long a client may take to read an answer."""

HEAD_BYTES = 1 << 16
"""Of a request's line and headers."""

_FAULT = Response(500, b"internal error", b"text/plain; charset=utf-8", closes=True)
_NOT_HTTP = plain(400, "Invalid HTTP request received.")
_LONG_HEAD = plain(431, f"headers: larger than {HEAD_BYTES} bytes.")
_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


@dataclass(eq=False, slots=True)
class Connections:
    """All that is open and under way on one listener."""

    open: set[Connection] = field(default_factory=set)
    answering: set[asyncio.Task[None]] = field(default_factory=set)
    is_stopping: bool = False

    async def stop(self, seconds: float) -> None:
        """End idle connections now, others when they are answered, all of them after a while."""
        self.is_stopping = True
        for connection in tuple(self.open):
            connection.end_when_answered()
        if self.answering:
            await asyncio.wait(self.answering, timeout=seconds)
        for task in tuple(self.answering):
            task.cancel()
        for connection in tuple(self.open):
            connection.abort()


class _Phase(Enum):
    """What is read now."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


class Connection(asyncio.Protocol):
    """The protocol of one connection."""

    def __init__(
        self,
        app_for: Callable[[asyncio.Transport], Application],
        limits: Limits,
        connections: Connections,
    ) -> None:
        """`app_for` says who answers the client of a connection that was made."""
        self._app_for = app_for
        self._limits = limits
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._phase = _Phase.NOTHING
        self._count = 0
        self._timed = (_Phase.NOTHING, 0)
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = self._loop.time()
        # With each whether the connection is kept after it; a response is one to no request.
        self._requests: deque[tuple[Request | Response, bool]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        # Nothing more is read: what there is is answered, and then it ends.
        self._is_last = False
        self._begin()

    def _begin(self) -> None:
        self._url = b""
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._size = 0

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have its methods without being of its class.
        self._transport = cast("asyncio.Transport", transport)
        self._app = self._app_for(self._transport)
        self._connections.open.add(self)
        self._set_timer(KEEP_ALIVE_SECONDS, self._end_idle)
        if self._connections.is_stopping:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._is_last:
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(_NOT_HTTP)
        if self._phase is _Phase.HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(_LONG_HEAD)
        self._time()
        if len(self._requests) > 1 and not self._transport.is_closing():
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Close: no client of ours half-closes."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.open.discard(self)
        self._unset_timer()
        self._may_write.set()
        if self._phase is _Phase.BODY and not self._is_last:
            self._take(Cut(f"body: the client left after {self._size} bytes."))
        self._is_last = True

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    # What the parser calls.

    def on_message_begin(self) -> None:
        self._begin()
        self._count += 1
        self._phase = _Phase.HEAD

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 6 and name.lower() == b"expect" and value.lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_headers_complete(self) -> None:
        self._phase = _Phase.BODY

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size <= self._limits.body:
            self._parts.append(body)
        elif self._size > self._limits.discarded:
            self._take(Cut(self._too_large()))
        else:
            self._parts.clear()

    def on_message_complete(self) -> None:
        if not self._is_last:
            is_whole = self._size <= self._limits.body
            self._take(b"".join(self._parts) if is_whole else Cut(self._too_large()))
        self._parts.clear()
        self._phase = _Phase.NOTHING

    # What is done.

    def _too_large(self) -> str:
        return f"body: larger than {self._limits.body} bytes."

    def _take(self, body: bytes | Cut) -> None:
        """A request is there, or will never be; after one that was cut nothing is read."""
        try:
            path = unquote(httptools.parse_url(self._url).path.decode("latin-1"))
        except httptools.HttpParserError:
            self._refuse(_NOT_HTTP)
            return
        method = self._parser.get_method().decode()
        keeps = not isinstance(body, Cut) and self._parser.should_keep_alive()
        self._put(Request(method, path, body), keeps=keeps)

    def _refuse(self, response: Response) -> None:
        """Answer what is no request, after those before it."""
        if not self._is_last:
            self._put(response, keeps=False)

    def _put(self, what: Request | Response, *, keeps: bool) -> None:
        self._is_last = not keeps
        self._requests.append((what, keeps))
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all())
            self._connections.answering.add(self._task)
            self._task.add_done_callback(self._connections.answering.discard)

    async def _answer_all(self) -> None:
        ends = False
        while self._requests and not ends:
            what, keeps = self._requests.popleft()
            response = await self._answered(what)
            ends = response.closes or not keeps or self._connections.is_stopping
            if not self._transport.is_closing():
                self._transport.write(_encoded(what, response, ends=ends))
                await self._until_written()
        self._task = None
        self._idle_since = self._loop.time()
        if ends or self._is_last:
            self._end()
        elif not self._transport.is_closing():
            self._transport.resume_reading()

    async def _answered(self, what: Request | Response) -> Response:
        if isinstance(what, Response):
            return what
        try:
            return await self._app(what)
        except Exception:  # one fault must not end the connection without a word
            logger.exception("failed path=%s", what.path)
            return _FAULT

    async def _until_written(self) -> None:
        """Wait for a client that reads slowly; one that does not read at all is left."""
        if self._may_write.is_set():
            return
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._may_write.wait()
        except TimeoutError:
            self.abort()

    def _end(self) -> None:
        """Close it when what was written is sent, or after a while."""
        self._is_last = True
        self._requests.clear()
        self._transport.close()
        self._set_timer(WRITE_SECONDS, self.abort)

    def end_when_answered(self) -> None:
        """Nothing more is answered but what is under way."""
        if self._task is None:
            self._end()

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    # How long it may take.

    def _time(self) -> None:
        """Limit what is read now: once for each head, and for each body."""
        now = (self._phase, 0 if self._phase is _Phase.NOTHING else self._count)
        if now == self._timed:
            return
        self._timed = now
        match self._phase:
            case _Phase.NOTHING:
                self._set_timer(KEEP_ALIVE_SECONDS, self._end_idle)
            case _Phase.HEAD:
                self._set_timer(HEAD_SECONDS, self._end_slow)
            case _Phase.BODY:
                self._set_timer(self._limits.receive_seconds, self._cut_body)

    def _set_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._unset_timer()
        if self not in self._connections.open:
            return
        self._timer = self._loop.call_later(seconds, then)

    def _unset_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_idle(self) -> None:
        """One timer for many requests: it looks when the connection became idle."""
        now = self._loop.time()
        rest = KEEP_ALIVE_SECONDS - (0.0 if self._task else now - self._idle_since)
        if rest <= 0:
            self._end()
        else:
            self._set_timer(rest, self._end_idle)

    def _end_slow(self) -> None:
        """What came before it is answered."""
        self._is_last = True
        self.end_when_answered()

    def _cut_body(self) -> None:
        seconds = self._limits.receive_seconds
        self._take(Cut(f"body: stopped after {self._size} bytes for {seconds:g} s."))


def _encoded(what: Request | Response, response: Response, *, ends: bool) -> bytes:
    status, body, content_type, _ = response
    head = b"HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n%s\r\n" % (
        status,
        _REASONS[status],
        content_type,
        len(body),
        b"connection: close\r\n" if ends else b"",
    )
    return head if isinstance(what, Request) and what.method == "HEAD" else head + body

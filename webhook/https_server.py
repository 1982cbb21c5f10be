"""Serves reviews over TLS: an ASGI application on uvicorn, without a framework in between.

POST /validate    an AdmissionReview: may the object be written?
POST /mutate      an AdmissionReview: what does the object lack?
GET  /healthz     the process answers
GET  /readyz      its stores are filled, and its certificate can be verified
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol, TypeAlias

import uvicorn

from webhook import reviews
from webhook.apiserver import Answer

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

MOST_BYTES = 4 * 2**20
"""The API server takes objects of at most 3 MiB."""

BODY_SECONDS = 5.0
IDLE_SECONDS = 120
"""Longer than the API server keeps an idle connection, so that it is the one who closes it."""

DRAIN_SECONDS = 5


class _TooLongError(Exception):
    """Raised when a body is longer than any review."""


class _GoneError(Exception):
    """Raised when nobody waits for the answer any more."""


class AnswersReviews(Protocol):
    """Who answers the API server; see `apiserver.Admission`."""

    def why_not_ready(self) -> str: ...
    async def answer(self, body: bytes) -> Answer: ...
    async def mutate(self, body: bytes) -> Answer: ...


class Application:
    """The ASGI application. Whatever comes in, an answer goes out, and soon."""

    def __init__(
        self, admission: AnswersReviews, why_no_certificate: Callable[[], str] = str
    ) -> None:
        """`why_no_certificate` is "" once callers can verify who answers."""
        self._admission = admission
        self._why_no_certificate = why_no_certificate

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                answer = await self._answer(scope, receive)
            except _GoneError:
                return
            await _send(answer, send)

    async def _answer(self, scope: Message, receive: Receive) -> Answer:
        match scope["method"], scope["path"]:
            case "POST", "/validate":
                return await _answered(receive, self._admission.answer)
            case "POST", "/mutate":
                return await _answered(receive, self._admission.mutate)
            case "GET", "/healthz":
                return Answer(200, b'"ok"')
            case "GET", "/readyz":
                why = self._why_no_certificate() or self._admission.why_not_ready()
                return _failed(503, why) if why else Answer(200, b'"ok"')
            case _, "/validate" | "/mutate" | "/healthz" | "/readyz":
                return _failed(405, f"{scope['path']} does not know {scope['method']}.")
            case _:
                return _failed(404, "There are /validate, /mutate, /healthz and /readyz.")


async def _answered(receive: Receive, answer: Callable[[bytes], Awaitable[Answer]]) -> Answer:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _body(receive)
    except TimeoutError:
        return _failed(408, f"The body took longer than {BODY_SECONDS:.0f} s.")
    except _TooLongError:
        return _failed(413, f"The body is longer than {MOST_BYTES} bytes.")
    return await answer(body)


async def _body(receive: Receive) -> bytes:
    """Read to the end even what is too long: whoever still sends hears no answer."""
    parts: list[bytes] = []
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        part = message.get("body", b"")
        length += len(part)
        if length <= MOST_BYTES:
            parts.append(part)
        more = message.get("more_body", False)
    if length > MOST_BYTES:
        raise _TooLongError
    return b"".join(parts)


def _failed(code: int, sentence: str) -> Answer:
    return Answer(code, reviews.failure(code, sentence))


async def _send(answer: Answer, send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer.body)).encode()),
    ]
    if answer.code == 408:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


class _Server(uvicorn.Server):
    """Signals belong to whoever runs the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpsServer:
    """Listens from its construction on; serves while `run` runs."""

    def __init__(
        self, application: Application, address: tuple[str, int], tls: ssl.SSLContext
    ) -> None:
        """Raises OSError where the address cannot be had."""
        self._server = _Server(_config(application, tls))
        self._listening = _listen(*address)

    async def run(self) -> NoReturn:
        """Serve until cancelled; what is being answered then is answered first."""
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._listening]))
        try:
            await asyncio.shield(serving)
            raise RuntimeError("the server ended by itself")
        finally:
            self._server.should_exit = True
            await serving


def _config(application: Application, tls: ssl.SSLContext) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        ssl_context_factory=lambda _config, _default: tls,
    )


def _listen(host: str, port: int) -> socket.socket:
    """Without a host on all addresses, of both families where there are both."""
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(
            (host, port), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)

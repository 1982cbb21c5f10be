"""The calls of kube-scheduler as HTTP requests, and the pages for probes: an ASGI application.

    bytes ──extender_messages──► arguments ──AnswersKubeScheduler──► answer ──► bytes

Every call that failed is answered with status 200 and a sentence in `Error`: of any other status
kube-scheduler logs the number alone. Nothing that a client does or leaves out keeps a call for
longer than its limits.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from scheduler_plugin.extender_messages import (
    Answer,
    BindArguments,
    NotAnswered,
    Passed,
    decode_bind,
    decode_filter,
    decode_preempt,
    encode_error,
    encode_filter,
    encode_preempt,
    encode_preempt_error,
    encode_waiting,
)
from scheduler_plugin.fields import JsonObject
from scheduler_plugin.gate_decisions import WaitingPod
from scheduler_plugin.turns import Turns
from scheduler_plugin.verdicts import Refused

logger = logging.getLogger(__name__)

_WAITING_POD = re.compile(r"/waiting/(?P<namespace>[^/]+)/(?P<name>[^/]+)")

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
_Call: TypeAlias = Callable[[bytes], Awaitable[bytes]]
_Encode: TypeAlias = Callable[[str], bytes]


class AnswersKubeScheduler(Protocol):
    """What is asked of the scheduler plugin, without HTTP."""

    async def settle(self) -> None:
        """Wait a moment for calls to be answered, where that may come soon."""

    def filter(self, pod: JsonObject) -> Answer:
        """Whether the pod may be placed."""

    def preempt(self, pod: JsonObject) -> Answer:
        """Whether others may be evicted for the pod."""

    async def bind(self, arguments: BindArguments) -> str:
        """Bind a pod; returns why it is not bound, "" where it is."""

    async def is_bound(self, arguments: BindArguments) -> bool:
        """Whether the pod has a node by now, whoever gave it one; False where nobody can tell."""

    def why_not_ready(self) -> str:
        """Why calls are not answered now; "" where they are."""


class TellsWhoWaits(Protocol):
    """Who knows the pods that wait for quota."""

    def why_not_told(self) -> str:
        """Why it is not known here who waits; "" where it is."""

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """What is known of a waiting pod now; a sentence where it is none that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one request may take.

    Attributes:
        body: Bytes of a body that is read. The largest pod that etcd takes is 1.5 MiB, and 5,000
            names of the 253 characters that a name may have are 1.3 MiB.
        discarded: Bytes of a longer body that are read and dropped: a client that has sent all of
            it reads the answer, one that is cut off sees a broken connection.
        receive_seconds: For a body to arrive.
        bind_seconds: For a Bind; well inside the `httpTimeout` of 10 s, after which kube-scheduler
            would not hear why.
        stop_seconds: For requests under way when the server stops; more than one Bind takes, with
            the look that follows one that failed.
        on_their_way: Pods between Filter and the end of Bind; beyond that Filter is answered later.
    """

    body: int = 4 << 20
    discarded: int = 32 << 20
    receive_seconds: float = 5.0
    bind_seconds: float = 6.0
    stop_seconds: int = 9
    on_their_way: int = 64


DEFAULT_LIMITS = Limits()


class Response(NamedTuple):
    """An answer; `closes` where more of the request may come that nobody reads."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    closes: bool = False


class _Cut(NamedTuple):
    """A body that was not read to its end."""

    why: str


class ExtenderApp:
    """The ASGI application: three verbs, two pages for probes, and one for each waiting pod."""

    def __init__(
        self,
        answers: AnswersKubeScheduler,
        limits: Limits = DEFAULT_LIMITS,
        waiting: TellsWhoWaits | None = None,
    ) -> None:
        """Without `waiting` there are no pages for waiting pods."""
        self._answers = answers
        self._waiting = waiting
        self._limits = limits
        self._turns = Turns(limits.on_their_way)
        self._calls: dict[str, tuple[_Call, _Encode]] = {
            "/filter": (self._filter, encode_error),
            "/preempt": (self._preempt, encode_preempt_error),
            "/bind": (self._bind, encode_error),
        }
        self._pages = {"/healthz": self._healthz, "/readyz": self._readyz}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, body, content_type, closes = await self._respond(scope, receive)
        headers = [
            (b"content-type", content_type),
            (b"content-length", str(len(body)).encode()),
        ]
        if closes:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        path, method = scope["path"], scope["method"]
        if path in self._calls:
            return await self._call(path, receive) if method == "POST" else _not_allowed("POST")
        if path in self._pages:
            return self._pages[path]() if method == "GET" else _not_allowed("GET")
        if self._waiting is not None and (asked := _WAITING_POD.fullmatch(path)):
            if method != "GET":
                return _not_allowed("GET")
            return _waiting_page(self._waiting, asked["namespace"], asked["name"])
        return _plain(404, f"There is no {path} here.")

    async def _call(self, path: str, receive: Receive) -> Response:
        call, failed = self._calls[path]
        body = await _read(receive, self._limits)
        if isinstance(body, _Cut):
            logger.warning("not answered path=%s why=%s", path, body.why)
            return Response(200, failed(body.why), closes=True)
        try:
            return Response(200, await call(body))
        except Exception as error:  # a fault in one verdict must not look like a silent server
            logger.exception("failed path=%s", path)
            return Response(200, failed(f"internal error: {type(error).__name__}: {error}"))

    async def _filter(self, body: bytes) -> bytes:
        call = decode_filter(body)
        if isinstance(call, NotAnswered):
            return encode_error(_logged("/filter", call))
        await self._turns.next()
        await self._answers.settle()
        answer = self._answers.filter(call.pod)
        if isinstance(answer, Passed):  # Then the pod can be read.
            self._turns.begin(call.pod["metadata"]["uid"])
        elif isinstance(answer, Refused):
            self._turns.end(call.pod["metadata"]["uid"])
        return encode_filter(call, answer)

    async def _preempt(self, body: bytes) -> bytes:
        call = decode_preempt(body)
        if isinstance(call, NotAnswered):
            return encode_preempt_error(_logged("/preempt", call))
        return encode_preempt(call, self._answers.preempt(call.pod))

    async def _bind(self, body: bytes) -> bytes:
        call = decode_bind(body)
        if isinstance(call, NotAnswered):
            return encode_error(_logged("/bind", call))
        try:
            return encode_error(await self._bound(call))
        finally:
            self._turns.end(call.uid)

    async def _bound(self, call: BindArguments) -> str:
        """Bind, and call it a failure only where the pod is not bound after all.

        kube-scheduler takes the reservations of a pod back whose Bind failed, even those of one
        that runs: its devices would be given to others. Another replica may have bound it, while
        this one and its kube-scheduler were stopped; on which node is no matter then.
        """
        why = await self._bound_in_time(call)
        if not why or not await self._answers.is_bound(call):
            return why
        logger.info("bound already pod=%s/%s why_not=%s", call.namespace, call.name, why)
        return ""

    async def _bound_in_time(self, call: BindArguments) -> str:
        """Bind within the limit, or give up.

        What is given up is cancelled: kube-scheduler, told that the pod is not bound, takes its
        reservation back and may choose another node, so nothing more may begin for the old one. A
        write that is under way may still arrive, as if this process had been killed at that
        moment; the next Bind, or the watch, finds out. A client that hangs up changes nothing.
        """
        seconds = self._limits.bind_seconds
        failed = f"Pod {call.namespace}/{call.name} was not bound"
        work = asyncio.ensure_future(self._answers.bind(call))
        try:
            await asyncio.wait((work,), timeout=seconds)
            if work.done():
                return f"{failed}: cancelled." if work.cancelled() else work.result()
            return f"{failed} within {seconds:g} s."
        finally:
            if not work.done():
                # Not awaited: work that is slow to give up must not delay the answer.
                work.cancel()
                work.add_done_callback(_given_up)

    def _healthz(self) -> Response:
        return _plain(200, "ok")

    def _readyz(self) -> Response:
        try:
            why = self._answers.why_not_ready()
        except Exception as error:  # a probe gets an answer too
            logger.exception("failed path=/readyz")
            why = f"internal error: {type(error).__name__}: {error}"
        return _plain(503, why) if why else _plain(200, "ok")


def _waiting_page(waiting: TellsWhoWaits, namespace: str, name: str) -> Response:
    if why := waiting.why_not_told():
        return _plain(503, why)
    found = waiting.waiting(namespace, name)
    return _plain(404, found) if isinstance(found, str) else Response(200, encode_waiting(found))


def _given_up(work: asyncio.Future[str]) -> None:
    """Say how work ended that nobody waited for."""
    if work.cancelled():
        logger.warning("gave up a bind")
    elif error := work.exception():
        logger.error("a bind that was given up failed", exc_info=error)
    else:
        logger.warning("a bind ended when it was given up why_not=%s", work.result())


def _logged(path: str, malformed: NotAnswered) -> str:
    logger.warning("malformed path=%s why=%s", path, malformed.why)
    return malformed.why


def _plain(status: int, text: str) -> Response:
    # A body that was not read may follow the headers of a request that is refused by them.
    body = text.encode(errors="backslashreplace")
    return Response(status, body, b"text/plain; charset=utf-8", closes=status in (404, 405))


def _not_allowed(method: str) -> Response:
    return _plain(405, f"Only {method} is answered here.")


async def _read(receive: Receive, limits: Limits) -> bytes | _Cut:
    """Read a body within the limits."""
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(limits.receive_seconds):
            more = True
            while more and size <= limits.discarded:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return _Cut(f"body: the client left after {size} bytes.")
                part: bytes = message.get("body", b"")
                size += len(part)
                more = message.get("more_body", False)
                if size <= limits.body:
                    parts.append(part)
    except TimeoutError:
        return _Cut(f"body: stopped after {size} bytes for {limits.receive_seconds:g} s.")
    if size > limits.body:
        return _Cut(f"body: larger than {limits.body} bytes.")
    return parts[0] if len(parts) == 1 else b"".join(parts)

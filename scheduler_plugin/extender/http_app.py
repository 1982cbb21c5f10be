"""The calls of kube-scheduler as HTTP requests: an ASGI application.

    bytes ──messages──► arguments ──kube_scheduler.Extender──► answer ──► bytes

Every call that failed is answered with status 200 and a sentence in `Error`: of any other status
kube-scheduler logs the number alone. Nothing that a client does or leaves out keeps a call for
longer than its limits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

from starlette.types import Receive, Scope, Send

from kube.api import naming, note_span, now_ns
from kube.shapes.reading import JsonObject
from scheduler_plugin.extender.http_bodies import (
    Response,
    plain,
    read_body,
    respond,
)
from scheduler_plugin.extender.kube_scheduler import Extender
from scheduler_plugin.extender.kube_scheduler_backlog import Backlog
from scheduler_plugin.extender.messages import (
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
    is_left_a_node,
)
from scheduler_plugin.extender.prometheus_calls import note_bind, note_call, note_verdict
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import PodUid

logger = logging.getLogger(__name__)

_Call: TypeAlias = Callable[[bytes], Awaitable[bytes]]
_Encode: TypeAlias = Callable[[str], bytes]


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


class ExtenderApp:
    """The ASGI application: three verbs and nothing else. Whoever reaches it can bind pods."""

    def __init__(self, answers: Extender, limits: Limits = DEFAULT_LIMITS) -> None:
        self._answers = answers
        self._limits = limits
        self._backlog = Backlog(limits.on_their_way)
        self._calls: dict[str, tuple[_Call, _Encode]] = {
            "/filter": (self.filter, encode_error),
            "/preempt": (self._preempt, encode_preempt_error),
            "/bind": (self.bind, encode_error),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(await self._answer(scope["method"], scope["path"], receive), send)

    async def _answer(self, method: str, path: str, receive: Receive) -> Response:
        if path not in self._calls:
            return plain(404, f"There is no {path} here.")
        if method != "POST":
            return plain(405, "Only POST is answered here.")
        return await self._call(path, receive)

    async def _call(self, path: str, receive: Receive) -> Response:
        began = perf_counter()
        try:
            return await self._told(path, receive)
        finally:
            note_call(path, perf_counter() - began)

    async def _told(self, path: str, receive: Receive) -> Response:
        call, failed = self._calls[path]
        limits = self._limits
        body = await read_body(receive, limits.body, limits.discarded, limits.receive_seconds)
        if isinstance(body, str):
            logger.warning("not answered path=%s why=%s", path, body)
            return Response(200, failed(body), closes=True)
        try:
            return Response(200, await call(body))
        except Exception as error:  # a fault in one verdict must not look like a silent server
            logger.exception("failed path=%s", path)
            return Response(200, failed(f"internal error: {type(error).__name__}: {error}"))

    async def filter(self, body: bytes) -> bytes:
        call = decode_filter(body)
        if isinstance(call, NotAnswered):
            return encode_error(_logged("/filter", call))
        await self._backlog.next()
        began, uid = now_ns(), _uid(call.pod)
        with naming(podUID=uid):
            await self._answers.settle()
            answer = await self._answers.filter_once_known(call.pod)
            _told("Filter", began, uid, _why_not(answer))
        note_verdict("filter", answer)
        is_left = isinstance(answer, Passed) and is_left_a_node(call, answer)
        if isinstance(answer, Passed) and answer.kept_off:
            self._answers.kept_off(PodUid(uid), everywhere=not is_left)
        if is_left:
            self._backlog.begin(uid)
        elif not isinstance(answer, NotAnswered):
            self._backlog.end(uid)
        return encode_filter(call, answer)

    async def _preempt(self, body: bytes) -> bytes:
        call = decode_preempt(body)
        if isinstance(call, NotAnswered):
            return encode_preempt_error(_logged("/preempt", call))
        began, uid = now_ns(), _uid(call.pod)
        with naming(podUID=uid):
            answer = self._answers.preempt(call.pod)
            _told("Preempt", began, uid, _why_not(answer))
        note_verdict("preempt", answer)
        return encode_preempt(call, answer)

    async def bind(self, body: bytes) -> bytes:
        call = decode_bind(body)
        if isinstance(call, NotAnswered):
            return encode_error(_logged("/bind", call))
        self._backlog.bind(call.uid)
        began = now_ns()
        try:
            with naming(podUID=call.uid):
                why_not = await self._bound(call)
                _told("Bind", began, call.uid, why_not)
            note_bind(why_not)
            return encode_error(why_not)
        finally:
            self._backlog.end(call.uid)

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


def _uid(pod: JsonObject) -> str:
    """As it was sent, which may be anything."""
    metadata = pod.get("metadata")
    return str(metadata.get("uid", "")) if isinstance(metadata, dict) else ""


def _why_not(answer: Answer) -> str:
    match answer:
        case Passed():
            return ""
        case Refused():
            return f"{answer.reason}: {answer.sentence}"
        case NotAnswered(why):
            return why


def _told(verb: str, began: int, uid: str, why_not: str) -> None:
    """What was answered, for who looks at one pod; everybody else reads its conditions."""
    logger.debug("%s: %s", verb, why_not or "yes")
    note_span(verb, began, (uid,), failure=why_not)


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

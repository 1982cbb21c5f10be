"""The calls of kube-scheduler as HTTP requests: an ASGI application.

    bytes ──messages──► arguments ──kube_scheduler.Extender──► answer ──► bytes

A failed call is answered with status 200 and a sentence in `Error`, since kube-scheduler logs only
the number of any other status. No client can keep a call open beyond its limits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

from starlette.types import Receive, Scope, Send

from kube.processes.api import log_context, note_span, now_ns
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
    has_node_left,
)
from scheduler_plugin.extender.prometheus_calls import note_bind, note_call, note_verdict
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import PodUid

logger = logging.getLogger(__name__)

_Call: TypeAlias = Callable[[bytes], Awaitable[bytes]]
_Encode: TypeAlias = Callable[[str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of requests.

    Attributes:
        body: The largest body that is read, in bytes. etcd stores pods of at most 1.5 MiB, and
            5,000 node names of 253 characters each are 1.3 MiB.
        discarded: The largest body that is read and dropped, in bytes. A client that has sent its
            whole body reads the answer; a client that is cut off sees a broken connection.
        receive_seconds: How long a body may take to arrive.
        bind_seconds: How long a Bind may take. It is well below kube-scheduler's `httpTimeout` of
            10 s, after which kube-scheduler would not read the reason.
        stop_seconds: How long requests under way may take when the server stops: longer than one
            Bind and the read that follows a failed one.
        in_flight: Pods between Filter and the end of Bind; Filter waits while there are more.
    """

    body: int = 4 << 20
    discarded: int = 32 << 20
    receive_seconds: float = 5.0
    bind_seconds: float = 6.0
    stop_seconds: int = 9
    in_flight: int = 64


DEFAULT_LIMITS = Limits()


class ExtenderApp:
    """The ASGI application of the three verbs. A client that reaches it can bind pods."""

    def __init__(self, answers: Extender, limits: Limits = DEFAULT_LIMITS) -> None:
        self._answers = answers
        self._limits = limits
        self._backlog = Backlog(limits.in_flight)
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
            return await self._answer_call(path, receive)
        finally:
            note_call(path, perf_counter() - began)

    async def _answer_call(self, path: str, receive: Receive) -> Response:
        call, failed = self._calls[path]
        limits = self._limits
        body = await read_body(receive, limits.body, limits.discarded, limits.receive_seconds)
        if isinstance(body, str):
            logger.warning("not answered path=%s why=%s", path, body)
            return Response(200, failed(body), closes=True)
        try:
            return Response(200, await call(body))
        except Exception as error:  # A fault in one verdict must not look like a dead server.
            logger.exception("failed path=%s", path)
            return Response(200, failed(f"internal error: {type(error).__name__}: {error}"))

    async def filter(self, body: bytes) -> bytes:
        call = decode_filter(body)
        if isinstance(call, NotAnswered):
            return encode_error(_logged("/filter", call))
        await self._backlog.next()
        began, uid = now_ns(), _uid(call.pod)
        with log_context(podUID=uid):
            await self._answers.await_lease()
            answer = await self._answers.filter_once_known(call.pod)
            _report("Filter", began, uid, _why_not(answer))
        note_verdict("filter", answer)
        has_node = isinstance(answer, Passed) and has_node_left(call, answer)
        if isinstance(answer, Passed) and answer.kept_off:
            self._answers.kept_off(PodUid(uid), everywhere=not has_node)
        if has_node:
            self._backlog.begin(uid)
        elif not isinstance(answer, NotAnswered):
            self._backlog.end(uid)
        return encode_filter(call, answer)

    async def _preempt(self, body: bytes) -> bytes:
        call = decode_preempt(body)
        if isinstance(call, NotAnswered):
            return encode_preempt_error(_logged("/preempt", call))
        began, uid = now_ns(), _uid(call.pod)
        with log_context(podUID=uid):
            answer = self._answers.preempt(call.pod)
            _report("Preempt", began, uid, _why_not(answer))
        note_verdict("preempt", answer)
        return encode_preempt(call, answer)

    async def bind(self, body: bytes) -> bytes:
        call = decode_bind(body)
        if isinstance(call, NotAnswered):
            return encode_error(_logged("/bind", call))
        self._backlog.bind(call.uid)
        began = now_ns()
        try:
            with log_context(podUID=call.uid):
                why_not = await self._bound(call)
                _report("Bind", began, call.uid, why_not)
            note_bind(why_not)
            return encode_error(why_not)
        finally:
            self._backlog.end(call.uid)

    async def _bound(self, call: BindArguments) -> str:
        """Bind, and report a failure only if the pod is not bound.

        kube-scheduler removes the reservations of a pod whose Bind failed, even if the pod runs:
        its devices would be given to other pods. Another replica may have bound the pod, to any
        node, while this process and its kube-scheduler were stopped.
        """
        why = await self._bound_in_time(call)
        if not why or not await self._answers.is_bound(call):
            return why
        logger.info("bound already pod=%s/%s why_not=%s", call.namespace, call.name, why)
        return ""

    async def _bound_in_time(self, call: BindArguments) -> str:
        """Bind within the limit, or cancel the attempt.

        After a failed Bind kube-scheduler removes the reservation and may choose another node, so
        no further write for the old node may begin. A write that is under way may still arrive, as
        it may when the process is killed; the next Bind or the watch finds it. A client that
        disconnects changes nothing.
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
                # The task is not awaited: a slow cancellation must not delay the answer.
                work.cancel()
                work.add_done_callback(_log_late_end)


def _uid(pod: JsonObject) -> str:
    """The pod's UID as it was sent, unchecked."""
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


def _report(verb: str, began: int, uid: str, why_not: str) -> None:
    """Log and trace an answer, for a look at one pod; users read the pod's conditions."""
    logger.debug("%s: %s", verb, why_not or "yes")
    note_span(verb, began, (uid,), failure=why_not)


def _log_late_end(work: asyncio.Future[str]) -> None:
    """Log how a Bind ended that had reached its limit."""
    if work.cancelled():
        logger.warning("bind cancelled at its time limit")
    elif error := work.exception():
        logger.error("bind failed after its time limit", exc_info=error)
    else:
        logger.warning("bind ended after its time limit why_not=%s", work.result())


def _logged(path: str, malformed: NotAnswered) -> str:
    logger.warning("malformed path=%s why=%s", path, malformed.why)
    return malformed.why

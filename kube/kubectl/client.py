"""The API server, read through kubectl: the same reads and errors as those of `ApiClient`.

There is no event loop: a coroutine that calls this client awaits nothing else, and `finished` runs
it to its end.
"""

from __future__ import annotations

import time
from collections.abc import Coroutine
from socket import socket
from typing import Any, TypeVar

from kube.calls.apiserver_reads import Answer, ApiReader, lost, refusal
from kube.calls.errors import UnavailableError, said
from kube.calls.read_requests import Request
from kube.kubectl.http_answers import AnswerParser
from kube.kubectl.kubeconfig import Choice, current_namespace, has_login
from kube.kubectl.proxy import KubectlProxy

T = TypeVar("T")

LOGIN_SECONDS = 180.0
"""The time-out of the first response if a credential plugin may ask the user for a password or open
a browser: the kubeconfig names one, or one wrote to the user. kubectl itself has no time-out for a
server that accepts a connection and is silent."""

_REFUSED = 403
"""kubectl's status for a path of its own `--reject-paths`."""


class KubectlClient(ApiReader):
    """Reads by HTTP over the socket of a `kubectl proxy`, with a connection for each request."""

    def __init__(self, proxy: KubectlProxy, choice: Choice) -> None:
        self._proxy = proxy
        self._choice = choice
        self._has_answered = False

    @property
    def namespace(self) -> str:
        return current_namespace(self._choice)

    async def _answer(self, request: Request) -> Answer:
        try:
            answer = self._exchanged(request)
        except (OSError, ValueError) as error:
            raise lost(f"{request.what}: {said(error)}") from error
        if _is_of_kubectl(answer):
            raise _unanswered(request, answer)
        self._has_answered = True
        if answer.status >= 400:
            raise refusal(answer)
        return answer

    def _exchanged(self, request: Request) -> Answer:
        began, parser = time.monotonic(), AnswerParser()
        with self._proxy.connection() as connection:
            connection.sendall(_head(request))
            try:
                return self._received(connection, parser, began + request.timeout_seconds)
            except TimeoutError:
                if not self._may_wait_for_user():
                    raise
            return self._received(connection, parser, began + LOGIN_SECONDS)

    def _received(self, connection: socket, parser: AnswerParser, until: float) -> Answer:
        while data := self._proxy.received(connection, until):
            if answer := parser.feed(data):
                return answer
        raise ConnectionError("kubectl ended halfway through the answer")

    def _may_wait_for_user(self) -> bool:
        # Only after the time-out: reading YAML is slow, and most calls do not need it.
        return not self._has_answered and (self._proxy.has_prompted_user or has_login(self._choice))


def _is_of_kubectl(answer: Answer) -> bool:
    """Whether kubectl itself answers, because the API server did not: the API server sends JSON."""
    text = answer.headers.get("Content-Type", "").startswith("text/plain")
    return text and (answer.status >= 500 or answer.status == _REFUSED)


def _unanswered(request: Request, answer: Answer) -> UnavailableError:
    text = answer.body.decode(errors="replace").strip()
    why = "kubectl refuses to ask for this path: " if answer.status == _REFUSED else ""
    return UnavailableError(f"{request.what}: {why}{text}")


def _head(request: Request) -> bytes:
    """The head of a read request; kubectl answers only for this host."""
    lines = (f"{request.method} {request.url} HTTP/1.1", "Host: localhost", *_ACCEPTED, "", "")
    return "\r\n".join(lines).encode()


_ACCEPTED = ("Accept: application/json", "User-Agent: moorage", "Connection: close")


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits a KubectlClient and nothing else."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    finally:
        coroutine.close()
    raise RuntimeError("the coroutine awaits something other than a KubectlClient")

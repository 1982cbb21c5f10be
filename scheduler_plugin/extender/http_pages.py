"""What people and probes read of the plugin, as an ASGI application: it changes nothing.

GET  /healthz                       the process answers
GET  /readyz                        the kube-scheduler beside this process is served, or why not
GET  /waiting/<namespace>/<pod>     a waiting pod's place in line, and why it waits

These pages have a port of their own, so that who may read them cannot bind pods.
"""

from __future__ import annotations

import logging
import re
from typing import Protocol

from scheduler_plugin.extender.http_responses import (
    Receive,
    Response,
    Scope,
    Send,
    not_allowed,
    plain,
    respond,
)
from scheduler_plugin.extender.messages import encode_waiting
from scheduler_plugin.waiting.decisions import WaitingPod

logger = logging.getLogger(__name__)

_WAITING_POD = re.compile(r"/waiting/(?P<namespace>[^/]+)/(?P<name>[^/]+)")


class TellsReadiness(Protocol):
    """Who knows whether kube-scheduler is answered."""

    def why_not_ready(self) -> str:
        """Why calls are not answered now; "" where they are."""


class TellsWhoWaits(Protocol):
    """Who knows the pods that wait for quota."""

    def why_not_told(self) -> str:
        """Why it is not known here who waits; "" where it is."""

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """What is known of a waiting pod now; a sentence where it is none that waits."""


class PagesApp:
    """The ASGI application: two pages for probes, and one for each waiting pod."""

    def __init__(self, readiness: TellsReadiness, waiting: TellsWhoWaits) -> None:
        self._readiness = readiness
        self._waiting = waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await respond(self._answer(scope["method"], scope["path"]), send)

    def _answer(self, method: str, path: str) -> Response:
        asked = _WAITING_POD.fullmatch(path)
        if not asked and path not in ("/healthz", "/readyz"):
            return plain(404, f"There is no {path} here.")
        if method != "GET":
            return not_allowed("GET")
        if asked:
            return self._waiting_pod(asked["namespace"], asked["name"])
        return plain(200, "ok") if path == "/healthz" else self._readyz()

    def _readyz(self) -> Response:
        try:
            why = self._readiness.why_not_ready()
        except Exception as error:  # a probe gets an answer too
            logger.exception("failed path=/readyz")
            why = f"internal error: {type(error).__name__}: {error}"
        return plain(503, why) if why else plain(200, "ok")

    def _waiting_pod(self, namespace: str, name: str) -> Response:
        if why := self._waiting.why_not_told():
            return plain(503, why)
        found = self._waiting.waiting(namespace, name)
        return plain(404, found) if isinstance(found, str) else Response(200, encode_waiting(found))

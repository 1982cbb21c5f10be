"""Loopback addresses are asked under names of loopback only: see `kube.loopback`.

starlette's TrustedHostMiddleware takes a list of names for all addresses, and none such as [::1].
Here it depends on where a request came in: who listens on all addresses is asked by the kubelet
under the pod's, and under a forwarded port on loopback.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kube.api import is_loopback, why_not_under
from scheduler_plugin.extender.http_bodies import plain, respond


class LoopbackHosts:
    """Hands on what may be answered, and refuses the rest with a sentence."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if why := _why_not(scope):
            await respond(plain(403, why), send)
        else:
            await self._app(scope, receive, send)


def _why_not(scope: Scope) -> str:
    """Who names no host, as HTTP/1.0 allows, is no browser."""
    server = scope.get("server")
    if not server or not is_loopback(server[0]):
        return ""
    named = Headers(scope=scope).getlist("host")
    return next(filter(None, map(why_not_under, named)), "")

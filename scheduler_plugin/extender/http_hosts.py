"""A loopback address answers only requests whose Host names loopback: see `kube.loopback`.

starlette's TrustedHostMiddleware has one list of names for all addresses, without names such as
[::1]. Here the check depends on the address that a request came in at: a server on all addresses is
called by the kubelet at the pod's address, and through a forwarded port at loopback.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kube.loopback import is_loopback, why_not_under
from scheduler_plugin.extender.http_bodies import plain, respond


class LoopbackHosts:
    """Passes allowed requests on, and refuses all others with a sentence."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if why := _why_not(scope):
            await respond(plain(403, why), send)
        else:
            await self._app(scope, receive, send)


def _why_not(scope: Scope) -> str:
    """Why a request is refused; a request without Host (HTTP/1.0) comes from no browser."""
    server = scope.get("server")
    if not server or not is_loopback(server[0]):
        return ""
    named = Headers(scope=scope).getlist("host")
    return next(filter(None, map(why_not_under, named)), "")

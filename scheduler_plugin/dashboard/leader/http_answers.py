"""The elected plugin's answers over HTTP, only to clients with the dashboard's certificate.

GET /healthz                    200 if the plugin is elected and knows the waiting pods; else 503
GET /pods/<namespace>/<name>    a `PodAnswer`

The listener has an address of its own. A client without that certificate gets no answer. The
dashboard reviews what viewers may see.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from kube.calls.api import ApiClient
from kube.http_server import Ending, serving
from kube.live_tls import LiveTls
from kube.resources import ObjectPath
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.dashboard.leader.answers import pod_answer
from scheduler_plugin.dashboard.leader.apiserver_credentials import CredentialKeeper
from scheduler_plugin.dashboard.leader.credentials import CLIENT
from scheduler_plugin.extender.http_server import named_clients
from scheduler_plugin.objects.bindings import Fence
from scheduler_plugin.waiting.admissions import WaitingPodQueries

logger = logging.getLogger(__name__)

STOP_SECONDS = 1
RETRY_SECONDS = 30.0
"""How soon the plugin tries again to listen at an address that was in use."""


def answers_app(world: WorldView, waiting: WaitingPodQueries) -> Starlette:
    """The application."""

    async def healthz(_request: Request) -> Response:
        why_not = waiting.why_unknown()
        return PlainTextResponse(why_not or "ok", 503 if why_not else 200)

    async def pod(request: Request) -> Response:
        if why_not := waiting.why_unknown():
            return PlainTextResponse(why_not, 503)
        named = request.path_params
        found = pod_answer(world, waiting.waiting, named["namespace"], named["name"])
        return Response(msgspec.json.encode(found), media_type="application/json")

    paths = (("/healthz", healthz), ("/pods/{namespace}/{name}", pod))
    return Starlette(routes=[Route(path, answer, methods=["GET"]) for path, answer in paths])


class LeaderAnswers:
    """The listener for the dashboard, and its certificate."""

    def __init__(
        self, client: ApiClient, address: tuple[str, int], secret: ObjectPath, fence: Fence
    ) -> None:
        self._address = address
        self._live = LiveTls(asks_clients=True)
        self._keeper = CredentialKeeper(client, secret, self._live, fence)

    async def run(self, app: Starlette) -> NoReturn:
        """Answer until cancelled; failures are logged and retried, since bindings must go on."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keeper.run())
            while True:
                try:
                    await self._serve(app)
                except Exception:  # A fault here must not stop bindings.
                    logger.exception("the dashboard is not answered")
                await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError("the listener runs until cancelled")

    async def _serve(self, app: Starlette) -> None:
        async with serving(
            app,
            self._address,
            tls=self._live.context,
            ending=Ending(STOP_SECONDS),
            protocol=named_clients(frozenset({CLIENT})),
        ) as bound:
            logger.info("listening for the dashboard host=%s port=%d", bound.host, bound.port)
            await asyncio.wait([bound.server])

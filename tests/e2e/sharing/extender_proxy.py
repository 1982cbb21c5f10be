"""A process between kube-scheduler and the plugin that holds calls back until a test lets go.

    kube-scheduler ──► proxy ──► plugin        POST /filter, /preempt, /bind
                        ▲
                      test                     PUT, DELETE /holds/<verb>/<namespace>/<pod>
                                               GET /calls
                                               POST /directly/<verb>, which nothing holds

It runs inside the cluster's network, where the plugin listens on loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import deque
from typing import Any

import aiohttp
from aiohttp import web

MOST_CALLS = 20_000
SECONDS = 60.0


class Proxy:
    """Passes calls on, one by one, and remembers them."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._holds: dict[str, asyncio.Event] = {}
        self._calls: deque[dict[str, str]] = deque(maxlen=MOST_CALLS)

    def application(self) -> web.Application:
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_put("/holds/{call:.+}", self._hold)
        application.router.add_delete("/holds/{call:.+}", self._let_go)
        application.router.add_get("/calls", self._show)
        application.router.add_post("/directly/{verb}", self._pass_directly)
        application.router.add_post("/{verb}", self._pass_on)
        return application

    async def _hold(self, request: web.Request) -> web.Response:
        self._holds[request.match_info["call"]] = asyncio.Event()
        return web.Response()

    async def _let_go(self, request: web.Request) -> web.Response:
        if held := self._holds.pop(request.match_info["call"], None):
            held.set()
        return web.Response()

    async def _show(self, _: web.Request) -> web.Response:
        return web.json_response(list(self._calls))

    async def _pass_on(self, request: web.Request) -> web.Response:
        verb, body = request.match_info["verb"], await request.read()
        call = {"call": f"{verb}/{pod_of(json.loads(body))}", "state": "held", "answer": ""}
        self._calls.append(call)
        if held := self._holds.get(call["call"]):
            await held.wait()
        call["state"] = "sent"
        status, text = await self._ask(verb, body)
        call |= {"state": "answered", "answer": text}
        return web.Response(status=status, text=text, content_type="application/json")

    async def _pass_directly(self, request: web.Request) -> web.Response:
        status, text = await self._ask(request.match_info["verb"], await request.read())
        return web.Response(status=status, text=text, content_type="application/json")

    async def _ask(self, verb: str, body: bytes) -> tuple[int, str]:
        headers = {"Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(f"{self._plugin}/{verb}", data=body, headers=headers) as answer,
            ):
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            return 502, json.dumps({"Error": f"the plugin does not answer: {error}"})


def pod_of(arguments: dict[str, Any]) -> str:
    """Namespace and name of the pod that a call is about."""
    if pod := arguments.get("Pod"):
        return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    return f"{arguments.get('PodNamespace')}/{arguments.get('PodName')}"


def main() -> None:
    """Run until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--plugin", required=True)
    options = parser.parse_args()
    application = Proxy(options.plugin).application()
    web.run_app(application, host=options.host, port=options.port, print=None)


if __name__ == "__main__":
    main()

"""A way from the plugin to the API server on which the watch of claims can fall silent.

    plugin ──HTTP──► this process ──TLS──► API server

Everything else goes through as it comes, reads of claims as well: only what a watch would tell is
kept until it may speak again. So an API server, or a network, may be slow on one connection.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from local_cluster.api import Cluster

ACCOUNT = "scheduler-plugin"
NAMESPACE = "moorage-system"
HOP_BY_HOP = {"host", "transfer-encoding", "connection", "content-length", "keep-alive"}


class SilentWatch:
    """The way, while it is served.

    Attributes:
        kubeconfig: Of the plugin's account, by this way.
    """

    def __init__(self, kubeconfig: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.kubeconfig = kubeconfig
        self.speaks = asyncio.Event()
        self.speaks.set()
        self._loop = loop

    @contextmanager
    def silent(self) -> Iterator[None]:
        """No watch of claims says anything for as long as this lasts."""
        self._loop.call_soon_threadsafe(self.speaks.clear)
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self.speaks.set)

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        session, server = request.app[_SESSION], request.app[_SERVER]
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP}
        body, path = await request.read(), request.raw_path
        async with session.request(
            request.method, server + path, headers=headers, data=body
        ) as got:
            kept = {k: v for k, v in got.headers.items() if k.lower() not in HOP_BY_HOP}
            answer = web.StreamResponse(status=got.status, headers=kept)
            await answer.prepare(request)
            async for part in got.content.iter_any():
                if _is_watch_of_claims(request):
                    await self.speaks.wait()
                await answer.write(part)
            await answer.write_eof()
        return answer


_SESSION = web.AppKey("session", aiohttp.ClientSession)
_SERVER = web.AppKey("server", str)


def _is_watch_of_claims(request: web.Request) -> bool:
    return request.path.endswith("/resourceclaims") and "watch" in request.query


@contextmanager
def watched(cluster: Cluster) -> Iterator[SilentWatch]:
    """Such a way, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    found = cluster.service_account_kubeconfig(ACCOUNT, namespace=NAMESPACE, node="node-a")
    told = yaml.safe_load(found.read_text())
    (entry,) = told["clusters"]
    context = ssl.create_default_context(cafile=entry["cluster"]["certificate-authority"])
    watch = SilentWatch(found.with_name(f"silent-{found.name}"), loop)
    started = asyncio.run_coroutine_threadsafe(_start(watch, cluster, context), loop)
    runner, port = started.result()
    entry["cluster"] = {"server": f"http://{cluster.host_address}:{port}"}
    watch.kubeconfig.write_text(yaml.safe_dump(told))
    try:
        yield watch
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _start(
    watch: SilentWatch, cluster: Cluster, context: ssl.SSLContext
) -> tuple[web.AppRunner, int]:
    app = web.Application(client_max_size=16 << 20)
    app[_SERVER] = cluster.server
    app[_SESSION] = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context, limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    )
    app.on_cleanup.append(_close)
    app.router.add_route("*", "/{path:.*}", watch.pass_on)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, cluster.host_address, 0)
    await site.start()
    return runner, runner.addresses[0][1]


async def _close(app: web.Application) -> None:
    await app[_SESSION].close()

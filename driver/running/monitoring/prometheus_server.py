"""Serves metrics and health of the driver over plain HTTP.

GET /metrics   metrics for Prometheus
GET /healthz   200 while the process answers
GET /readyz    200 while the process does its work; otherwise 503 with the reason
"""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from driver.plumbing.prometheus import page
from driver.running.arguments import Address
from driver.running.monitoring.ready_socket import WhyNotReady

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Interval of retries while another process has the address, as the old pod during an update."""


def application(why_not_ready: WhyNotReady) -> web.Application:
    """The HTTP application."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        why = why_not_ready()
        return web.Response(status=503, text=why) if why else web.Response(text="ok")

    app = web.Application()
    app.add_routes(
        [
            web.get("/metrics", metrics),
            web.get("/healthz", healthz),
            web.get("/readyz", readyz),
        ]
    )
    return app


async def serve(address: Address, why_not_ready: WhyNotReady) -> NoReturn:
    """Serve until cancelled. While the address is in use, listening is retried."""
    runner = web.AppRunner(application(why_not_ready), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await _listen(runner, address)
        logger.info("serving metrics address=%s", address)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
    raise AssertionError("the event is never set")


async def _listen(runner: web.AppRunner, address: Address) -> None:
    logged = ""
    while True:
        site = web.TCPSite(runner, address.host, address.port)
        try:
            await site.start()
        except OSError as error:
            await site.stop()
            if logged != (logged := str(error)):
                logger.warning("cannot serve metrics yet address=%s error=%s", address, error)
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            return

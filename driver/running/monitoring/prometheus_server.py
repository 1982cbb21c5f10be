"""Answers whoever watches over the driver, over plain HTTP.

GET /metrics   figures for Prometheus
GET /healthz   the process answers
GET /readyz    it does its work; else why not
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
"""How soon an address is tried again that another has: during an update it is the pod before."""


def application(why_not_ready: WhyNotReady) -> web.Application:
    """The pages."""

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
    """Answer until cancelled. Without its address the driver goes on, and tries again."""
    runner = web.AppRunner(application(why_not_ready), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await _listen(runner, address)
        logger.info("metrics are served address=%s", address)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
    raise AssertionError("nobody sets the event")


async def _listen(runner: web.AppRunner, address: Address) -> None:
    told = ""
    while True:
        site = web.TCPSite(runner, address.host, address.port)
        try:
            await site.start()
        except OSError as error:
            await site.stop()
            if told != (told := str(error)):
                logger.warning("no metrics yet: cannot listen address=%s error=%s", address, error)
            await asyncio.sleep(AGAIN_SECONDS)
        else:
            return

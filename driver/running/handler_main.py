"""Runs `moorage-driver handler`: one of Moorage's handlers, through the SDK for handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from driver.devices import Device
from driver.discovery.contract import DiscoveryHandler
from driver.discovery.handlers import Handlers, is_shared_by_default, parse_details
from driver.handlers.sdk import serve
from driver.handlers.sdk_requests import Handler, InvalidDetailsError, Request
from driver.running.settings import HandlerProcessSettings

LOOK_SECONDS = 1.0
"""Interval at which the problem of a handler is checked."""


async def run_handler(settings: HandlerProcessSettings) -> None:
    """Serve one handler until cancelled."""
    reported = settings.discovery
    ours = Handlers(reported).named(settings.name)
    handler = through_sdk(ours, shared=is_shared_by_default(settings.name, reported))
    await serve(handler, settings.place)


def through_sdk(ours: DiscoveryHandler[Any], *, shared: bool) -> Handler:
    """One of Moorage's handlers as a handler of the SDK.

    Args:
        ours: The handler.
        shared: Whether it registers for shared devices. Details that require the other are refused,
            since the agent would not know.
    """

    async def discover(request: Request) -> AsyncGenerator[tuple[Device, ...], None]:
        details = parse_details(ours.name, request.details)
        if isinstance(details, tuple):
            raise InvalidDetailsError(" ".join(map(str, details)))
        if ours.is_shared(details) is not shared:
            raise InvalidDetailsError(
                f"This handler is registered for devices that are {'' if shared else 'not '}shared."
            )
        found = ours.discover(details, request.properties)
        async with aclosing(found), aclosing(_again(found, problem)) as lists:
            async for devices in lists:
                yield devices

    def problem() -> str | None:
        return ours.problem

    return Handler(ours.name, discover, shared, problem)


async def _again(
    lists: AsyncGenerator[tuple[Device, ...], None], problem: Callable[[], str | None]
) -> AsyncGenerator[tuple[Device, ...], None]:
    """Yield each list, and the last one again whenever the problem changes."""
    last: tuple[Device, ...] | None = None
    reported: str | None = None
    coming = asyncio.ensure_future(anext(lists, None))
    try:
        while True:
            done, _ = await asyncio.wait((coming,), timeout=LOOK_SECONDS)
            if done and (last := coming.result()) is None:
                return
            if done:
                coming = asyncio.ensure_future(anext(lists, None))
            if last is not None and (done or problem() != reported):
                reported = problem()
                yield last
    finally:
        coming.cancel()
        await asyncio.wait((coming,))

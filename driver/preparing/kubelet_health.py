"""Streams the health of devices of prepared claims to the kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import grpc.aio

from driver.api import DeviceName
from driver.kubelet_api.dra_health.v1 import api_pb2 as health
from driver.kubelet_api.dra_health.v1 import api_pb2_grpc as health_grpc
from driver.preparing.grants.device_views import DevicesView, InstanceSource
from driver.preparing.grants.health import health_problems
from driver.preparing.kubelet_claims import KubeletClaims

_Context = grpc.aio.ServicerContext[Any, Any]

BURST_SECONDS = 0.05
"""Delay that joins changes at one moment to one list."""

RESEND_SECONDS = 10.0
"""Interval of repeated lists: two may be late before `LIMIT_SECONDS` have passed."""

LIMIT_SECONDS = 30
"""Time limit of each device's health: the kubelet sets the health to unknown if no list comes so
long. Without it each version of the kubelet has a limit of its own."""


class Health(health_grpc.DRAResourceHealthServicer):
    """`v1.DRAResourceHealth`: lists devices of claims at once, on each change, and repeatedly."""

    def __init__(self, claims: KubeletClaims, source: InstanceSource) -> None:
        self._claims = claims
        self._source = source
        self._ended = asyncio.Event()
        self._streams: set[asyncio.Event] = set()
        source.on_changed(self._wake)
        claims.on_prepared(self._wake)

    def end(self) -> None:
        """End all streams; otherwise they end with the kubelet."""
        self._ended.set()
        self._wake()

    def _wake(self) -> None:
        for changed in self._streams:
            changed.set()

    async def NodeWatchResources(
        self, request: health.NodeWatchResourcesRequest, context: _Context
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        changed = asyncio.Event()
        self._streams.add(changed)
        try:
            async for devices in self._lists(changed):
                yield devices
        finally:
            self._streams.discard(changed)

    async def _lists(
        self, changed: asyncio.Event
    ) -> AsyncIterator[health.NodeWatchResourcesResponse]:
        clock = asyncio.get_running_loop()
        sent, due = None, clock.time()
        while (known := await self._unless_ended()) is not None:
            changed.clear()
            devices = _health(health_problems(self._claims.prepared.values(), known))
            if devices != sent or clock.time() >= due:
                yield devices
                sent, due = devices, clock.time() + RESEND_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await changed.wait()
                    await asyncio.sleep(BURST_SECONDS)

    async def _unless_ended(self) -> DevicesView | None:
        """The current devices, after the first discovery; None if `end` was called."""
        known = asyncio.ensure_future(self._source.decided())
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((known, ended), return_when=asyncio.FIRST_COMPLETED)
            return None if self._ended.is_set() else self._source.view
        finally:
            known.cancel()
            ended.cancel()


def _health(found: Mapping[tuple[str, DeviceName], str]) -> health.NodeWatchResourcesResponse:
    """The message for the kubelet; without times, which the kubelet sets itself."""
    return health.NodeWatchResourcesResponse(
        devices=[
            health.DeviceHealth(
                device=health.DeviceIdentifier(pool_name=pool, device_name=device),
                health=health.UNHEALTHY if trouble else health.HEALTHY,
                message=trouble,
                health_check_timeout_seconds=LIMIT_SECONDS,
            )
            for (pool, device), trouble in found.items()
        ]
    )

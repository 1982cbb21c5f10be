"""Write a discovery handler: a name, and an async generator that yields the devices there are.

    from driver.handlers.sdk import Device, Handler, Request, run

    async def discover(request: Request):
        while True:
            yield [Device(line, {"SHELF_PLACE": line}) for line in lines(request.details)]
            await asyncio.sleep(1)

    run(Handler("shelf", discover))

This module does the rest: it serves Akri's contract, and registers with the agent of its node and
again whenever the agent restarts. `docs/write-your-own-handler.md` is the guide.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import grpc.aio

from driver.devices import Device, DeviceSpec, Mount
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.discovery_api.v0 import discovery_pb2_grpc as v0_grpc
from driver.handlers.messages import properties_of, response_of
from driver.handlers.sdk_requests import (
    Handler,
    InvalidDetailsError,
    Place,
    Request,
    TlsFiles,
    place_from,
)
from driver.handlers.tls import server_credentials
from driver.plumbing.kubelet_channels import unix_channel
from driver.plumbing.kubelet_sockets import Access, Socket, SocketError, SocketRun, socket_run

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How soon a new socket of the agent is noticed; also the pause between registrations."""

ANSWER_SECONDS = 5.0
GRACE_SECONDS = 1.0

LONGEST_PAUSE_SECONDS = 10.0
"""The longest pause between two attempts to register."""

_Context = grpc.aio.ServicerContext[Any, Any]


class Service(v0_grpc.DiscoveryHandlerServicer):
    """`v0.DiscoveryHandler`.

    Attributes:
        ended: Set when a conversation has ended.
    """

    def __init__(self, handler: Handler) -> None:
        self.ended = asyncio.Event()
        self._closing = asyncio.Event()
        self._handler = handler

    def close(self) -> None:
        """End all conversations."""
        self._closing.set()

    async def Discover(
        self, request: v0.DiscoverRequest, context: _Context
    ) -> AsyncGenerator[v0.DiscoverResponse, None]:
        asked = Request(request.discovery_details, properties_of(request))
        last: v0.DiscoverResponse | None = None
        try:
            async with aclosing(self._handler.discover(asked)) as lists:
                while (devices := await self._next(lists)) is not None:
                    reported = sorted(devices, key=lambda device: device.id)
                    response = response_of(reported, self._handler.problem())
                    if response != last:
                        yield response
                    last = response
            await self._closing.wait()  # The last list stays in force.
        except InvalidDetailsError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception as error:
            logger.exception("discovery failed handler=%s", self._handler.name)
            await context.abort(grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")
        finally:
            self.ended.set()

    async def _next(self, lists: AsyncGenerator[Sequence[Device], None]) -> Sequence[Device] | None:
        """The next list; None after the last one."""
        coming = asyncio.ensure_future(anext(lists, None))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((coming, closing), return_when=asyncio.FIRST_COMPLETED)
            return coming.result() if coming.done() else None
        finally:
            coming.cancel()
            closing.cancel()
            await asyncio.wait((coming, closing))


class UnixEndpoint:
    """A socket in the folder that handler and agent share; it replaces a predecessor's socket."""

    def __init__(self, path: Path, service: Service) -> None:
        self.address = str(path)
        self.type = v0.RegisterDiscoveryHandlerRequest.UDS
        self._socket = Socket(path, partial(_add, service), access=Access())

    async def open(self) -> None:
        """Listen, as soon as the folder exists and is accessible."""
        reported = ""
        while True:
            try:
                return await self._socket.open()
            except (SocketError, OSError) as error:
                if str(error) != reported:
                    logger.warning("not listening yet: %s", error)
                reported = str(error)
            await asyncio.sleep(LOOK_SECONDS)

    async def keep(self) -> None:
        """Open the socket again if it was removed."""
        if self._socket.is_lost():
            logger.warning("socket is gone, opening it again: %s", self.address)
            await self._socket.open_again()

    async def close(self) -> None:
        await self._socket.close(GRACE_SECONDS)


class NetworkEndpoint:
    """A port, for agents that share no folder with the handler."""

    def __init__(self, address: str, service: Service, tls: TlsFiles | None) -> None:
        self.address = f"{'https' if tls else 'http'}://{address}"
        self.type = v0.RegisterDiscoveryHandlerRequest.NETWORK
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        _add(service, self._server)
        if tls is None:
            self._server.add_insecure_port(address)
        else:
            self._server.add_secure_port(address, server_credentials(tls))

    async def open(self) -> None:
        await self._server.start()

    async def keep(self) -> None:
        """A port stays open."""

    async def close(self) -> None:
        await self._server.stop(GRACE_SECONDS)


def _add(service: Service, server: grpc.aio.Server) -> None:
    v0_grpc.add_DiscoveryHandlerServicer_to_server(service, server)


async def serve(handler: Handler, place: Place) -> NoReturn:
    """Serve a handler until cancelled.

    Raises:
        SocketError: If its socket's path is too long.
        RuntimeError: If it cannot listen at its port.
        OSError: If a file of its certificate cannot be read.
    """
    service = Service(handler)
    endpoint: UnixEndpoint | NetworkEndpoint
    if place.address is None:
        endpoint = UnixEndpoint(place.handler_socket(handler.name), service)
    else:
        endpoint = NetworkEndpoint(place.address, service, place.tls)
    await endpoint.open()
    try:
        request = v0.RegisterDiscoveryHandlerRequest(
            name=handler.name,
            endpoint=endpoint.address,
            endpoint_type=endpoint.type,
            shared=handler.shared,
        )
        registrations = Registrations(place.agent_socket, request)
        while True:
            ended = service.ended.is_set()
            service.ended.clear()
            await registrations.look(anew=ended)
            await endpoint.keep()
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        service.close()
        await endpoint.close()


class Registrations:
    """Registers with each agent that opens the socket."""

    def __init__(self, agent: Path, request: v0.RegisterDiscoveryHandlerRequest) -> None:
        self._agent = agent
        self._request = request
        self._known: SocketRun | None = None
        self._failures = 0
        self._not_before = 0.0

    async def look(self, *, anew: bool) -> None:
        """Register, unless this agent has the registration.

        Args:
            anew: Register in any case.
        """
        if anew:
            self._known = None
        run, now = socket_run(self._agent), asyncio.get_running_loop().time()
        if run is None or run == self._known or now < self._not_before:
            return
        try:
            async with unix_channel(self._agent) as channel:
                stub = v0_grpc.RegistrationStub(channel)
                await stub.RegisterDiscoveryHandler(self._request, timeout=ANSWER_SECONDS)
        except grpc.aio.AioRpcError as error:
            self._fail(now, error)
        else:
            logger.info("registered with the agent: %s", self._request.name)
            self._known, self._failures = run, 0

    def _fail(self, now: float, error: grpc.aio.AioRpcError) -> None:
        level = logging.DEBUG if self._failures else logging.WARNING
        logger.log(level, "not registered: %s: %s", error.code().name, error.details())
        self._failures += 1
        self._not_before = now + min(2.0**self._failures, LONGEST_PAUSE_SECONDS)


__all__ = [
    "Device",
    "DeviceSpec",
    "Handler",
    "InvalidDetailsError",
    "Mount",
    "Place",
    "Request",
    "TlsFiles",
    "place_from",
    "run",
    "serve",
]


def run(handler: Handler, place: Place | None = None) -> None:
    """Serve until SIGTERM or SIGINT."""

    async def until_signal() -> None:
        task = asyncio.current_task()
        assert task is not None, "inside a coroutine"
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await serve(handler, place or place_from(os.environ))

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    with suppress(asyncio.CancelledError):
        asyncio.run(until_signal())

"""A node with discovery handlers around it, on real sockets, and a clock of the test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc.aio

from driver.api import Configuration, ConfigurationName
from driver.devices import Device
from driver.discovery.handlers import Handlers, HandlerSettings
from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.discovery_api.v0 import discovery_pb2_grpc as v0_grpc
from driver.handlers.external_handlers import ExternalHandlers
from driver.handlers.node_sources import NodeSources
from driver.handlers.registration_socket import RegistrationSocket
from driver.handlers.registrations import HandlerState
from driver.handlers.report_limits import DEFAULT_LIMITS, HandlerLimits
from driver.handlers.sdk import serve
from driver.handlers.sdk_requests import Handler, Place, Request, TlsFiles
from driver.instances.handler_discoveries import Discoveries
from driver.instances.inventory import Heard
from driver.plumbing.disk import Folder
from driver.plumbing.disk_dev import HostDev
from tests.driver.builders import NOW, a_configuration

SHELF = ConfigurationName("shelf")

Context = grpc.aio.ServicerContext[Any, Any]


def a_shelf(details: str = "", **fields: Any) -> Configuration:
    return a_configuration("shelf", handler="shelf", discovery_details=details, **fields)


@dataclass
class ANode:
    """Follows its Configurations, and can be waited for."""

    folder: Path
    embedded: Sequence[str] = ()
    now: datetime = NOW
    configurations: list[Configuration] = field(default_factory=lambda: [a_shelf()])
    limits: HandlerLimits = DEFAULT_LIMITS
    tls: TlsFiles | None = None
    dev: HostDev = field(default_factory=HostDev)
    properties: Callable[[Configuration], dict[str, bytes | None] | None] = lambda _: {}

    def __post_init__(self) -> None:
        self._news = asyncio.Event()
        self.external = ExternalHandlers(
            Folder(self.folder / "data"), lambda: self.now, self.limits, self.tls, self.dev
        )
        self.external.recall()
        ours = HandlerSettings(debug_echo_file=self.folder / "none")
        self.sources = NodeSources(Handlers(ours, self.embedded), self.external)

    @property
    def socket(self) -> Path:
        return Place(self.folder).agent_socket

    async def run(self, *, serves: bool = True) -> None:
        async with asyncio.TaskGroup() as tasks:
            self.discoveries = Discoveries(
                self.sources, tasks, self._news.set, lambda c: self.properties(c)
            )
            self.sources.on_change(self._news.set)
            self.follow()
            tasks.create_task(self.external.run())
            if serves:
                socket = RegistrationSocket(self.socket, self.external.register)
                tasks.create_task(socket.serve())

    def follow(self) -> None:
        self.sources.use(self.configurations)
        self.discoveries.follow(self.configurations)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to become true, doing what the driver's passes do meanwhile."""
        async with asyncio.timeout(20):
            while not condition():
                await self._news.wait()
                self._news.clear()
                self.follow()

    async def until_state(self, *states: HandlerState) -> None:
        await self.until(lambda: self.states() == states)

    async def until_devices(self, *ids: str) -> None:
        await self.until(lambda: self.ids() == list(ids))

    def states(self, handler: str = "shelf") -> tuple[HandlerState, ...]:
        return tuple(report.state for report in self.sources.reports(handler, SHELF))

    def problems(self) -> str:
        return " ".join(r.problem or "" for r in self.sources.reports("shelf", SHELF))

    @property
    def heard(self) -> Heard:
        return self.discoveries.heard[SHELF]

    def ids(self) -> list[str] | None:
        heard = self.discoveries.heard.get(SHELF)
        return None if heard is None else [d.id for d in (*heard.local, *heard.shared)]


@asynccontextmanager
async def running(work: Awaitable[Any]) -> AsyncIterator[asyncio.Future[Any]]:
    """Something that runs until the block ends."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@dataclass
class Shelf:
    """A handler written with the SDK, whose devices the test sets."""

    devices: list[Device] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def discover(self, request: Request) -> AsyncGenerator[list[Device], None]:
        self.requests.append(request)
        async with self.changed:
            while True:
                yield self.devices
                await self.changed.wait()

    async def set(self, *ids: str) -> None:
        async with self.changed:
            self.devices = [Device(id_, {"PLACE": id_}) for id_ in ids]
            self.changed.notify_all()

    def serve(self, place: Place, *, shared: bool = False) -> Awaitable[None]:
        return serve(Handler("shelf", self.discover, shared), place)


Respond = Callable[[v0.DiscoverRequest, Context], AsyncIterator[v0.DiscoverResponse]]


class Foreign(v0_grpc.DiscoveryHandlerServicer):
    """A handler that says whatever the test wants it to."""

    def __init__(self, respond: Respond) -> None:
        self._respond = respond

    async def Discover(
        self, request: v0.DiscoverRequest, context: Context
    ) -> AsyncIterator[v0.DiscoverResponse]:
        async for response in self._respond(request, context):
            yield response


@asynccontextmanager
async def foreign(path: Path, respond: Respond) -> AsyncIterator[None]:
    server = grpc.aio.server()
    v0_grpc.add_DiscoveryHandlerServicer_to_server(Foreign(respond), server)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


async def register(agent: Path, endpoint: str, **fields: Any) -> None:
    """Register as any program does that knows the contract."""
    request = v0.RegisterDiscoveryHandlerRequest(**{"name": "shelf", **fields}, endpoint=endpoint)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
    options += [("grpc.min_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)]
    async with grpc.aio.insecure_channel(f"unix:{agent}", options=options) as channel:
        stub = v0_grpc.RegistrationStub(channel)
        await stub.RegisterDiscoveryHandler(request, wait_for_ready=True, timeout=10)


def answer(*devices: v0.Device) -> v0.DiscoverResponse:
    return v0.DiscoverResponse(devices=devices)


def devices(ids: Iterable[str]) -> tuple[v0.Device, ...]:
    return tuple(v0.Device(id=id_) for id_ in ids)

"""A fake of the kubelet's device manager: the side of it that speaks with device plugins.

It is for failures that a real kubelet cannot be made to have. What it copies, from
k8s.io/kubernetes v1.33.13 `pkg/kubelet/cm/devicemanager`: all sockets of the folder are removed at
the start; Register dials the endpoint and asks for its options before it answers; and when any
stream of a resource ends, the client that registered last is disconnected, whosever stream it was.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc

_Context = grpc.aio.ServicerContext[Any, Any]


@dataclass
class Client:
    """A connection to one endpoint."""

    channel: grpc.aio.Channel
    plugin: v1beta1_grpc.DevicePluginAsyncStub
    options: v1beta1.DevicePluginOptions
    lists: list[dict[str, bool]] = field(default_factory=list)
    topology: dict[str, list[int]] = field(default_factory=dict)
    stream: asyncio.Task[None] | None = None


@dataclass
class FakeDeviceManager(v1beta1_grpc.RegistrationServicer):
    """Serves `<folder>/kubelet.sock` for as long as the block runs.

    Attributes:
        refuse: Resources whose registration is refused.
        stuck: Resources whose registration gets no answer.
        deaf: Streams are not read beyond the first list.
        registered: Each registration that was accepted, as it was asked for.
        clients: The connections of each resource, the newest last.
        capacity: Devices by resource, each with its health; all unhealthy when nobody serves.
        asked: How many registrations there were, those that were refused included.
        heard: Is called whenever something changed.
    """

    folder: Path
    refuse: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    deaf: bool = False
    registered: list[v1beta1.RegisterRequest] = field(default_factory=list)
    clients: dict[str, list[Client]] = field(default_factory=dict)
    capacity: dict[str, dict[str, bool]] = field(default_factory=dict)
    asked: int = 0
    heard: Callable[[], object] = lambda: None
    _current: dict[str, Client] = field(default_factory=dict)
    """Whom the kubelet hangs up on when a stream of the resource ends."""
    _asked: dict[str, Client] = field(default_factory=dict)
    """Whom it asks; `endpoints` of its device manager."""
    _server: grpc.aio.Server | None = None
    _happened: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def socket(self) -> Path:
        return self.folder / "kubelet.sock"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.iterdir():
            if path.is_socket():
                path.unlink()
        self._server = grpc.aio.server()
        v1beta1_grpc.add_RegistrationServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()

    async def stop(self) -> None:
        """As on SIGTERM."""
        if self._server is not None:
            await self._server.stop(None)
            self._server = None
        self._current.clear()
        self._asked.clear()
        clients = [client for some in self.clients.values() for client in some]
        self.clients.clear()
        self.capacity.clear()
        for client in clients:
            await client.channel.close()
            if client.stream:
                client.stream.cancel()
                await asyncio.wait((client.stream,))

    async def kill(self) -> None:
        """As by SIGKILL: the socket stays, and nobody listens there."""
        await self.stop()
        leave_dead_socket(self.socket)

    async def until(self, what: Callable[[], object]) -> None:
        """Wait until that is so."""
        async with asyncio.timeout(10), self._happened:
            await self._happened.wait_for(what)

    async def until_listed(self, resource: str, **devices: bool) -> None:
        """Wait until the resource has these devices, with `_` for `-` in their ids."""
        wanted = {name.replace("_", "-"): healthy for name, healthy in devices.items()}
        await self.until(lambda: self.capacity.get(resource) == wanted)

    async def allocate(self, resource: str, *containers: Sequence[str]) -> v1beta1.AllocateResponse:
        request = v1beta1.AllocateRequest(
            container_requests=[v1beta1.ContainerAllocateRequest(devices_ids=c) for c in containers]
        )
        return await self._asked[resource].plugin.Allocate(request)

    async def preferred(
        self, resource: str, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> v1beta1.PreferredAllocationResponse:
        request = v1beta1.ContainerPreferredAllocationRequest(
            available_deviceIDs=available,
            must_include_deviceIDs=must_include,
            allocation_size=size,
        )
        return await self._asked[resource].plugin.GetPreferredAllocation(
            v1beta1.PreferredAllocationRequest(container_requests=[request])
        )

    async def disconnect(self, resource: str) -> None:
        """Hang up on the client that registered last."""
        await self._disconnect(resource, self._current[resource])

    async def Register(  # noqa: N802  (the kubelet's name)
        self, request: v1beta1.RegisterRequest, context: _Context
    ) -> v1beta1.Empty:
        name = request.resource_name
        self.asked += 1
        if name in self.stuck:
            await asyncio.Event().wait()
        if name in self.refuse:
            await context.abort(grpc.StatusCode.UNKNOWN, "invalid resource name")
        # Each client has a connection of its own, as the kubelet's do.
        own = [("grpc.use_local_subchannel_pool", 1)]
        target = f"unix:{self.folder / request.endpoint}"
        channel = grpc.aio.insecure_channel(target, options=own)
        plugin: v1beta1_grpc.DevicePluginAsyncStub = v1beta1_grpc.DevicePluginStub(channel)
        try:
            options = await plugin.GetDevicePluginOptions(v1beta1.Empty())
        except grpc.aio.AioRpcError as error:
            # The kubelet forgets whom it would have hung up on, and goes on with whom it asks.
            self._current.pop(name, None)
            await channel.close()
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed to get options: {error.code()}")
        client = Client(channel, plugin, options)
        self._current[name] = self._asked[name] = client
        self.clients.setdefault(name, []).append(client)
        self.registered.append(request)
        client.stream = asyncio.create_task(self._run(name, client))
        await self._tell()
        return v1beta1.Empty()

    async def _run(self, resource: str, client: Client) -> None:
        with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
            async for answer in client.plugin.ListAndWatch(v1beta1.Empty()):
                devices = {device.ID: device.health == "Healthy" for device in answer.devices}
                client.lists.append(devices)
                client.topology = {d.ID: [n.ID for n in d.topology.nodes] for d in answer.devices}
                self.capacity[resource] = devices
                await self._tell()
                if self.deaf:
                    await asyncio.Event().wait()
        if client in self.clients.get(resource, ()):
            self.clients[resource].remove(client)
        if current := self._current.get(resource):
            await self._disconnect(resource, current)
        await self._tell()

    async def _disconnect(self, resource: str, client: Client) -> None:
        del self._current[resource]
        self.capacity[resource] = dict.fromkeys(self.capacity.get(resource, ()), False)
        await client.channel.close()
        await self._tell()

    async def _tell(self) -> None:
        self.heard()
        async with self._happened:
            self._happened.notify_all()


def leave_dead_socket(path: Path) -> None:
    """What a killed process leaves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))

"""A fake kubelet: the part of the real one that speaks with DRA plugins, over real sockets.

It is for failures that a real kubelet cannot be made to have. What it copies, from
k8s.io/kubernetes v1.36.3: `pkg/kubelet/pluginmanager` (which sockets count, deadlines, order of
calls) and `pkg/kubelet/cm/dra/plugin` (which service is chosen, which plugin is called).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc.aio
from google.protobuf.message import Message

from driver.kubelet_api.dra.v1 import api_pb2 as v1
from driver.kubelet_api.dra.v1 import api_pb2_grpc as v1_grpc
from driver.kubelet_api.dra_health.v1 import api_pb2 as health
from driver.kubelet_api.dra_health.v1 import api_pb2_grpc as health_grpc
from driver.kubelet_api.pluginregistration.v1 import api_pb2 as registration
from driver.kubelet_api.pluginregistration.v1 import api_pb2_grpc as registration_grpc
from driver.plumbing.kubelet_channels import unix_channel
from driver.preparing.files.prepared import ClaimReference
from tests.contracts import DRA_V1BETA1, HEALTH_V1ALPHA1, methods

GET_INFO_SECONDS = 1.0
NOTIFY_SECONDS = 5.0
CALL_SECONDS = 45.0
HAPPENS_SECONDS = 30.0
RECONCILE_SECONDS = 0.02
"""A second in the real one."""

SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin")


@dataclass
class RegisteredPlugin:
    """A plugin that said what it is and was told that it is accepted."""

    socket: Path
    made: object
    info: registration.PluginInfo
    service: str
    channel: grpc.aio.Channel


@dataclass
class FakeKubelet:
    """Watches `<root>/plugins_registry` for as long as the block runs.

    Attributes:
        services: What this version of the kubelet supports.
        refuse: Tell plugins that they are not accepted, for this reason.
        history: What happened: `registered`, `refused` or `gone`, and the socket's name.
    """

    root: Path
    services: tuple[str, ...] = SERVICES
    refuse: str = ""
    plugins: list[RegisteredPlugin] = field(default_factory=list)
    history: list[tuple[str, str]] = field(default_factory=list)
    _seen: dict[Path, object] = field(default_factory=dict)
    _happened: asyncio.Condition = field(default_factory=asyncio.Condition)
    _task: asyncio.Task[None] | None = None

    @property
    def registry(self) -> Path:
        return self.root / "plugins_registry"

    async def __aenter__(self) -> Self:
        self.registry.mkdir(parents=True, exist_ok=True)
        self._task = asyncio.create_task(self._reconcile_for_ever())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        for plugin in self.plugins:
            await plugin.channel.close()

    async def until(self, event: str, times: int = 1) -> None:
        """Wait until something happened so often."""
        async with asyncio.timeout(HAPPENS_SECONDS), self._happened:
            await self._happened.wait_for(
                lambda: [kind for kind, _ in self.history].count(event) >= times
            )

    def is_current(self) -> bool:
        """Whether all plugins are those whose sockets are there now, and one is."""
        return self._sockets() == {p.socket: p.made for p in self.plugins} != {}

    async def until_current(self) -> None:
        """Wait for that."""
        async with asyncio.timeout(HAPPENS_SECONDS), self._happened:
            await self._happened.wait_for(self.is_current)

    async def prepare(
        self,
        *claims: ClaimReference,
        seconds: float = CALL_SECONDS,
        plugin: RegisteredPlugin | None = None,
    ) -> Mapping[str, v1.NodePrepareResourceResponse]:
        """NodePrepareResources, by the service that was chosen; of the newest plugin."""
        plugin = plugin or self.plugins[-1]
        request = v1.NodePrepareResourcesRequest(claims=map(_message, claims))
        if plugin.service == "v1.DRAPlugin":
            stub = v1_grpc.DRAPluginStub(plugin.channel)
            return (await stub.NodePrepareResources(request, timeout=seconds)).claims
        answer = await _as_v1beta1(plugin, "NodePrepareResources", request, seconds)
        return v1.NodePrepareResourcesResponse.FromString(answer).claims

    async def unprepare(
        self, *claims: ClaimReference, seconds: float = CALL_SECONDS
    ) -> Mapping[str, v1.NodeUnprepareResourceResponse]:
        """NodeUnprepareResources, by the service that was chosen."""
        plugin = self.plugins[-1]
        request = v1.NodeUnprepareResourcesRequest(claims=map(_message, claims))
        if plugin.service == "v1.DRAPlugin":
            stub = v1_grpc.DRAPluginStub(plugin.channel)
            return (await stub.NodeUnprepareResources(request, timeout=seconds)).claims
        answer = await _as_v1beta1(plugin, "NodeUnprepareResources", request, seconds)
        return v1.NodeUnprepareResourcesResponse.FromString(answer).claims

    @asynccontextmanager
    async def health(
        self, version: str = "v1alpha1"
    ) -> AsyncIterator[AsyncIterator[health.NodeWatchResourcesResponse]]:
        """NodeWatchResources; by default as the kubelet of 1.36 asks."""
        channel = self.plugins[-1].channel
        call: Any
        if version == "v1":
            stub = health_grpc.DRAResourceHealthStub(channel)
            call = stub.NodeWatchResources(health.NodeWatchResourcesRequest())
        else:
            method = methods(HEALTH_V1ALPHA1)["NodeWatchResources"]
            call = method.on(channel)(method.request())
        try:
            yield (
                health.NodeWatchResourcesResponse.FromString(answer.SerializeToString())
                async for answer in call
            )
        finally:
            call.cancel()

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._reconcile()
            await asyncio.sleep(RECONCILE_SECONDS)

    async def _reconcile(self) -> None:
        sockets = self._sockets()
        for plugin in list(self.plugins):
            if sockets.get(plugin.socket) != plugin.made:
                self.plugins.remove(plugin)
                await plugin.channel.close()
                await self._record("gone", plugin.socket)
        for path, made in sockets.items():
            if self._seen.get(path) != made:
                with suppress(grpc.aio.AioRpcError):  # the real one tries again later, too
                    await self._register(path, made)
                    self._seen[path] = made

    def _sockets(self) -> dict[Path, object]:
        """By path, when each was made; the inode alone is soon used again."""
        with suppress(FileNotFoundError):
            return {
                path: (path.stat().st_ino, path.stat().st_ctime_ns)
                for path in sorted(self.registry.iterdir())
                if path.is_socket() and not path.name.startswith(".")
            }
        return {}

    async def _register(self, path: Path, made: object) -> None:
        async with unix_channel(path) as channel:
            stub = registration_grpc.RegistrationStub(channel)
            info = await stub.GetInfo(registration.InfoRequest(), timeout=GET_INFO_SECONDS)
            service = next((s for s in info.supported_versions if s in self.services), "")
            refused = self.refuse or ("" if service else "none of its services is supported")
            if not refused:
                dra = unix_channel(info.endpoint)
                self.plugins.append(RegisteredPlugin(path, made, info, service, dra))
            await stub.NotifyRegistrationStatus(
                registration.RegistrationStatus(plugin_registered=not refused, error=refused),
                timeout=NOTIFY_SECONDS,
            )
            await self._record("refused" if refused else "registered", path)

    async def _record(self, event: str, socket: Path) -> None:
        async with self._happened:
            self.history.append((event, socket.name))
            self._happened.notify_all()


async def _as_v1beta1(
    plugin: RegisteredPlugin, name: str, request: Message, seconds: float
) -> bytes:
    """The answer to a request of v1, asked in the messages of v1beta1."""
    method = methods(DRA_V1BETA1)[name]
    asked = method.request.FromString(request.SerializeToString())
    answer: Message = await method.on(plugin.channel)(asked, timeout=seconds)
    return answer.SerializeToString()


def _message(claim: ClaimReference) -> v1.Claim:
    return v1.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid)

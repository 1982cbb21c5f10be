"""The endpoint of the device plugin of one resource: its socket, and its registration.

The kubelet does not poll plugins, and forgets all of them when it ends. The only visible sign of a
registration is that the kubelet watches the list of the plugin. So a plugin without a stream
registers again, after a delay: when any stream of a resource ends, even that of a process replaced
long ago, the kubelet drops the newest endpoint of the resource, and would drop one that registers
too early. A plugin with a stream does not register again, since the kubelet would then watch it
twice.

So the end of a predecessor would drop the endpoints of this process, and pods that are admitted in
that moment would fail. But after a failed registration the kubelet forgets which endpoint to drop,
and goes on with the last one that it reached. So each registration is followed by one that this
process refuses. Once the predecessor has ended, this process ends its own streams, which then drops
nothing either, and registers again. (`runClient` and `connectClient` of the kubelet's device
manager are the same in 1.33 to 1.36.)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import cast

import grpc
import grpc.aio

from driver.device_plugin.kubelet.plugin_service import (
    AnswersKubelet,
    PluginService,
)
from driver.device_plugin.kubelet.registrations import KubeletSocket, Pace, Registration
from driver.device_plugin.slots.allocation import Plugin
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc
from driver.names import short_hash
from driver.plumbing.kubelet_sockets import (
    Socket,
    SocketError,
    is_dead,
)

logger = logging.getLogger(__name__)

GRACE_SECONDS = 5.0
"""How long running calls may take when their plugin ends."""

LARGEST_MESSAGE_BYTES = 4 << 20
"""Room for some 50,000 ids: a GetPreferredAllocation names all free devices of a resource."""


class Endpoint:
    """The device plugin of one resource. It opens its socket at its first registration.

    Attributes:
        service: The gRPC service.
        watched: Called whenever a stream of the kubelet begins.
        unwatched: Called whenever a stream of the kubelet ends.
        is_introduced: Whether a registration was attempted, with success or not.
    """

    def __init__(
        self,
        folder: Path,
        plugin: Plugin,
        answers: AnswersKubelet,
        pace: Pace,
        has_predecessor: Callable[[], bool],
    ) -> None:
        """Create.

        Args:
            folder: The folder of sockets, below the kubelet's, with a name for each resource.
            plugin: The plugin that offers the devices.
            answers: Answers calls about the devices.
            pace: Times of registrations.
            has_predecessor: Whether another process may still serve this resource.
        """
        self._resource = str(plugin)
        self._path = folder / f"{short_hash(self._resource)}.sock"
        self._name = f"{folder.name}/{self._path.name}"
        self._pace = pace
        self._has_predecessor = has_predecessor
        self._outlasts = self.is_introduced = False
        self._registration = Registration(pace, asyncio.get_running_loop().time)
        self.service = PluginService(plugin, answers, self._watched)
        self.watched: Callable[[], object] = lambda: None
        self.unwatched: Callable[[], object] = lambda: None
        self._socket: Socket | None = None
        self._introduction: asyncio.Task[None] | None = None

    def is_due(self, kubelet: KubeletSocket) -> bool:
        """Whether to register this plugin with the kubelet now."""
        busy = self._introduction and not self._introduction.done()
        return not busy and self._registration.is_due(kubelet.run)

    def introduce(self, kubelet: KubeletSocket, limiter: asyncio.Semaphore) -> None:
        """Start a registration with the kubelet; the semaphore limits concurrent ones."""
        self._introduction = asyncio.create_task(self._introduce(kubelet, limiter))

    async def close(self) -> None:
        """Complete running calls within `GRACE_SECONDS`, and stop."""
        if self._introduction:
            self._introduction.cancel()
            await asyncio.wait((self._introduction,))
        await self.service.finish(GRACE_SECONDS)
        self.service.stop()
        if self._socket:
            await self._socket.close(GRACE_SECONDS)

    async def _introduce(self, kubelet: KubeletSocket, limiter: asyncio.Semaphore) -> None:
        async with limiter:
            kubelet.look()
            self._outlasts = False
            self._registration.begin(kubelet.run)
            try:
                await self._open()
                await kubelet.register(self._resource, self._name, self._pace.answer_seconds)
                if self._has_predecessor():
                    await self._outlast(kubelet)
            except Exception as error:  # noqa: BLE001  (one resource's failure is its own)
                self._failed(error)
            else:
                self._registration.accept()
                logger.info("Registered %s with the kubelet", self._resource)
            self.is_introduced = True

    async def _outlast(self, kubelet: KubeletSocket) -> None:
        """Make the kubelet forget the endpoint that it drops when the predecessor ends."""
        self._outlasts = self.service.is_reluctant = True
        try:
            with suppress(grpc.aio.AioRpcError):
                await kubelet.register(self._resource, self._name, self._pace.answer_seconds)
        finally:
            self.service.is_reluctant = False

    def predecessor_ended(self) -> None:
        """End the streams, so that the plugin registers again and the kubelet tracks it."""
        if self._outlasts:
            self._outlasts = False
            self.service.end_streams()

    async def _open(self) -> None:
        """Open the socket, or open it again if it is gone.

        The path of a predecessor is taken over. A running successor keeps the path.
        """
        if self._socket is None:
            socket = Socket(self._path, self._add_service, LARGEST_MESSAGE_BYTES)
            await socket.open()
            self._socket = socket
        elif not self._socket.is_own():
            if not self._socket.is_lost() and not is_dead(self._path):
                raise SocketError(f"another process serves {self._path} now")
            logger.warning("Socket %s is gone; opening it again", self._path)
            await self._socket.open_again()

    def _add_service(self, server: grpc.aio.Server) -> None:
        lean = cast(grpc.aio.Server, _LeanServer(server))
        v1beta1_grpc.add_DevicePluginServicer_to_server(self.service, lean)

    def _watched(self) -> Callable[[], None]:
        end = self._registration.open_stream()
        self.watched()

        def ended() -> None:
            end()
            self.unwatched()

        return ended

    def _failed(self, error: Exception) -> None:
        first = self._registration.failures == 0
        seconds = self._registration.fail()
        logger.log(
            logging.WARNING if first else logging.DEBUG,
            "%s is not registered with the kubelet: %s; next attempt in %.1f s",
            self._resource,
            _text(error),
            seconds,
        )


class _LeanServer:
    """A server that registers the generic handlers of a service only.

    Registering each method separately is faster at lookup, but costs 19 KiB for each server.
    """

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self._server.add_generic_rpc_handlers(tuple(handlers))

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """Ignore them."""


def _text(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"

"""The gRPC service of one resource, `v1beta1.DevicePlugin`.

    kubelet ──ListAndWatch──► the newest list at once, and again whenever it changes
            ──GetPreferredAllocation, Allocate──► AnswersKubelet

This module translates between messages and values, and decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Protocol

import grpc
import grpc.aio

from driver.device_plugin.containers.responses import ContainerResponse, Refused
from driver.device_plugin.slots.allocation import Plugin
from driver.device_plugin.slots.lists import PluginDevice, healthy_devices
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc
from driver.plumbing.kubelet_sockets import finish

logger = logging.getLogger(__name__)

_Context = grpc.aio.ServicerContext[Any, Any]
_Answer = tuple[ContainerResponse, ...] | Refused | None


class AnswersKubelet(Protocol):
    """Answers calls about the devices of resources."""

    async def allocate(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        """What each container gets for these ids. It is not cancelled with the kubelet's call."""

    def preferred(
        self, plugin: Plugin, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """The devices that one container should get."""


class FollowsLists(Protocol):
    """Follows the lists that the kubelet was sent, by resource; no call blocks."""

    def opened(self, resource: str) -> None:
        """The kubelet began to watch a list."""

    def sent(self, resource: str, healthy: int) -> None:
        """A list with this number of healthy devices was sent to the kubelet."""

    def closed(self, resource: str) -> None:
        """The kubelet ceased to watch a list."""


class PluginService(v1beta1_grpc.DevicePluginServicer):
    """The service of one resource.

    Attributes:
        plugin: The plugin of the listed devices; another one of the same resource may replace it.
        sent: Called with the number of healthy devices of each list that was sent.
        is_reluctant: Whether requests for options are refused, so that a registration fails.
    """

    def __init__(
        self, plugin: Plugin, answers: AnswersKubelet, watched: Callable[[], Callable[[], None]]
    ) -> None:
        """Create; `watched` is called when a stream opens, and its result when the stream ends."""
        self.plugin = plugin
        self._answers = answers
        self._watched = watched
        self.sent: Callable[[int], object] = lambda _: None
        self._devices: tuple[PluginDevice, ...] = ()
        self._news = asyncio.Event()
        self.is_reluctant = self._ended = self._stopped = False
        self._streams = object()
        self._running: set[asyncio.Task[_Answer]] = set()

    def offer(self, plugin: Plugin, devices: tuple[PluginDevice, ...]) -> None:
        """List these devices; a changed list is sent on all streams."""
        self.plugin = plugin
        if devices is not self._devices and devices != self._devices:
            self._devices = devices
            self.resend()

    def resend(self) -> None:
        """Send the list on all streams. A slow stream gets the newest list only."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end(self) -> None:
        """Send an empty list on all streams, since the resource is gone. Call `stop` afterwards."""
        self._ended = True
        self._devices = ()
        self.resend()

    def stop(self) -> None:
        """End all streams.

        When a stream ends, the kubelet aborts running calls of this resource.
        """
        self._stopped = True
        self.resend()

    def end_streams(self) -> None:
        """End the current streams; new ones may begin."""
        self._streams = object()
        self.resend()

    async def finish(self, seconds: float) -> None:
        """Wait for running Allocates, for this time at most."""
        await finish(self._running, seconds)

    async def GetDevicePluginOptions(
        self, request: v1beta1.Empty, context: _Context
    ) -> v1beta1.DevicePluginOptions:
        if self.is_reluctant:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "a predecessor is terminating")
        return plugin_options()

    async def ListAndWatch(
        self, request: v1beta1.Empty, context: _Context
    ) -> AsyncIterator[v1beta1.ListAndWatchResponse]:
        # Not in a `finally`: in a generator without a reader it runs at garbage collection only.
        unwatched = self._watched()
        context.add_done_callback(lambda _: unwatched())  # type: ignore[arg-type]
        sent_end, streams = False, self._streams
        while streams is self._streams and not (self._stopped and sent_end == self._ended):
            # Read before the list is sent, so that a change meanwhile is not missed.
            news, sent_end, devices = self._news, self._ended, self._devices
            yield v1beta1.ListAndWatchResponse(devices=map(_device, devices))
            self.sent(healthy_devices(devices))
            if not self._stopped:
                await news.wait()

    async def GetPreferredAllocation(
        self, request: v1beta1.PreferredAllocationRequest, context: _Context
    ) -> v1beta1.PreferredAllocationResponse:
        return v1beta1.PreferredAllocationResponse(
            container_responses=[
                v1beta1.ContainerPreferredAllocationResponse(deviceIDs=self._preferred(container))
                for container in request.container_requests
            ]
        )

    async def Allocate(
        self, request: v1beta1.AllocateRequest, context: _Context
    ) -> v1beta1.AllocateResponse:
        containers = [tuple(c.devices_ids) for c in request.container_requests]
        task = asyncio.create_task(self._allocated(containers))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.wait((task,))  # Does not cancel the task, which may be between two writes.
        answer = task.result()
        if answer is None:
            await context.abort(grpc.StatusCode.INTERNAL, f"{self.plugin}: {_FAILED}")
        if isinstance(answer, Refused):
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, answer.sentence)
        return v1beta1.AllocateResponse(container_responses=map(_container_response, answer))

    async def PreStartContainer(
        self, request: v1beta1.PreStartContainerRequest, context: _Context
    ) -> v1beta1.PreStartContainerResponse:
        return v1beta1.PreStartContainerResponse()

    async def _allocated(self, containers: Sequence[Sequence[str]]) -> _Answer:
        """The answer; None after an unexpected error, which is logged."""
        try:
            return await self._answers.allocate(self.plugin, containers)
        except Exception:
            logger.exception("Allocate of %s %s failed", self.plugin, containers)
            return None

    def _preferred(self, wanted: v1beta1.ContainerPreferredAllocationRequest) -> Iterable[str]:
        """The preferred ids; none after an error, so that the kubelet chooses by itself."""
        available, must_include = wanted.available_deviceIDs, wanted.must_include_deviceIDs
        try:
            return self._answers.preferred(
                self.plugin, tuple(available), tuple(must_include), wanted.allocation_size
            )
        except Exception:
            logger.exception("GetPreferredAllocation of %s failed", self.plugin)
            return ()


_FAILED = "internal error of the driver, see its log"


def plugin_options() -> v1beta1.DevicePluginOptions:
    """The options of the plugin, sent at registration and on request."""
    return v1beta1.DevicePluginOptions(get_preferred_allocation_available=True)


def _device(device: PluginDevice) -> v1beta1.Device:
    sent = v1beta1.Device(ID=device.id, health="Healthy" if device.healthy else "Unhealthy")
    if device.numa_node is not None:
        sent.topology.nodes.add(ID=device.numa_node)
    return sent


def _container_response(response: ContainerResponse) -> v1beta1.ContainerAllocateResponse:
    return v1beta1.ContainerAllocateResponse(
        envs=response.environment,
        mounts=[
            v1beta1.Mount(
                container_path=mount.container_path,
                host_path=mount.host_path,
                read_only=mount.read_only,
            )
            for mount in response.mounts
        ],
        devices=[
            v1beta1.DeviceSpec(
                container_path=spec.container_path,
                host_path=spec.host_path,
                permissions=spec.permissions,
            )
            for spec in response.device_specs
        ],
        cdi_devices=[v1beta1.CDIDevice(name=name) for name in response.cdi_names],
    )

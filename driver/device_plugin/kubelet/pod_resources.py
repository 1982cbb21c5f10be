"""What the kubelet says which container has, `v1.PodResourcesLister`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc.aio
from google.protobuf.message import DecodeError

from driver.device_ids import RESOURCE_PREFIX, DeviceKey
from driver.instances.slots.node_pods import ListedDevice, Listing, PodName
from driver.instances.slots.slots import Moment
from driver.kubelet_api.podresources.v1 import api_pb2 as v1
from driver.plumbing.unix_channels import unix_channel

logger = logging.getLogger(__name__)

SOCKET = "kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"

LIST_SECONDS = 5.0
"""For one answer; the kubelet has it in milliseconds, unless it is stuck."""

LARGEST_MESSAGE_BYTES = 64 << 20
"""The answer names CPUs and memory of every container of the node too."""


class PartialListingError(Exception):
    """Raised when a listing lacks something without which it is no evidence."""


class PodResources:
    """The kubelet's pod-resources listing.

    Attributes:
        problem: Why the last listing was not had; empty if it was.
    """

    def __init__(
        self, folder: Path, clock: Callable[[], Moment], seconds: float = LIST_SECONDS
    ) -> None:
        """Create.

        Args:
            folder: The kubelet's `pod-resources`.
            clock: Which tells when the kubelet was asked.
            seconds: How long to wait for an answer.
        """
        self.problem = "the kubelet was not asked yet"
        self._socket = folder / SOCKET
        self._clock = clock
        self._seconds = seconds

    async def listing(self) -> Listing | None:
        """Ask the kubelet; None if there is no answer, or none that is whole."""
        asked = self._clock()
        try:
            devices = frozenset(_devices(v1.ListPodResourcesResponse.FromString(await self._ask())))
        except (grpc.aio.AioRpcError, DecodeError, PartialListingError) as error:
            self.problem = _text(error)
            logger.warning("No listing from the kubelet's %s: %s", self._socket, self.problem)
            return None
        self.problem = ""
        return Listing(asked, devices)

    async def _ask(self) -> bytes:
        """The answer as it came; on a connection of its own, which needs no waiting after loss."""
        options = [("grpc.max_receive_message_length", LARGEST_MESSAGE_BYTES)]
        async with unix_channel(self._socket, options) as channel:
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(METHOD)
            request = v1.ListPodResourcesRequest().SerializeToString()
            return await method(request, timeout=self._seconds)


def _text(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return "its answer is unreadable" if isinstance(error, DecodeError) else str(error)


def _devices(answer: v1.ListPodResourcesResponse) -> Iterator[ListedDevice]:
    for pod in answer.pod_resources:
        name = PodName(_given(pod.namespace, "a pod's namespace"), _given(pod.name, "a pod's name"))
        for container in pod.containers:
            where = f"of pod {name}"
            container_name = _given(container.name, f"the name of a container {where}")
            for device in container.devices:
                resource = _given(device.resource_name, f"the resource of a device {where}")
                if resource.startswith(RESOURCE_PREFIX):
                    for key in _keys(device, where):
                        yield ListedDevice(name, container_name, key)


def _keys(device: v1.ContainerDevices, where: str) -> Iterator[DeviceKey]:
    ids = [_given(text, f"an id of {device.resource_name} {where}") for text in device.device_ids]
    if not ids:
        raise PartialListingError(f"its answer lacks the ids of {device.resource_name} {where}")
    return (DeviceKey(device.resource_name, text) for text in ids)


def _given(text: str, what: str) -> str:
    if not text:
        raise PartialListingError(f"its answer lacks {what}")
    return text

"""Reads the devices of containers from the kubelet's pod-resources: a complete listing, or none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc.aio
from google.protobuf.message import DecodeError

from driver.device_ids import RESOURCE_PREFIX, DeviceKey
from driver.instances.slots.node_pods import ListedDevice, Listing, PodName
from driver.instances.slots.slot_writes import Moment
from driver.kubelet_api.podresources.v1 import api_pb2 as v1
from driver.plumbing.kubelet_channels import list_pod_resources

logger = logging.getLogger(__name__)

SOCKET = "kubelet.sock"


class PartialListingError(Exception):
    """Raised if a listing is incomplete, so that it is no evidence."""


async def list_devices(folder: Path, clock: Callable[[], Moment]) -> Listing | None:
    """List the devices of containers; None if the kubelet does not answer, or not completely.

    Args:
        folder: The kubelet's folder `pod-resources`.
        clock: Returns the moment of the request, in seconds that never step back.
    """
    asked, path = clock(), folder / SOCKET
    try:
        answer = v1.ListPodResourcesResponse.FromString(await list_pod_resources(path))
        return Listing(asked, frozenset(_devices(answer)))
    except (grpc.aio.AioRpcError, DecodeError, PartialListingError) as error:
        logger.warning("No listing from the kubelet's %s: %s", path, _text(error))
        return None


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

"""The pods of a node: their requests to device plugins, and the devices that the kubelet lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driver.device_ids import RESOURCE_PREFIX, DeviceKey
from driver.instances.slots.slot_writes import Moment
from driver.pod_requests import effective_requests
from kube.shapes.pods import (
    ENDED,
    NO_CLAIM,
    NO_RESOURCES,
    NO_SPEC,
    NO_STATUS,
    Container,
    Pod,
    Status,
)
from kube.shapes.reading import JsonObject, read_as

_QUANTITY = re.compile(r"(\d+)(k?)")
_NEVER_COVERED = 1 << 62


@dataclass(frozen=True, slots=True)
class PodName:
    """A pod as the kubelet's listing names it, without its UID."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod that is bound to the node.

    Attributes:
        finished: Whether its phase is Succeeded or Failed, so that none of its containers runs.
        requests: The most devices that it holds concurrently, for each `akri.sh/*` resource.
    """

    name: PodName
    uid: str
    finished: bool
    requests: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodePods:
    """The node's pods: all that were bound to it before a moment, and still exist.

    Attributes:
        as_of: The moment before a consistent read was sent. A watch lags, and is no such read.
        pods: The pods.
    """

    as_of: Moment
    pods: tuple[NodePod, ...]


@dataclass(frozen=True, slots=True)
class ListedDevice:
    """One device in the kubelet's pod-resources listing."""

    pod: PodName
    container: str
    device: DeviceKey


@dataclass(frozen=True, slots=True)
class Listing:
    """The `akri.sh/*` resources of the kubelet's pod-resources listing.

    Attributes:
        asked: The moment before the request was sent.
        devices: The devices.
    """

    asked: Moment
    devices: frozenset[ListedDevice]


def node_pod(obj: JsonObject | Pod) -> NodePod:
    """Parse a Pod; raises UnreadableError."""
    pod = read_as(Pod, obj)
    spec, status = pod.spec or NO_SPEC, pod.status or NO_STATUS
    claimed = _claimed(status)
    return NodePod(
        name=PodName(pod.metadata.namespace or "", pod.metadata.name),
        uid=pod.metadata.uid,
        finished=status.phase in ENDED,
        requests=effective_requests(
            (
                (_requests(container, claimed), container.restart_policy == "Always")
                for container in spec.init_containers or ()
            ),
            (_requests(container, claimed) for container in spec.containers or ()),
        ),
    )


def _claimed(status: Status) -> frozenset[tuple[str | None, str | None]]:
    """Container and resource of requests that Dynamic Resource Allocation serves (KEP-5004)."""
    mappings = (status.extended_resource_claim_status or NO_CLAIM).request_mappings or ()
    return frozenset((each.container_name, each.resource_name) for each in mappings)


def _requests(
    container: Container, claimed: frozenset[tuple[str | None, str | None]]
) -> dict[str, int]:
    resources = container.resources or NO_RESOURCES
    wanted = {**(resources.requests or {}), **(resources.limits or {})}
    return {
        name: _amount(quantity)
        for name, quantity in wanted.items()
        if name.startswith(RESOURCE_PREFIX) and (container.name, name) not in claimed
    }


def _amount(quantity: object) -> int:
    """A whole quantity; an unreadable one counts as more than any listing covers."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return _NEVER_COVERED
    return int(match[1]) * (1000 if match[2] else 1)


def uncovered(pods: Iterable[NodePod], listing: Listing) -> dict[str, PodName]:
    """Resources of which some pod may hold devices that the listing does not name, with such a pod.

    The kubelet lists a device only after the answer to Allocate, and never lists devices of a
    regular init container. After its own restart it may list no pod at all.
    """
    listed = Counter(
        (d.pod, d.device.resource) for d in {(e.pod, e.device): e for e in listing.devices}.values()
    )
    found: dict[str, PodName] = {}
    for pod in sorted(pods, key=lambda p: (p.name.namespace, p.name.name)):
        for resource, amount in pod.requests.items():
            if not pod.finished and listed[pod.name, resource] < amount:
                found.setdefault(resource, pod.name)
    return found

"""What one node says: its kubelet, its CDI files, its containers and their devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.objects import Object

Numbers = tuple[int, int]
"""Major and minor of a device node."""


@dataclass(frozen=True)
class Container:
    """A container that runs.

    Attributes:
        pod_uid: The UID of its pod.
        name: Its name in the pod.
        environment: That of its first process.
        devices: Block devices below its `/dev`, by path.
    """

    pod_uid: str
    name: str
    environment: Mapping[str, str]
    devices: Mapping[str, Numbers]


@dataclass(frozen=True)
class Listed:
    """A container as the kubelet's pod-resources list it.

    Attributes:
        pod: Namespace and name.
        container: Its name in the pod.
        devices: Virtual devices of the device-plugin path, by resource.
        claims: Namespaces and names of its ResourceClaims.
    """

    pod: tuple[str, str]
    container: str
    devices: Mapping[str, tuple[str, ...]]
    claims: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NodeReport:
    """One node at one moment.

    Attributes:
        node: Its name.
        listed: What its kubelet lists; nothing where it does not answer.
        cdi_files: Our CDI files, by name.
        containers: Those that run.
        numbers: The numbers of the node's own block devices, by path.
    """

    node: str
    listed: tuple[Listed, ...] | None
    cdi_files: Mapping[str, Object]
    containers: tuple[Container, ...]
    numbers: Mapping[str, Numbers]

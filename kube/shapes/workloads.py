"""Shapes of Pods and DaemonSets with the fields that show whether they are healthy."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.metadata import Condition, NamedMetadata, OwnerReference


class ServingMetadata(NamedMetadata, frozen=True, kw_only=True, rename="camel"):
    """Of `metadata` of a pod, with its owners."""

    owner_references: list[OwnerReference] | None = None


class Image(msgspec.Struct, frozen=True):
    """An entry of a pod's `spec.containers`."""

    name: str | None = None
    image: str | None = None


class ServingSpec(msgspec.Struct, frozen=True):
    """Of a pod's `spec`."""

    containers: list[Image] | None = None


class ContainerState(msgspec.Struct, frozen=True):
    """The state of a container, with its reason."""

    reason: str | None = None
    message: str | None = None


class ContainerStatus(msgspec.Struct, frozen=True):
    """An entry of a pod's `status.containerStatuses`."""

    name: str | None = None
    ready: bool | None = None
    state: dict[str, ContainerState | None] | None = None


class ServingStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Of a pod's `status`."""

    phase: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class ServingPod(msgspec.Struct, frozen=True):
    """A Pod of a component: more fields than a watch of all pods reads."""

    metadata: ServingMetadata
    spec: ServingSpec | None = None
    status: ServingStatus | None = None


class DaemonSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Of a DaemonSet's `status`."""

    desired_number_scheduled: int | None = None
    number_ready: int | None = None


class DaemonSet(msgspec.Struct, frozen=True):
    """A DaemonSet."""

    metadata: NamedMetadata
    status: DaemonSetStatus | None = None


NO_SERVING_SPEC, NO_SERVING_STATUS, NO_DAEMON_SET_STATUS = (
    ServingSpec(),
    ServingStatus(),
    DaemonSetStatus(),
)

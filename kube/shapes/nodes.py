"""The fields of a Node that are read, as the API writes them."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from typing import Any

import msgspec

from kube.shapes.reading import Set
from kube.shapes.selection import Taint


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """Of `metadata`."""

    name: Set
    uid: Set
    namespace: str | None = None
    resource_version: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class Spec(msgspec.Struct, frozen=True):
    """Of `spec`."""

    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None


class Condition(msgspec.Struct, frozen=True):
    """An entry of `status.conditions`; when a heartbeat came is not read."""

    type: str | None = None
    status: str | None = None


class Status(msgspec.Struct, frozen=True):
    """Of `status`; its addresses, images and volumes are not read."""

    allocatable: dict[str, Any] | None = None
    conditions: list[Condition] | None = None


class Node(msgspec.Struct, frozen=True):
    """A Node."""

    metadata: Metadata
    spec: Spec | None = None
    status: Status | None = None


NO_SPEC, NO_STATUS = Spec(), Status()

"""Shapes of a Node."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

from typing import Any

import msgspec

from kube.shapes.metadata import Condition, NamedMetadata
from kube.shapes.selection import Taint


class Spec(msgspec.Struct, frozen=True):
    """Of `spec`."""

    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None


class Status(msgspec.Struct, frozen=True):
    """Of `status`, without addresses, images and volumes."""

    allocatable: dict[str, Any] | None = None
    conditions: list[Condition] | None = None


class Node(msgspec.Struct, frozen=True):
    """A Node."""

    metadata: NamedMetadata
    spec: Spec | None = None
    status: Status | None = None


NO_SPEC, NO_STATUS = Spec(), Status()

"""Shapes of a PodDisruptionBudget."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.metadata import NamedMetadata
from kube.shapes.selection import LabelSelector


class Spec(msgspec.Struct, frozen=True):
    """Of `spec`."""

    selector: LabelSelector | None = None


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Of `status`."""

    disruptions_allowed: int | None = None


class Budget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget."""

    metadata: NamedMetadata
    spec: Spec | None = None
    status: Status | None = None


NO_SPEC, NO_STATUS = Spec(), Status()

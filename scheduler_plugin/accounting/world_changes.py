"""The changes that subscribers of the world receive after it took an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


@dataclass(frozen=True, slots=True)
class ClaimChanged:
    """A claim was added, changed or deleted."""

    uid: ClaimUid


@dataclass(frozen=True, slots=True)
class PodChanged:
    """A pod that may use devices was added, changed or deleted."""

    uid: PodUid


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """A Queue was added, changed or deleted."""

    name: QueueName


@dataclass(frozen=True, slots=True)
class NamespaceChanged:
    """A Namespace was added, changed or deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """A PodGroup was added, changed or deleted."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class OtherChanged:
    """Another object changed that verdicts and sums depend on, such as a class."""


WorldChange: TypeAlias = (
    ClaimChanged | PodChanged | QueueChanged | NamespaceChanged | GroupChanged | OtherChanged
)

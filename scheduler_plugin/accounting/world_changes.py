"""What the world tells of itself after it took an event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


@dataclass(frozen=True, slots=True)
class ClaimChanged:
    """A claim came, changed or went."""

    uid: ClaimUid


@dataclass(frozen=True, slots=True)
class PodChanged:
    """A pod that may use devices came, changed or went."""

    uid: PodUid


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """A Queue came, changed or went."""

    name: QueueName


@dataclass(frozen=True, slots=True)
class NamespaceChanged:
    """A Namespace came, changed or went."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupChanged:
    """A PodGroup came, changed or went."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class OtherChanged:
    """Something else changed that verdicts and sums follow from, such as a class."""


WorldChange: TypeAlias = (
    ClaimChanged | PodChanged | QueueChanged | NamespaceChanged | GroupChanged | OtherChanged
)

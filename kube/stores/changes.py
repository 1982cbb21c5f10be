"""Changes of the contents of a store."""

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from kube.objects import ObjectKey

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Added(Generic[T]):
    """An object entered the store."""

    key: ObjectKey
    new: T


@dataclass(frozen=True, slots=True)
class Modified(Generic[T]):
    """An object of the store has another value than before; its UID is the same."""

    key: ObjectKey
    old: T
    new: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """An object left the store: deleted, no longer selected, or projected to None."""

    key: ObjectKey
    old: T


@dataclass(frozen=True, slots=True)
class Skipped:
    """An object could not be projected; the store keeps the value before, if any."""

    key: ObjectKey | None
    error: Exception


Change: TypeAlias = Added[T] | Modified[T] | Deleted[T]

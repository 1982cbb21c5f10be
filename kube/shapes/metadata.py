"""Shapes of `metadata` of every kind, and of conditions.

All structs of this room are frozen. Fields may be absent, except those that every stored object
has.
"""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.reading import Set, read_as


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Metadata of an object that may not be stored yet, such as a claim of a template."""

    name: str | None = None
    uid: str | None = None
    namespace: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class NamedMetadata(Metadata, frozen=True, kw_only=True, rename="camel"):
    """Metadata of an object with a name."""

    name: Set


class StoredMetadata(NamedMetadata, frozen=True, kw_only=True, rename="camel"):
    """Metadata of a stored object."""

    uid: Set


class OwnerReference(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `ownerReferences`."""

    api_version: str | None = None
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `status.conditions`."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _Named(msgspec.Struct, frozen=True):
    """An object of any kind."""

    metadata: NamedMetadata


class _Stored(msgspec.Struct, frozen=True):
    """A stored object of any kind."""

    metadata: StoredMetadata


def named_metadata(obj: object) -> NamedMetadata:
    """Metadata of an object of any kind; raises UnreadableError."""
    return read_as(_Named, obj).metadata


def metadata_of(obj: object) -> StoredMetadata:
    """Metadata of a stored object of any kind; raises UnreadableError."""
    return read_as(_Stored, obj).metadata


NO_METADATA = Metadata()

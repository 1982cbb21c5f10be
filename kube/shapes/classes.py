"""Shapes of a DeviceClass."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.metadata import NamedMetadata


class Cel(msgspec.Struct, frozen=True):
    """`cel` of a selector."""

    expression: str | None = None


class Selector(msgspec.Struct, frozen=True):
    """An entry of `selectors`, of a class or of a request."""

    cel: Cel | None = None


class Spec(msgspec.Struct, frozen=True, rename="camel"):
    """Of `spec`."""

    selectors: list[Selector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(msgspec.Struct, frozen=True):
    """A DeviceClass."""

    metadata: NamedMetadata
    spec: Spec | None = None


NO_SPEC = Spec()

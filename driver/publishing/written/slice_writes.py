"""Writes of ResourceSlices: what the API server is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver.publishing.written.resource_slices import (
    SliceContent,
    SliceView,
    TaintTimes,
    scope_fields,
)

_INDEX_DIGITS = 5
_PREFIX_LIMIT = 57
"""Characters before the hyphen and the five that the API server adds: it cuts what is longer, but
refuses what would be no name."""

_INDEXED = re.compile(rf"([0-9a-f]{{{_INDEX_DIGITS}}})-")


@dataclass(frozen=True, slots=True)
class Owner:
    """A cluster-scoped object, the Node as a rule, whose end is the end of its slices."""

    api_version: str
    kind: str
    name: str
    uid: str

    def reference(self) -> dict[str, Any]:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
        }

    def controls(self, view: SliceView) -> bool:
        references = view.metadata.get("ownerReferences", ())
        return any(ref.get("controller") and ref.get("uid") == self.uid for ref in references)


@dataclass(frozen=True, slots=True)
class DeleteSlice:
    """Delete this very slice, with UID and resourceVersion as preconditions."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class UpdateSlice:
    """Replace this slice by the body, which bears UID and resourceVersion."""

    name: str
    body: Mapping[str, Any]
    index: int
    content: SliceContent


@dataclass(frozen=True, slots=True)
class CreateSlice:
    """Create a slice; the API server completes its name."""

    body: Mapping[str, Any]
    index: int
    content: SliceContent


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceWriter:
    """Writes the slices of one pool in one generation.

    Attributes:
        times: Since when devices bear their taints; what is wanted without a time gets it back.
    """

    driver: str
    pool: str
    owner: Owner | None
    generation: int
    slice_count: int
    times: TaintTimes

    def create(self, index: int, content: SliceContent) -> CreateSlice:
        """The index comes first in the name: kube-scheduler tries slices in their names' order."""
        owner = f"-{self.owner.name}" if self.owner else ""
        name = f"{index:0{_INDEX_DIGITS}x}-{self.driver}{owner}"[:_PREFIX_LIMIT].rstrip("-.")
        metadata: dict[str, Any] = {"generateName": f"{name}-"}
        if self.owner:
            metadata["ownerReferences"] = [self.owner.reference()]
        return CreateSlice(self._body(metadata, content), index, content)

    def update(self, view: SliceView, index: int, content: SliceContent) -> UpdateSlice:
        metadata = {
            **view.metadata,
            "name": view.name,
            "uid": view.uid,
            "resourceVersion": view.resource_version,
        }
        if self.owner and not self.owner.controls(view):
            metadata["ownerReferences"] = [self.owner.reference()]
        return UpdateSlice(view.name, self._body(metadata, content), index, content)

    def _body(self, metadata: Mapping[str, Any], content: SliceContent) -> dict[str, Any]:
        devices = [device.body(self.times) for device in content.devices]
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": metadata,
            "spec": {
                "driver": self.driver,
                "pool": {
                    "name": self.pool,
                    "generation": self.generation,
                    "resourceSliceCount": self.slice_count,
                },
                **scope_fields(content.scope),
                **({"devices": devices} if devices else {}),
            },
        }


def delete(view: SliceView) -> DeleteSlice:
    return DeleteSlice(view.name, view.uid, view.resource_version)


def index_of(view: SliceView) -> int | None:
    """The slice's place in its pool; None if its name bears none, as those of old helpers."""
    match = _INDEXED.match(view.name)
    return int(match[1], 16) if match else None

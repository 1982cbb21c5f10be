"""Writes of ResourceSlices as values, and the index that the name of a slice begins with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from driver.publishing.apply.resource_slices import SliceContent, StoredSlice

INDEX_DIGITS = 5

_INDEXED = re.compile(rf"([0-9a-f]{{{INDEX_DIGITS}}})-")


@dataclass(frozen=True, slots=True)
class Owner:
    """A cluster-scoped object, usually a Node, with which its slices are garbage-collected."""

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

    def controls(self, view: StoredSlice) -> bool:
        references = view.metadata.get("ownerReferences", ())
        return any(ref.get("controller") and ref.get("uid") == self.uid for ref in references)


@dataclass(frozen=True, slots=True)
class DeleteSlice:
    """Delete a slice, with UID and resourceVersion as preconditions."""

    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class UpdateSlice:
    """Replace a slice by the body, which has UID and resourceVersion."""

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


def index_of(view: StoredSlice) -> int | None:
    """The index of a slice in its pool; None if its name has none, as in slices of old drivers."""
    match = _INDEXED.match(view.name)
    return int(match[1], 16) if match else None

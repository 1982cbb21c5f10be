"""A fake API server that keeps Instances, for kills between writes and for stale views.

It knows what server-side apply does to the fields of an Instance: each leaf has owners; a leaf
that its last owner applies no more is removed; without force nobody changes a leaf of another; a
merge patch takes over what it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from driver.api import NODE_LABEL
from driver.instances.stored.objects import StoredInstance, stored_instance
from kube.calls.api import ConflictError, InvalidError, NotFoundError, Preconditions
from kube.resources import ObjectPath
from tests.fakes.killed import KilledError

Leaf = tuple[str, ...]

_REQUIRED = ("configurationName", "cdiName", "capacity")
_NO_PRECONDITIONS = Preconditions()


@dataclass
class _Object:
    uid: str
    version: int
    leaves: dict[Leaf, Any] = field(default_factory=dict)
    owners: dict[Leaf, set[str]] = field(default_factory=dict)

    def remove(self, leaf: Leaf) -> None:
        self.leaves.pop(leaf, None)
        self.owners.pop(leaf, None)


@dataclass
class FakeInstanceServer:
    """The part of `kube.calls.api.ApiClient` that writes Instances.

    Attributes:
        kill_after: Writes that are still carried out; then the process dies. None for no end.
        writer: The node whose driver writes, which the policy about Instances holds to its part;
            None for somebody else.
    """

    now: Callable[[], str] = lambda: "2026-11-21T12:00:00Z"
    kill_after: int | None = None
    writer: str | None = None
    made: int = 0
    _objects: dict[tuple[str, str], _Object] = field(default_factory=dict)
    _created: dict[str, str] = field(default_factory=dict)
    _version: int = 0

    def bodies(self) -> list[dict[str, Any]]:
        """All Instances as a list would return them."""
        return [self._body(key, found) for key, found in sorted(self._objects.items())]

    def by_hand(self, name: str, leaf: Leaf, value: Any) -> None:
        """Set a field, or remove it with None, as an administrator does."""
        (found,) = (o for (_, n), o in self._objects.items() if n == name)
        self._set(found, "kubectl", leaf, value)
        self._touch(found)

    async def apply(
        self,
        path: ObjectPath,
        body: Mapping[str, Any],
        *,
        force: bool = False,
        preconditions: Preconditions = _NO_PRECONDITIONS,
        options: Any,
    ) -> dict[str, Any]:
        self._step()
        key = (path.namespace, path.name)
        found = self._objects.get(key)
        if found is None and preconditions.uid:
            raise ConflictError(f"uid mismatch: {path.name} does not exist")
        new = deepcopy(found) if found else _Object(f"uid-{self.made + 1}", 0)
        self._check(new, preconditions)
        manager, leaves = f"apply {options.field_manager}", dict(_leaves(body))
        if not force:
            self._check_owners(new, manager, leaves)
        self._apply(new, manager, leaves)
        if any(("spec", name) not in new.leaves for name in _REQUIRED):
            raise InvalidError(f"{path.name}: a required field is missing")
        if found is None:
            self.made += 1
            self._created[new.uid] = self.now()
        else:
            self._check_part(found, new)
        self._objects[key] = new
        self._touch(new)
        return self._body(key, new)

    async def merge_patch(
        self,
        path: ObjectPath,
        patch: Mapping[str, Any],
        *,
        preconditions: Preconditions = _NO_PRECONDITIONS,
        options: Any,
    ) -> dict[str, Any]:
        self._step()
        key = (path.namespace, path.name)
        found = self._find(key)
        told = patch.get("metadata") or {}
        self._check(found, preconditions)
        self._check(found, Preconditions(told.get("uid", ""), told.get("resourceVersion", "")))
        manager = f"update {options.field_manager}"
        for name, value in (told.get("annotations") or {}).items():
            self._set(found, manager, ("metadata", "annotations", name), value)
        spec = patch.get("spec") or {}
        for slot, holder in (spec.get("deviceUsage") or {}).items():
            self._set(found, manager, ("spec", "deviceUsage", slot), holder)
        if "nodes" in spec:
            self._set_nodes(found, manager, spec["nodes"])
        self._touch(found)
        return self._body(key, found)

    async def get(self, path: ObjectPath, **_: Any) -> dict[str, Any]:
        key = (path.namespace, path.name)
        return self._body(key, self._find(key))

    async def delete(self, path: ObjectPath, *, preconditions: Preconditions) -> None:
        self._step()
        self._check(self._find((path.namespace, path.name)), preconditions)
        del self._objects[path.namespace, path.name]

    def _step(self) -> None:
        if self.kill_after == 0:
            raise KilledError
        if self.kill_after is not None:
            self.kill_after -= 1

    def _find(self, key: tuple[str, str]) -> _Object:
        if key not in self._objects:
            raise NotFoundError(f"{key[1]} not found")
        return self._objects[key]

    def _check(self, found: _Object, preconditions: Preconditions) -> None:
        if preconditions.uid and preconditions.uid != found.uid:
            raise ConflictError("uid mismatch")
        version = str(preconditions.resource_version)
        if version and version != str(found.version):
            raise ConflictError("the object has been modified")

    def _check_owners(self, found: _Object, manager: str, leaves: dict[Leaf, Any]) -> None:
        for leaf, value in leaves.items():
            if found.leaves.get(leaf, value) != value and found.owners[leaf] - {manager}:
                raise ConflictError(f"{leaf} is owned by {found.owners[leaf]}")

    def _check_part(self, old: _Object, new: _Object) -> None:
        """What `moorage-driver-node-instances` says of a body."""
        if self.writer is None or _part(old) == _part(new):
            return
        if self.writer not in {*_nodes(old), *_nodes(new)} or min(_nodes(old), default="~") < (
            self.writer
        ):
            raise InvalidError(f"the body is not for {self.writer}")

    def _apply(self, found: _Object, manager: str, leaves: dict[Leaf, Any]) -> None:
        for leaf, owners in list(found.owners.items()):
            if leaf not in leaves and manager in owners:
                owners.discard(manager)
                if not owners:
                    found.remove(leaf)
        for leaf, value in leaves.items():
            if leaf in found.leaves and found.leaves[leaf] != value:
                found.owners[leaf] = set()
            found.leaves[leaf] = value
            found.owners.setdefault(leaf, set()).add(manager)

    def _set(self, found: _Object, manager: str, leaf: Leaf, value: Any) -> None:
        if value is None:
            found.remove(leaf)
        elif found.leaves.get(leaf) != value:
            found.leaves[leaf], found.owners[leaf] = value, {manager}

    def _set_nodes(self, found: _Object, manager: str, nodes: list[str]) -> None:
        wanted = {("spec", "nodes", node) for node in nodes}
        for leaf in [x for x in found.leaves if x[:2] == ("spec", "nodes") and x not in wanted]:
            found.remove(leaf)
        for leaf in wanted:
            self._set(found, manager, leaf, leaf[-1])

    def _touch(self, found: _Object) -> None:
        self._version += 1
        found.version = self._version

    def _body(self, key: tuple[str, str], found: _Object) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "namespace": key[0],
            "name": key[1],
            "uid": found.uid,
            "resourceVersion": str(found.version),
            "creationTimestamp": self._created.get(found.uid),
        }
        spec: dict[str, Any] = {"brokerProperties": {}, "nodes": [], "deviceUsage": {}}
        for leaf, value in found.leaves.items():
            place = metadata if leaf[0] == "metadata" else spec
            if leaf[1] in ("nodes", "ownerReferences"):
                place.setdefault(leaf[1], []).append(value)
            elif len(leaf) == 3:
                place.setdefault(leaf[1], {})[leaf[2]] = value
            else:
                place[leaf[1]] = value
        return {"metadata": metadata, "spec": spec}


class FakeInstanceStore:
    """What a node, or a process that is on none, has seen of the API server.

    Attributes:
        bodies: Those of the node and those of no node, as it saw them last.
    """

    def __init__(self, node: str = "") -> None:
        self._nodes = ("", node)
        self.bodies: list[dict[str, Any]] = []

    def see(self, bodies: list[dict[str, Any]]) -> None:
        self.bodies = [b for b in bodies if b["metadata"]["labels"][NODE_LABEL] in self._nodes]

    def note(self, body: dict[str, Any]) -> None:
        others = [b for b in self.bodies if b["metadata"]["name"] != body["metadata"]["name"]]
        self.bodies = [*others, body]

    def __iter__(self) -> Iterator[StoredInstance]:
        return map(stored_instance, self.bodies)


def _nodes(found: _Object) -> list[str]:
    return [leaf[2] for leaf in found.leaves if leaf[:2] == ("spec", "nodes")]


def _part(found: _Object) -> dict[Leaf, Any]:
    """The body: all but `nodes` and `deviceUsage`."""
    return {k: v for k, v in found.leaves.items() if k[1] not in ("nodes", "deviceUsage")}


def _leaves(body: Mapping[str, Any]) -> Iterator[tuple[Leaf, Any]]:
    metadata, spec = body["metadata"], body.get("spec") or {}
    for part in ("labels", "annotations"):
        for name, value in (metadata.get(part) or {}).items():
            yield ("metadata", part, name), value
    for owner in metadata.get("ownerReferences") or ():
        yield ("metadata", "ownerReferences", owner["uid"]), owner
    for name, value in spec.items():
        if name == "nodes":
            yield from ((("spec", "nodes", node), node) for node in value)
        elif isinstance(value, Mapping):
            yield from ((("spec", name, each), leaf) for each, leaf in value.items())
        else:
            yield ("spec", name), value

"""A fake API server that keeps ResourceSlices, for kills between writes and for lost answers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kube.calls.api import (
    ConflictError,
    InvalidError,
    NotFoundError,
    Preconditions,
    UnavailableError,
)
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource
from tests.fakes.killed import KilledError


@dataclass
class FakeSliceServer:
    """The part of `kube.calls.api.ApiClient` that writes slices; of reads it knows Nodes.

    Attributes:
        kill_after: Writes that are still carried out; then the process dies. None for no end.
        lose_after: Writes that are still answered; the next is carried out, and nobody told.
        version: The resourceVersion of the last write.
    """

    kill_after: int | None = None
    lose_after: int | None = None
    version: int = 1
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: int = 0

    def devices(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What kube-scheduler may give away: each device of a complete pool, with the pool."""
        for pool in {o["spec"]["pool"]["name"] for o in self.objects.values()}:
            for found in self._complete(pool):
                yield from ((pool, device) for device in found["spec"].get("devices", ()))

    def counter_sets(self, pool: str) -> dict[str, int]:
        """The units of each counter set of a complete pool."""
        return {
            each["name"]: int(each["counters"]["units"]["value"])
            for found in self._complete(pool)
            for each in found["spec"].get("sharedCounters", ())
        }

    def _complete(self, pool: str) -> list[dict[str, Any]]:
        """The slices of a pool in its newest generation; none while one is missing."""
        slices = [o for o in self.objects.values() if o["spec"]["pool"]["name"] == pool]
        newest = max(o["spec"]["pool"]["generation"] for o in slices)
        current = [o for o in slices if o["spec"]["pool"]["generation"] == newest]
        counts = {o["spec"]["pool"]["resourceSliceCount"] for o in current}
        return current if counts == {len(current)} else []

    async def get(self, path: ObjectPath) -> JsonObject:
        """A Node."""
        return {"metadata": {"name": path.name, "uid": f"uid-of-{path.name}"}}

    async def create(self, resource: Resource, body: JsonObject) -> JsonObject:
        name = f"{body['metadata']['generateName']}{self.version + 1}"
        return self._stored(name, f"uid-{name}", body)

    async def replace(self, path: ObjectPath, body: JsonObject) -> JsonObject:
        metadata = body["metadata"]
        self._check(path.name, Preconditions(metadata["uid"], metadata["resourceVersion"]))
        return self._stored(path.name, metadata["uid"], body)

    async def delete(self, path: ObjectPath, *, preconditions: Preconditions) -> JsonObject:
        self._check(path.name, preconditions)
        self._begin()
        deleted = self.objects.pop(path.name)
        self._end()
        return deleted

    def _check(self, name: str, expected: Preconditions) -> None:
        if name not in self.objects:
            raise NotFoundError(f"no {name}")
        metadata = self.objects[name]["metadata"]
        if (expected.uid, expected.resource_version) != (
            metadata["uid"],
            metadata["resourceVersion"],
        ):
            raise ConflictError(f"{name} has changed")

    def _stored(self, name: str, uid: str, body: JsonObject) -> JsonObject:
        _check_scopes(body["spec"])
        self._begin()
        stored = copy.deepcopy(dict(body))
        known = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        stored["metadata"] = {**stored["metadata"], **known}
        self.objects[name] = stored
        self._end()
        return copy.deepcopy(stored)

    def _begin(self) -> None:
        if self.kill_after is not None:
            if self.kill_after == 0:
                raise KilledError
            self.kill_after -= 1
        self.version += 1
        self.writes += 1

    def _end(self) -> None:
        if self.lose_after is not None:
            self.lose_after -= 1
            if self.lose_after < 0:
                self.lose_after = None
                error = UnavailableError("no answer")
                error.may_have_happened = True
                raise error


def _check_scopes(spec: JsonObject) -> None:
    """A slice says who sees its devices, or leaves it to each of them."""
    scopes = {"nodeName", "nodeSelector", "allNodes"}
    leaves_it = bool(spec.get("perDeviceNodeSelection"))
    for place, says in ((spec, not leaves_it), *((d, leaves_it) for d in spec.get("devices", ()))):
        if len(scopes & place.keys()) != int(says):
            raise InvalidError("exactly one of nodeName, nodeSelector, allNodes is required")

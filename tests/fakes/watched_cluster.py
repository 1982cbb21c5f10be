"""A fake API server whose objects are watched: stores follow it, and a controller writes to it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kube.calls.api import NotFoundError
from kube.calls.apiserver_reads import Page
from kube.calls.frames import Frame, Observed, Removed
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource, Selection


class FakeWatchedCluster:
    """Takes the place of an `ApiClient`. Each resource may be followed by one store.

    Attributes:
        objects: All that there is.
        created: Paths of all that a client has created, in order.
        creations: How many creations are answered; the others hang.
    """

    def __init__(self) -> None:
        self.objects: dict[ObjectPath, JsonObject] = {}
        self.created: list[ObjectPath] = []
        self.creations = asyncio.Semaphore(1_000)
        self._versions = itertools.count(1)
        self._frames: dict[Resource, asyncio.Queue[Frame]] = {}

    def impersonating(self, _: str) -> FakeWatchedCluster:
        return self

    def put(self, resource: Resource, body: JsonObject) -> JsonObject:
        """Store an object as its user, anew or changed."""
        path, version = resource.path_of(body), next(self._versions)
        before = self.objects.get(path, {"metadata": {"uid": f"uid-{version}"}})
        metadata = {
            **body["metadata"],
            "uid": before["metadata"]["uid"],
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-20T12:00:00Z",
        }
        stored = self.objects[path] = {**body, "metadata": metadata}
        self._tell(resource, Observed(stored))
        return stored

    def remove(self, path: ObjectPath) -> None:
        gone = self.objects.pop(path)
        metadata = {**gone["metadata"], "resourceVersion": str(next(self._versions))}
        self._tell(path.resource, Removed({**gone, "metadata": metadata}))

    def _tell(self, resource: Resource, frame: Frame) -> None:
        if resource in self._frames:
            self._frames[resource].put_nowait(frame)

    async def create(self, resource: Resource, body: JsonObject, **_: Any) -> JsonObject:
        await self.creations.acquire()
        self.created.append(resource.path_of(body))
        return self.put(resource, body)

    async def delete(self, path: ObjectPath, **_: Any) -> None:
        if path not in self.objects:
            raise NotFoundError(f"no {path}")
        self.remove(path)

    async def list(self, selection: Selection) -> Page:
        found = (each for path, each in self.objects.items() if path.resource == selection.resource)
        return Page(tuple(found), next(self._versions))

    async def pages(self, selection: Selection, **_: Any) -> AsyncIterator[Page]:
        self._frames[selection.resource] = asyncio.Queue()
        yield await self.list(selection)

    @asynccontextmanager
    async def watch(self, selection: Selection, _: int, **__: Any) -> AsyncIterator[Any]:
        frames = self._frames[selection.resource]

        async def told() -> AsyncIterator[Frame]:
            while True:
                yield await frames.get()

        yield told()

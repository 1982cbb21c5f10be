"""A fake API server on a real socket that keeps objects and tells watches of their changes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from aiohttp import web

from kube.calls.api import ApiClient, connect
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource, Selection
from tests.fakes.scripted_apiserver import event, lists, refuses, says, serving

MANY = 1_000
_NAMESPACE = re.compile("/namespaces/[^/]+(?=/)")


class WatchedApiServer:
    """Objects by their paths.

    Attributes:
        written: Names of the objects that a client created, in order.
        held: Selections whose lists and watches wait, as where a right is missing.
        creations: How many creations are answered; the others wait.
    """

    def __init__(self) -> None:
        self.written: list[str] = []
        self.held: set[str] = set()
        self.creations = asyncio.Semaphore(MANY)
        self._objects: dict[str, dict[str, Any]] = {}
        self._events: list[tuple[str, str, dict[str, Any]]] = []
        self._changed = asyncio.Condition()

    def names(self, resource: Resource) -> list[str]:
        """Of all objects of a kind, the oldest first."""
        folder = f"/{resource.plural}/"
        return [path.rpartition("/")[2] for path in self._objects if folder in path]

    async def put(self, resource: Resource, obj: JsonObject) -> None:
        """Create or replace an object."""
        path = str(resource.path_of(obj))
        kind = "MODIFIED" if path in self._objects else "ADDED"
        await self._tell(kind, path, deepcopy(dict(obj)))

    async def remove(self, path: ObjectPath) -> None:
        """Delete an object."""
        await self._tell("DELETED", str(path), self._objects[str(path)])

    async def release(self, selection: Selection) -> None:
        """Answer the lists that are held."""
        async with self._changed:
            self.held.remove(str(selection))
            self._changed.notify_all()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a list, a watch, a creation or a deletion."""
        if request.method == "POST":
            return await self._create(request)
        if request.method == "DELETE":
            return await self._delete(request)
        selector = request.query.get("labelSelector", "")
        said = "&".join(filter(None, (request.path, selector)))
        async with self._changed:
            await self._changed.wait_for(lambda: said not in self.held)
        if "watch" in request.query:
            return await self._watch(request, selector)
        return await self._list(request, selector)

    async def _tell(self, kind: str, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        metadata = {**obj["metadata"], "resourceVersion": str(len(self._events) + 2)}
        told = {**obj, "metadata": {"uid": f"uid-of-{path}", **metadata}}
        async with self._changed:
            self._events.append((kind, path, told))
            self._objects[path] = told
            if kind == "DELETED":
                del self._objects[path]
            self._changed.notify_all()
        return told

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        await self.creations.acquire()
        self.written.append(body["metadata"]["name"])
        made = await self._tell("ADDED", f"{request.path}/{body['metadata']['name']}", body)
        return await says(made, 201)(request)

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        gone = self._objects.get(request.path)
        if gone is None:
            return await refuses(404, "NotFound")(request)
        return await says(await self._tell("DELETED", request.path, gone))(request)

    async def _list(self, request: web.Request, selector: str) -> web.StreamResponse:
        found = [
            obj
            for path, obj in self._objects.items()
            if _selects(request.path, selector, path, obj)
        ]
        return await lists(*found, version=len(self._events) + 1)(request)

    async def _watch(self, request: web.Request, selector: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        told = int(request.query["resourceVersion"]) - 1
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: len(self._events) > told)  # noqa: B023
            for kind, path, obj in self._events[told:]:
                if _selects(request.path, selector, path, obj):
                    await response.write(event(kind, obj))
                told += 1


def _selects(collection: str, selector: str, path: str, obj: Mapping[str, Any]) -> bool:
    folder = path.rpartition("/")[0]
    wanted = dict(one.split("=") for one in selector.split(",") if one)
    labels = obj["metadata"].get("labels") or {}
    return collection in (folder, _NAMESPACE.sub("", folder)) and labels.items() >= wanted.items()


@asynccontextmanager
async def watched(folder: Path, server: WatchedApiServer) -> AsyncIterator[ApiClient]:
    """Serve until the context ends; yields a client."""
    async with (
        serving(server.answer, folder) as kubeconfig,
        connect(kubeconfig) as client,
    ):
        yield client

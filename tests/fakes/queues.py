"""A fake API server that holds Queues alone, and takes their status as its definition says."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from typing import Any

from aiohttp import web

from tests.fakes.scripted_apiserver import hangs, lists, says


class FakeQueues:
    """Queues by name, and the statuses that were written.

    Attributes:
        unknown: Fields of the status that its definition does not have.
        written: What was taken, the latest last.
        refused: How many writes were not.
    """

    def __init__(self, *objects: dict[str, Any], unknown: frozenset[str] = frozenset()) -> None:
        self.objects = {obj["metadata"]["name"]: deepcopy(obj) for obj in objects}
        self.unknown = unknown
        self.written: list[dict[str, Any]] = []
        self.refused = 0
        self._version = 1
        for obj in self.objects.values():
            obj["metadata"]["resourceVersion"] = "1"

    async def reply(self, request: web.Request) -> web.StreamResponse:
        if request.method == "PATCH":
            return await self._take(request)
        if "watch" in request.query:
            return await hangs(request)
        return await lists(*self.objects.values(), version=self._version)(request)

    async def _take(self, request: web.Request) -> web.StreamResponse:
        name, status = request.path.split("/")[-2], json.loads(await request.read())["status"]
        if strange := self.unknown & status.keys():
            self.refused += 1
            return await says(_undeclared(name, sorted(strange)), 500)(request)
        self._version += 1
        self.written.append(status)
        obj = self.objects[name] | {"status": status}
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[name] = obj
        return await says(obj)(request)

    async def until_written(self, times: int) -> dict[str, Any]:
        """Wait for so many writes in all; returns the status that was written last."""
        async with asyncio.timeout(30):
            while len(self.written) < times:  # noqa: ASYNC110  Another task writes.
                await asyncio.sleep(0.01)
        return self.written[-1]


def _undeclared(name: str, fields: list[str]) -> dict[str, Any]:
    """As the API server says it, from 1.18 to 1.36: it is no Status of its own making."""
    found = [f".status.{field}: field not declared in schema" for field in fields]
    said = found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {one}" for one in found)
    kind = f"(/{name}; moorage.dev/v1alpha1, Kind=Queue)"
    message = f"failed to create typed patch object {kind}: {said}"
    return {"kind": "Status", "status": "Failure", "message": message, "code": 500}

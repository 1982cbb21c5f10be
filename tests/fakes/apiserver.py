"""A fake API server in memory: objects with their versions, and faults on demand.

It keeps the rules that our programs rely on: preconditions, patches, and one binding for each pod.
That the true server keeps them is tested in tests/e2e.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Any, cast

from aiohttp import ServerDisconnectedError

from kube.calls.api import ApiClient
from kube.calls.apiserver_transport import Transport
from kube.calls.requests import JSON_PATCH, STRATEGIC_MERGE_PATCH
from kube.kinds import PODS
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource
from tests.fakes.killed import KilledError


class Fault(Enum):
    """What goes wrong with one request."""

    REFUSED = auto()
    """Too many requests: nothing is done, and the answer says so."""

    FORBIDDEN = auto()
    """A right is missing: nothing is done."""

    FAILS = auto()
    """An internal error, and nothing is done."""

    LOST = auto()
    """The request never arrives, and the connection breaks."""

    OUTRUN = auto()
    """Another client writes the object first."""

    UNANSWERED = auto()
    """It is done, and the connection breaks."""

    KILLED_BEFORE = auto()
    """Our process ends before the request arrives."""

    KILLED_AFTER = auto()
    """The process ends when it is done."""


Happening = Fault | Callable[[], object] | None
"""A fault, or what somebody else does just before the request arrives."""


@dataclass(frozen=True, slots=True)
class Answer:
    """As much of aiohttp's response as the client reads."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    async def __aenter__(self) -> Answer:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    async def read(self) -> bytes:
        return self.body


class RefusedError(Exception):
    """Raised where the server refuses a request."""

    def __init__(
        self, status: int, reason: str, message: str, causes: Sequence[Mapping[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.causes = list(causes)


class FakeApiServer:
    """Objects by their paths, and what was asked for in its order.

    Attributes:
        client: Our client of it.
        happenings: One for each of the next requests; none when they are over.
        next_happening: Called with the path of each request; by default it takes `happenings`.
        asked: Method and last part of the path of each request that arrived.
        bound: UIDs of the pods that were bound, in order.
        protected: Names of the pods that may not be evicted.
        evicted: Names of the pods that were, in order.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.happenings: deque[Happening] = deque()
        self.asked: list[str] = []
        self.bound: list[str] = []
        self.protected: set[str] = set()
        self.evicted: list[str] = []
        self.next_happening: Callable[[str], Awaitable[Happening]] = self._scripted
        self._version = 100
        self.client = ApiClient(cast(Transport, self))

    def will(self, *happenings: Happening) -> None:
        self.happenings.extend(happenings)

    async def _scripted(self, _: str) -> Happening:
        return self.happenings.popleft() if self.happenings else None

    # What others write.

    def put(self, resource: Resource, obj: JsonObject) -> None:
        """Create or replace an object as somebody else."""
        self._store(str(resource.path_of(obj)), deepcopy(dict(obj)))

    def get(self, path: ObjectPath) -> dict[str, Any]:
        return self.objects[str(path)]

    def pod(self, name: str) -> dict[str, Any]:
        return self.get(PODS.at(name, "default"))

    def remove(self, path: ObjectPath) -> None:
        del self.objects[str(path)]

    def change(self, path: ObjectPath, change: Callable[[dict[str, Any]], object]) -> None:
        obj = deepcopy(self.get(path))
        change(obj)
        self._store(str(path), obj)

    # What our programs ask.

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any, limits: Any
    ) -> Answer:
        await asyncio.sleep(0)  # Other requests come in between.
        path, _, query = url.partition("?")
        happening = await self.next_happening(path)
        if callable(happening):
            happening()
        if refusal := _REFUSALS.get(happening):
            return _refusal(refusal)
        if error := _BROKEN_BEFORE.get(happening):
            raise error
        if happening is Fault.OUTRUN:
            self._touch(path)
        answer = self._answer(method, path, headers, body, is_dry="dryRun=All" in query)
        if error := _BROKEN_AFTER.get(happening):
            raise error
        return answer

    def _answer(
        self, method: str, path: str, headers: Mapping[str, str], body: Any, *, is_dry: bool
    ) -> Answer:
        last = path.rpartition("/")[2]
        self.asked.append(f"{method} {last}{' (dry)' if is_dry else ''}")
        kind = headers["Content-Type"]
        try:
            match method, last:
                case "GET", _:
                    found = self._listed(path) if _COLLECTION.fullmatch(path) else self._found(path)
                case "PUT", _:
                    found = self._replace(path, body)
                case "PATCH", "status":
                    found = self._patch_status(path.removesuffix("/status"), body, kind)
                case "PATCH", _:
                    patch = self._json_patch if kind == JSON_PATCH else self._patch
                    found = patch(path, body)
                case _, "eviction":
                    found = self._evict(path.removesuffix("/eviction"), body, is_dry=is_dry)
                case _, "binding":
                    found = self._bind(path.removesuffix("/binding"), body)
                case _:
                    found = self._create(path, body)
        except RefusedError as error:
            return _refusal(error)
        return Answer(200, json.dumps(found).encode())

    def _listed(self, collection: str) -> dict[str, Any]:
        """A list, of one namespace or of all."""
        folders = {path: path.rpartition("/")[0] for path in self.objects}
        items = [
            self.objects[path]
            for path, folder in folders.items()
            if collection in (folder, _NAMESPACE.sub("", folder))
        ]
        return {"metadata": {"resourceVersion": str(self._version)}, "items": items}

    def _found(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise RefusedError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _expected(self, path: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the object, if it is the one that a request is about."""
        found = deepcopy(self._found(path))
        for key in ("uid", "resourceVersion"):
            if metadata.get(key, found["metadata"].get(key)) != found["metadata"].get(key):
                raise RefusedError(409, "Conflict", f"{key} differs")
        return found

    def _create(self, collection: str, body: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{collection}/{body['metadata']['name']}"
        if path in self.objects:
            raise RefusedError(409, "AlreadyExists", f"{path} exists")
        return self._store(path, deepcopy(dict(body)))

    def _replace(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self._expected(path, body["metadata"])
        return self._store(path, deepcopy(dict(body)))

    def _patch(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        before = self._expected(path, patch.get("metadata", {}))
        after = merged(before, patch)
        return before if after == before else self._store(path, after)

    def _json_patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        after = self._expected(path, {})
        try:
            for operation in operations:
                _carry_out(operation, after)
        except LookupError as error:
            raise RefusedError(422, "Invalid", f"{error} is not there") from error
        return self._store(path, after)

    def _patch_status(self, path: str, patch: Mapping[str, Any], kind: str) -> dict[str, Any]:
        after = self._expected(path, patch["metadata"])
        after["status"] = merged(
            after["status"], patch["status"], is_strategic=kind == STRATEGIC_MERGE_PATCH
        )
        return self._store(path, after)

    def _evict(self, path: str, body: Mapping[str, Any], *, is_dry: bool) -> dict[str, Any]:
        pod = self._expected(path, body["deleteOptions"]["preconditions"])
        name = pod["metadata"]["name"]
        if name in self.protected:
            cause = {"reason": "DisruptionBudget", "message": "The budget needs 1 healthy pod."}
            raise RefusedError(429, "TooManyRequests", "Cannot evict pod.", [cause])
        if not is_dry:
            pod["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            self._store(path, pod)
            self.evicted.append(name)
        return {"kind": "Status", "status": "Success"}

    def _bind(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        pod = self._expected(path, body["metadata"])
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            raise RefusedError(409, "Conflict", "is assigned or being deleted")
        pod["spec"]["nodeName"] = body["target"]["name"]
        pod["metadata"]["annotations"].update(body["metadata"].get("annotations", {}))
        self._store(path, pod)
        self.bound.append(pod["metadata"]["uid"])
        return {"kind": "Status", "status": "Success"}

    def _touch(self, path: str) -> None:
        for found in (path, path.rpartition("/")[0]):
            if found in self.objects:
                self._store(found, deepcopy(self.objects[found]))

    def _store(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = obj
        return obj


def _carry_out(operation: Mapping[str, Any], obj: Any) -> None:
    """RFC 6902: `test` and `remove`.

    Raises:
        LookupError: The value is not there, or differs.
    """
    *folders, last = operation["path"].strip("/").split("/")
    for folder in folders:
        obj = obj[_key(obj, folder)]
    key = _key(obj, last)
    if operation["op"] == "test" and obj[key] != operation["value"]:
        raise LookupError(operation)
    if operation["op"] == "remove":
        del obj[key]


def _key(found: Any, key: str) -> Any:
    return int(key) if isinstance(found, list) else key


def merged(old: Any, patch: Any, *, is_strategic: bool = False) -> Any:
    """RFC 7386; a strategic merge patch merges conditions by their types."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif key == "conditions" and is_strategic:
            each = {entry["type"]: entry for entry in (*found.get(key, ()), *value)}
            found[key] = [entry for entry in each.values() if "$patch" not in entry]
        else:
            found[key] = merged(found.get(key), value, is_strategic=is_strategic)
    return found


_NAMESPACE = re.compile("/namespaces/[^/]+(?=/)")
_COLLECTION = re.compile("(/api|/apis/[^/]+)/v[^/]+(/namespaces/[^/]+)?/[^/]+")

_REFUSALS: Mapping[Happening, RefusedError] = {
    Fault.REFUSED: RefusedError(429, "TooManyRequests", "too many requests"),
    Fault.FORBIDDEN: RefusedError(403, "Forbidden", "no right"),
    Fault.FAILS: RefusedError(500, "InternalError", "internal error"),
}
_BROKEN_BEFORE: Mapping[Happening, type[BaseException]] = {
    Fault.LOST: ServerDisconnectedError,
    Fault.KILLED_BEFORE: KilledError,
}
_BROKEN_AFTER: Mapping[Happening, type[BaseException]] = {
    Fault.UNANSWERED: ServerDisconnectedError,
    Fault.KILLED_AFTER: KilledError,
}


def _refusal(error: RefusedError) -> Answer:
    body = {
        "kind": "Status",
        "reason": error.reason,
        "message": str(error),
        "details": {"causes": error.causes},
    }
    return Answer(error.status, json.dumps(body).encode())

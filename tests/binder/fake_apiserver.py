"""A fake API server in memory: claims and pods with their versions, and faults on demand.

It keeps the rules that the binder relies on: preconditions, one binding for each pod, and labels of
claims that never change. That the true server keeps them is tested in tests/e2e/binder.
"""

from __future__ import annotations

import asyncio
import json
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

QUEUE = "moorage.dev/queue"
OWNER_POD = "moorage.dev/owner-pod"
OWNER_LEFT_AT = "moorage.dev/owner-left-at"


class Fault(Enum):
    """What goes wrong with one request."""

    REFUSED = auto()
    """Too many requests: nothing is done, and the answer says so."""

    FAILS = auto()
    """An internal error, and nothing is done."""

    LOST = auto()
    """The request never arrives, and the connection breaks."""

    UNANSWERED = auto()
    """It is done, and the connection breaks."""

    KILLED_BEFORE = auto()
    """The binder's process ends before the request arrives."""

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
    """Claims and pods by their paths, and what was asked for in its order.

    Attributes:
        happenings: One for each of the next requests; none when they are over.
        asked: Method and last part of the path of each request that arrived.
        labels: Each label that was stored on a claim, in order; "" for its removal.
        bound: UIDs of the pods that were bound, in order.
        slices: The ResourceSlices that it lists.
        budgets: The PodDisruptionBudgets that it lists; what they refuse is `protected`.
        protected: Names of the pods that may not be evicted.
        evicted: Names of the pods that were, in order.
    """

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.happenings: deque[Happening] = deque()
        self.asked: list[str] = []
        self.labels: list[str] = []
        self.bound: list[str] = []
        self.budgets: list[dict[str, Any]] = []
        self.slices: list[dict[str, Any]] = []
        self.protected: set[str] = set()
        self.evicted: list[str] = []
        self.next_happening: Callable[[], Awaitable[Happening]] = self._scripted
        self._version = 100
        self.client = ApiClient(cast(Transport, self))

    def will(self, *happenings: Happening) -> None:
        self.happenings.extend(happenings)

    async def _scripted(self) -> Happening:
        return self.happenings.popleft() if self.happenings else None

    # What others write.

    def put(self, plural: str, obj: Mapping[str, Any]) -> None:
        """Create or replace a claim or a pod as somebody else."""
        metadata = obj["metadata"]
        self._store(_path(plural, metadata["namespace"], metadata["name"]), deepcopy(dict(obj)))

    def put_node(self, obj: Mapping[str, Any]) -> None:
        self._store(f"/api/v1/nodes/{obj['metadata']['name']}", deepcopy(dict(obj)))

    def claim(self, name: str = "cam") -> dict[str, Any]:
        return self.objects[_path("resourceclaims", "default", name)]

    def pod(self, name: str) -> dict[str, Any]:
        return self.objects[_path("pods", "default", name)]

    def remove(self, plural: str, name: str) -> None:
        del self.objects[_path(plural, "default", name)]

    def change(self, plural: str, name: str, change: Callable[[dict[str, Any]], object]) -> None:
        path = _path(plural, "default", name)
        obj = deepcopy(self.objects[path])
        change(obj)
        self._store(path, obj)

    def owner(self, name: str = "cam") -> tuple[str, str]:
        """Label and owner-pod of a claim; "" for what is not there."""
        metadata = self.claim(name)["metadata"]
        return metadata["labels"].get(QUEUE, ""), metadata["annotations"].get(OWNER_POD, "")

    # What the binder asks.

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any, limits: Any
    ) -> Answer:
        happening = await self.next_happening()
        if callable(happening):
            happening()
        if refusal := _REFUSALS.get(happening):
            return _refusal(refusal)
        if error := _BROKEN_BEFORE.get(happening):
            raise error
        path, _, query = url.partition("?")
        answer = self._answer(method, path, body, is_dry="dryRun=All" in query)
        if error := _BROKEN_AFTER.get(happening):
            raise error
        return answer

    def _answer(self, method: str, path: str, body: Any, *, is_dry: bool) -> Answer:
        last = path.rpartition("/")[2]
        self.asked.append(f"{method} {last}{' (dry)' if is_dry else ''}")
        try:
            match method, last:
                case "GET", _:
                    found = self._listed(last) or self._found(path)
                case "PATCH", "status":
                    found = self._patch_status(path.removesuffix("/status"), body)
                case "PATCH", _:
                    found = self._patch(path, body)
                case _, "eviction":
                    found = self._evict(path.removesuffix("/eviction"), body, is_dry=is_dry)
                case _:
                    found = self._bind(path.removesuffix("/binding"), body)
        except RefusedError as error:
            return _refusal(error)
        return Answer(200, json.dumps(found).encode())

    def _listed(self, plural: str) -> dict[str, Any] | None:
        """A list, where the path names a kind and no object."""
        match plural:
            case "poddisruptionbudgets":
                items = self.budgets
            case "resourceslices":
                items = self.slices
            case "pods":
                items = [obj for path, obj in self.objects.items() if "/pods/" in path]
            case _:
                return None
        return {"metadata": {"resourceVersion": str(self._version)}, "items": items}

    def _found(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise RefusedError(404, "NotFound", f"{path} not found")
        return self.objects[path]

    def _patch(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        before = self._found(path)
        asked = patch["metadata"]
        for key in ("uid", "resourceVersion"):
            if asked[key] != before["metadata"][key]:
                raise RefusedError(409, "Conflict", f"{key} differs")
        after = deepcopy(before)
        for part in ("labels", "annotations"):
            merged = {**after["metadata"][part], **asked.get(part, {})}
            after["metadata"][part] = {k: v for k, v in merged.items() if v is not None}
        self._check_policy(before["metadata"], after["metadata"])
        return before if after == before else self._store(path, after)

    def _patch_status(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        after = deepcopy(self._found(path))
        for key in ("uid", "resourceVersion"):
            if patch["metadata"].get(key, after["metadata"][key]) != after["metadata"][key]:
                raise RefusedError(409, "Conflict", f"{key} differs")
        merged = {**after["status"], **patch["status"]}
        if "conditions" in patch["status"]:
            each = (*after["status"].get("conditions", ()), *patch["status"]["conditions"])
            merged["conditions"] = list({entry["type"]: entry for entry in each}.values())
        after["status"] = {key: value for key, value in merged.items() if value is not None}
        return self._store(path, after)

    def _evict(self, path: str, body: Mapping[str, Any], *, is_dry: bool) -> dict[str, Any]:
        pod = deepcopy(self._found(path))
        if pod["metadata"]["uid"] != body["deleteOptions"]["preconditions"]["uid"]:
            raise RefusedError(409, "Conflict", "uid differs")
        name = pod["metadata"]["name"]
        if name in self.protected:
            cause = {"reason": "DisruptionBudget", "message": "The budget needs 1 healthy pod."}
            raise RefusedError(429, "TooManyRequests", "Cannot evict pod.", [cause])
        if not is_dry:
            pod["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
            self._store(path, pod)
            self.evicted.append(name)
        return {"kind": "Status", "status": "Success"}

    def _check_policy(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        old, new = (metadata["labels"].get(QUEUE, "") for metadata in (before, after))
        if old == new:
            return
        if old and new:
            raise RefusedError(422, "Invalid", f'label "{old}" never changes')
        if old and OWNER_POD not in before["annotations"]:
            raise RefusedError(422, "Invalid", f'label "{old}" was not written by the binder')
        self.labels.append(new)

    def _bind(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        pod = deepcopy(self._found(path))
        if pod["metadata"]["uid"] != body["metadata"]["uid"]:
            raise RefusedError(409, "Conflict", "uid differs")
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            raise RefusedError(409, "Conflict", "is assigned or being deleted")
        pod["spec"]["nodeName"] = body["target"]["name"]
        pod["metadata"]["annotations"].update(body["metadata"].get("annotations", {}))
        self._store(path, pod)
        self.bound.append(pod["metadata"]["uid"])
        return {"kind": "Status", "status": "Success"}

    def _store(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = obj
        return obj


_REFUSALS: Mapping[Happening, RefusedError] = {
    Fault.REFUSED: RefusedError(429, "TooManyRequests", "too many requests"),
    Fault.FAILS: RefusedError(500, "InternalError", "internal error"),
}
_BROKEN_BEFORE: Mapping[Happening, type[BaseException]] = {
    Fault.LOST: ServerDisconnectedError,
    Fault.KILLED_BEFORE: asyncio.CancelledError,
}
_BROKEN_AFTER: Mapping[Happening, type[BaseException]] = {
    Fault.UNANSWERED: ServerDisconnectedError,
    Fault.KILLED_AFTER: asyncio.CancelledError,
}


def _path(plural: str, namespace: str, name: str) -> str:
    root = "/api/v1" if plural == "pods" else "/apis/resource.k8s.io/v1"
    return f"{root}/namespaces/{namespace}/{plural}/{name}"


def _refusal(error: RefusedError) -> Answer:
    body = {
        "kind": "Status",
        "reason": error.reason,
        "message": str(error),
        "details": {"causes": error.causes},
    }
    return Answer(error.status, json.dumps(body).encode())

"""A fake API server that holds pods alone, and the world that hears of them.

It keeps the rules that removing gates and writing conditions rely on. That the true server keeps
them is tested in tests/e2e/test_policies.py and tests/e2e/sharing/test_waiting.py.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from enum import Enum, auto
from typing import Any, cast

from aiohttp import ServerDisconnectedError

from kube.calls.api import ApiClient
from kube.calls.apiserver_transport import Transport
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.objects.names import ADMITTED_CONDITION
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from tests.fakes.apiserver import Answer
from tests.scheduler_plugin.builders import SETTINGS


class Fault(Enum):
    """What goes wrong with one request."""

    FORBIDDEN = auto()
    BUSY = auto()
    """Too many requests: nothing is done, and the answer says so."""

    BROKEN = auto()
    """The server fails at it, as where a webhook of others does."""

    LOST = auto()
    """It never arrives, and the connection breaks."""

    UNANSWERED = auto()
    """It is done, and the connection breaks."""


_REFUSALS = {
    Fault.FORBIDDEN: (403, "Forbidden"),
    Fault.BUSY: (429, "TooManyRequests"),
    Fault.BROKEN: (500, "InternalError"),
}


@asynccontextmanager
async def running(work: Coroutine[Any, Any, Any]) -> AsyncIterator[None]:
    """Something that runs until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class FakePods:
    """Pods by name, all in one namespace, and what was asked for.

    Attributes:
        faults: By the name of a pod, what happens to the next requests about it.
        asked: What arrived: `gate NAME`, `status NAME` or `GET NAME`.
        held: While it is not set, requests wait.
        most_at_once: The most requests that were there at one time.
        listener: Hears of each change, after the world took it.
        before: Called with each request just before it is carried out.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.inventory = Inventory()
        self.objects: dict[str, dict[str, Any]] = {}
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.asked: list[str] = []
        self.held = asyncio.Event()
        self.held.set()
        self.most_at_once = 0
        self.listener: Callable[[WorldChange], None] = lambda _: None
        self.before: Callable[[str], object] = lambda _: None
        self.client = ApiClient(cast(Transport, self))
        self._at_once = 0

    # What others write, and the watch.

    def put(self, obj: Mapping[str, Any], *, told: bool = True) -> PodView:
        """Create or change a pod; the world hears of it, unless the watch is late."""
        self.objects[obj["metadata"]["name"]] = deepcopy(dict(obj))
        if told:
            self.note_pod(obj)
        view = pod_view(obj, SETTINGS)
        assert isinstance(view, PodView)
        return view

    def delete(self, name: str, *, told: bool = True) -> None:
        pod = pod_view(self.objects.pop(name), SETTINGS)
        assert isinstance(pod, PodView)
        if told:
            self.world.delete_pod(pod.uid)
            self.listener(PodChanged(pod.uid))

    def ungate(self, name: str, *, told: bool = True) -> None:
        """Somebody else removes all gates."""
        obj = deepcopy(self.objects[name])
        obj["spec"]["schedulingGates"] = []
        self.put(obj, told=told)

    def gates(self, name: str) -> list[str]:
        return [gate["name"] for gate in self.objects[name]["spec"].get("schedulingGates", ())]

    def gated(self) -> list[str]:
        return [name for name in self.objects if self.gates(name)]

    def told(self, name: str) -> str:
        """The reason of the condition; "" without one."""
        conditions = self.objects[name]["status"].get("conditions", ())
        found = [c["reason"] for c in conditions if c["type"] == ADMITTED_CONDITION]
        return found[0] if found else ""

    # What the plugin knows and asks.

    def note_pod(self, obj: Mapping[str, Any]) -> None:
        view = pod_view(dict(obj), SETTINGS)
        self.world.put_pod(view)
        self.listener(PodChanged(view.uid))

    async def refresh_pod(self, namespace: str, name: str) -> PodView | None:
        self.asked.append(f"GET {name}")
        if name not in self.objects:
            return None
        self.note_pod(self.objects[name])
        view = pod_view(self.objects[name], SETTINGS)
        assert isinstance(view, PodView)
        return view

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: Any, limits: Any
    ) -> Answer:
        _, _, rest = url.partition("?")[0].partition("/pods/")
        name, _, part = rest.partition("/")
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.held.wait()
            await asyncio.sleep(0)
            return self._answer(name, part, json.loads(json.dumps(body)))
        finally:
            self._at_once -= 1

    def _answer(self, name: str, part: str, body: Any) -> Answer:
        self.asked.append(f"{part or 'gate'} {name}")
        self.before(name)
        fault = self.faults[name].popleft() if self.faults[name] else None
        if fault in _REFUSALS:
            return _refusal(*_REFUSALS[fault])
        if fault is Fault.LOST:
            raise ServerDisconnectedError
        if name not in self.objects:
            return _refusal(404, "NotFound")
        change = self._set_condition if part == "status" else self._remove_gate
        answer = change(deepcopy(self.objects[name]), body)
        if fault is Fault.UNANSWERED:
            raise ServerDisconnectedError
        return answer

    def _remove_gate(self, obj: dict[str, Any], operations: list[Any]) -> Answer:
        uid, gate, remove = operations
        gates = obj["spec"].get("schedulingGates", [])
        if obj["metadata"]["uid"] != uid["value"] or not gates or gates[0]["name"] != gate["value"]:
            return _refusal(422, "Invalid")
        assert (remove["op"], remove["path"]) == ("remove", "/spec/schedulingGates/0")
        del gates[0]
        return self._stored(obj)

    def _set_condition(self, obj: dict[str, Any], patch: dict[str, Any]) -> Answer:
        if obj["metadata"]["uid"] != patch["metadata"]["uid"]:
            return _refusal(409, "Conflict")
        ((told,), conditions) = patch["status"]["conditions"], obj["status"].get("conditions", [])
        others = [c for c in conditions if c["type"] != told["type"]]
        obj["status"]["conditions"] = others if "$patch" in told else [*others, told]
        return self._stored(obj)

    def _stored(self, obj: dict[str, Any]) -> Answer:
        self.objects[obj["metadata"]["name"]] = obj
        return Answer(200, json.dumps(obj).encode())


def _refusal(status: int, reason: str) -> Answer:
    return Answer(status, json.dumps({"kind": "Status", "reason": reason}).encode())

"""The fake API server with pods alone, and the world that hears of them."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

from kube.kinds import PODS
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.objects.names import ADMITTED_CONDITION
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from tests.fakes.apiserver import FakeApiServer, Fault
from tests.scheduler_plugin.builders import SETTINGS


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
        self.server = FakeApiServer()
        self.server.next_happening = self._happening
        self.client = self.server.client
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.asked: list[str] = []
        self.held = asyncio.Event()
        self.held.set()
        self.most_at_once = 0
        self.listener: Callable[[WorldChange], None] = lambda _: None
        self.before: Callable[[str], object] = lambda _: None
        self._at_once = 0

    @property
    def objects(self) -> dict[str, dict[str, Any]]:
        """Pods by name."""
        return {obj["metadata"]["name"]: obj for obj in self.server.objects.values()}

    # What others write, and the watch.

    def put(self, obj: Mapping[str, Any], *, told: bool = True) -> PodView:
        """Create or change a pod; the world hears of it, unless the watch is late."""
        self.server.put(PODS, obj)
        if told:
            self.note_pod(obj)
        view = pod_view(obj, SETTINGS)
        assert isinstance(view, PodView)
        return view

    def delete(self, name: str, *, told: bool = True) -> None:
        pod = pod_view(self.objects[name], SETTINGS)
        self.server.remove(PODS.at(name, pod.namespace))
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

    async def _happening(self, path: str) -> Fault | None:
        _, _, rest = path.partition("/pods/")
        name, _, part = rest.partition("/")
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.held.wait()
        finally:
            self._at_once -= 1
        self.asked.append(f"{part or 'gate'} {name}")
        self.before(name)
        return self.faults[name].popleft() if self.faults[name] else None

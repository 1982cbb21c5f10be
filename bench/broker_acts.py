"""What `bench.brokers` measures: brokers that come and go, and the same without a driver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from bench.shared_publishing import at_once
from kube.calls.api import ApiClient
from kube.kinds import CONFIGURATIONS, INSTANCES, PODS, TEMPLATES
from kube.objects import JsonObject
from kube.resources import Resource, Selection
from kube.stores.api import Store

T = TypeVar("T")

NAMESPACE = "default"
FEW, MANY, NONE = "few", "many", "none"
"""Configurations: with brokers, with brokers of many Instances, and without brokers."""

BETWEEN_SECONDS = 0.5
"""More than the pause of a worker that has made a broker: the limit of the rate is not met."""

MOST_SECONDS = 900.0


def configuration(name: str, **spec: Any) -> JsonObject:
    details = "descriptions: [one]"
    handler = {"name": "debugEcho", "discoveryDetails": details}
    body = {"apiVersion": "akri.sh/v0", "kind": "Configuration"}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {**body, "metadata": metadata, "spec": {"discoveryHandler": handler, **spec}}


def instance(owner: JsonObject, number: int, node: str) -> JsonObject:
    """As the driver of a node writes it for a local device."""
    name = owner["metadata"]["name"]
    reference = {"apiVersion": "akri.sh/v0", "kind": "Configuration", "name": name}
    metadata = {
        "name": f"{name}-{number:06x}",
        "namespace": NAMESPACE,
        "labels": {"moorage.dev/node": node},
        "ownerReferences": [{**reference, "uid": owner["metadata"]["uid"], "controller": True}],
    }
    spec = {
        "configurationName": name,
        "cdiName": f"akri.sh/{name}={number:06x}",
        "capacity": 1,
        "brokerProperties": {"DEBUG_ECHO_DESCRIPTION": f"place {number}"},
        "shared": False,
        "nodes": [node],
    }
    return {"apiVersion": "akri.sh/v0", "kind": "Instance", "metadata": metadata, "spec": spec}


@dataclass
class Seen(Generic[T]):
    """What a watch shows."""

    store: Store[T]
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def shows(self, name: str) -> T | None:
        return self.store.get(name, NAMESPACE)

    async def until(self, true: Callable[[], bool], since: float) -> float:
        """Seconds since then."""
        async with asyncio.timeout(MOST_SECONDS):
            while not true():
                self.changed.clear()
                await self.changed.wait()
        return time.perf_counter() - since


@asynccontextmanager
async def watched(
    client: ApiClient, selection: Selection, project: Callable[[JsonObject], T]
) -> AsyncIterator[Seen[T]]:
    seen = Seen(Store(client, selection, project))
    seen.store.subscribe(lambda _: seen.changed.set())
    task = asyncio.create_task(seen.store.run())
    try:
        await seen.store.synced.wait()
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])


def is_there(pod: JsonObject) -> bool:
    """Whether a Pod does not terminate."""
    return "deletionTimestamp" not in pod["metadata"]


def reason(body: JsonObject) -> str:
    """What the condition of a Configuration says of its brokers."""
    found = (body.get("status") or {}).get("conditions") or ()
    return str(next((each["reason"] for each in found if each["type"] == "BrokersReady"), ""))


@dataclass
class Times:
    """Seconds until a Pod is there, and until one is gone."""

    comes: list[float] = field(default_factory=list)
    goes: list[float] = field(default_factory=list)


@dataclass
class Found:
    """What was measured.

    Attributes:
        driver: Of brokers, when nothing else happens.
        least: Of the same objects, written by one client.
        pod: Of a Pod alone.
        beside: Of brokers while those of many Instances are made.
    """

    driver: Times = field(default_factory=Times)
    least: Times = field(default_factory=Times)
    pod: Times = field(default_factory=Times)
    beside: Times = field(default_factory=Times)
    lines: list[str] = field(default_factory=list)


class Bench:
    """The measured acts."""

    def __init__(self, client: ApiClient, seen: Seen[bool], node: str) -> None:
        self._client = client
        self._seen = seen
        self._node = node
        self._owners: dict[str, JsonObject] = {}
        self._made = 0

    async def configure(self, name: str, **spec: Any) -> None:
        body = configuration(name, **spec)
        self._owners[name] = await self._client.create(CONFIGURATIONS, body)

    async def pair(self, found: Found) -> None:
        """A broker, and the same objects without one."""
        copies = await self.broker(found.driver)
        await self.least(copies, found)
        await asyncio.sleep(BETWEEN_SECONDS)

    async def broker(self, times: Times) -> dict[Resource, JsonObject]:
        """An Instance comes and goes; copies of what the driver made for it."""
        body, name = self._new(FEW)
        since = time.perf_counter()
        await self._client.create(INSTANCES, body)
        times.comes.append(await self._shown(f"{name}-pod", since))
        names = {TEMPLATES: f"{name}-claim", PODS: f"{name}-pod"}
        copies = {kind: await self._copy(kind, each) for kind, each in names.items()}
        since = time.perf_counter()
        await self._client.delete(INSTANCES.at(name, NAMESPACE))
        times.goes.append(await self._gone(f"{name}-pod", since))
        return copies

    async def _shown(self, pod: str, since: float) -> float:
        return await self._seen.until(lambda: bool(self._seen.shows(pod)), since)

    async def _gone(self, pod: str, since: float) -> float:
        return await self._seen.until(lambda: not self._seen.shows(pod), since)

    def _new(self, configuration: str) -> tuple[JsonObject, str]:
        """An Instance, and its name."""
        self._made += 1
        body = instance(self._owners[configuration], self._made, self._node)
        return body, body["metadata"]["name"]

    async def _copy(self, kind: Resource, name: str) -> JsonObject:
        """The object without what makes it a broker's."""
        stored = await self._client.get(kind.at(name, NAMESPACE))
        metadata = {"name": f"copy-{name}", "namespace": NAMESPACE}
        heads = {each: stored[each] for each in ("apiVersion", "kind")}
        return {**heads, "metadata": metadata, "spec": stored["spec"]}

    async def least(self, copies: dict[Resource, JsonObject], found: Found) -> None:
        """As `broker`, of an Instance whose Configuration wants none."""
        body, name = self._new(NONE)
        pod = copies[PODS]["metadata"]["name"]
        paths = [kind.path_of(copy) for kind, copy in copies.items()]
        since = time.perf_counter()
        await self._client.create(INSTANCES, body)
        await self._client.create(TEMPLATES, copies[TEMPLATES])
        of_pod = time.perf_counter()
        await self._client.create(PODS, copies[PODS])
        found.least.comes.append(await self._shown(pod, since))
        found.pod.comes.append(time.perf_counter() - of_pod)
        since = time.perf_counter()
        await self._client.delete(INSTANCES.at(name, NAMESPACE))
        for path in paths:
            of_pod = time.perf_counter()
            await self._client.delete(path)
        found.least.goes.append(await self._gone(pod, since))
        found.pod.goes.append(time.perf_counter() - of_pod)

    async def arrive(self, count: int, nodes: list[str]) -> None:
        """Write so many Instances of one Configuration, which wants no brokers yet."""
        await self.configure(MANY)
        bodies = (instance(self._owners[MANY], n, nodes[n % len(nodes)]) for n in range(count))
        await at_once(partial(self._client.create, INSTANCES, body) for body in bodies)

    async def want(self, **spec: Any) -> None:
        await self._client.merge_patch(CONFIGURATIONS.at(MANY, NAMESPACE), {"spec": spec})

    async def templates(self) -> Sequence[JsonObject]:
        """Those of the many."""
        label = f"akri.sh/configuration={MANY}"
        return (await self._client.list(TEMPLATES.select(NAMESPACE, label_selector=label))).items

"""What the stories about kube share: a namespace, objects in it, and somebody who keeps count."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from uuid import uuid4

from kube.backoff import Backoff
from kube.calls.api import (
    AlreadyExistsError,
    ApiClient,
    NotFoundError,
    RetryableError,
    WriteOptions,
)
from kube.kinds import CONFIG_MAPS, NAMESPACES
from kube.objects import JsonObject, ObjectKey
from kube.stores.api import Added, Change, Deleted, Modified, Store, WatchSettings
from local_cluster.api import Cluster

EAGER = WatchSettings(backoff=Backoff(first_seconds=0.1, cap_seconds=0.5), page_size=100)
BRIEF = WriteOptions(timeout_seconds=2)


@dataclass(frozen=True, slots=True)
class View:
    """A version of a ConfigMap; the version makes it visible if something is told twice."""

    name: str
    version: int
    value: str


def project(obj: JsonObject) -> View:
    metadata = obj["metadata"]
    return View(metadata["name"], int(metadata["resourceVersion"]), obj["data"]["value"])


def a_config_map(namespace: str, name: str, value: str = "0") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"value": value},
    }


@dataclass
class Ledger:
    """Folds the changes of a store, and complains about each that does not fit."""

    contents: dict[ObjectKey, View] = field(default_factory=dict)
    told: set[View] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def take(self, change: Change[View]) -> None:
        match change:
            case Added(key, new):
                self.expect(key not in self.contents, change)
                self.tell(key, new, change)
            case Modified(key, old, new):
                self.expect(self.contents.get(key) == old and new.version > old.version, change)
                self.tell(key, new, change)
            case Deleted(key, old):
                self.expect(self.contents.pop(key, None) == old, change)

    def tell(self, key: ObjectKey, new: View, change: Change[View]) -> None:
        self.expect(new not in self.told, change)
        self.told.add(new)
        self.contents[key] = new

    def expect(self, is_so: bool, change: Change[View]) -> None:
        if not is_so:
            self.complaints.append(repr(change))


@dataclass
class Writer:
    """Writes at random to names that only it writes to, and remembers what was answered."""

    client: ApiClient
    namespace: str
    prefix: str
    chance: random.Random
    store: Store[View] | None = None
    answered: int = 0
    unanswered: int = 0

    async def run(self) -> None:
        while True:
            name = f"{self.prefix}-{self.chance.randrange(8)}"
            with suppress(AlreadyExistsError, NotFoundError):
                await self.write(name)

    async def write(self, name: str) -> None:
        try:
            answer = await self.one_write(name)
        except RetryableError:
            self.unanswered += 1
            await asyncio.sleep(0.1)
            return
        self.answered += 1
        if answer and self.store:
            self.store.note(answer)

    async def one_write(self, name: str) -> JsonObject | None:
        path = CONFIG_MAPS.at(name, self.namespace)
        match self.chance.randrange(4):
            case 0:
                body = a_config_map(self.namespace, name)
                return await self.client.create(CONFIG_MAPS, body, options=BRIEF)
            case 1:
                await self.client.delete(path, options=BRIEF)
                return None
            case _:
                patch = {"data": {"value": str(self.chance.random())}}
                return await self.client.merge_patch(path, patch, options=BRIEF)


async def new_namespace(client: ApiClient) -> str:
    """There is no controller to remove it; the cluster goes with the session."""
    name = f"kube-{uuid4().hex[:8]}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return name


@asynccontextmanager
async def following(
    client: ApiClient, namespace: str, settings: WatchSettings = EAGER
) -> AsyncIterator[tuple[Store[View], Ledger]]:
    store = Store(client, CONFIG_MAPS.select(namespace), project, settings=settings)
    ledger = Ledger()
    store.subscribe(ledger.take)
    task = asyncio.create_task(store.run())
    try:
        async with asyncio.timeout(30):
            await store.synced.wait()
        yield store, ledger
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def writing(*writers: Writer) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(writer.run()) for writer in writers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        done, _ = await asyncio.wait(tasks)
        for task in done:
            assert task.cancelled(), task


async def assert_equal_to_the_server(
    client: ApiClient, namespace: str, store: Store[View], ledger: Ledger
) -> None:
    """The store, the changes it told, and a fresh list must be one and the same."""
    assert await store.catch_up(30)
    truth = await client.list(CONFIG_MAPS.select(namespace))
    expected = {view.name: view for view in map(project, truth.items)}

    assert ledger.complaints == []
    assert {view.name: view for view in store} == expected
    assert {key.name: view for key, view in ledger.contents.items()} == expected


def compact_etcd(cluster: Cluster) -> None:
    """Drop all history of etcd up to this moment, over its JSON gateway."""
    revision = _etcd(cluster, "kv/range", {"key": "AA=="})["header"]["revision"]
    _etcd(cluster, "kv/compaction", {"revision": revision, "physical": True})


def _etcd(cluster: Cluster, call: str, body: JsonObject) -> JsonObject:
    request = urllib.request.Request(
        f"http://{cluster.address}:2379/v3/{call}", data=json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        answered: JsonObject = json.load(answer)
        return answered

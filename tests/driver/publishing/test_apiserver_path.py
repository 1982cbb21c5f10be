"""The path of a node, by what API server and kubelet of these versions can do."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from driver.api import NodeName
from driver.offer_paths import OfferPath
from driver.publishing import apiserver_path
from driver.publishing.apiserver_path import NodePath, TakenPath
from driver.server_versions import READINGS, FeaturesChangedError
from kube.calls.api import ApiClient, WriteOptions
from kube.calls.apiserver_reads import Server
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource

NODE = NodeName("node-a")


@dataclass
class FakeCluster:
    """An API server and the kubelet of one node.

    Attributes:
        is_new: Whether the API server keeps the fields that 1.36 keeps.
    """

    server_version: str = "v1.36.3"
    kubelet: str = "v1.36.3"
    is_new: bool = True
    node_reads: int = 0

    async def server(self) -> Server:
        return Server(self.server_version, datetime(2026, 11, 27, tzinfo=UTC))

    async def get(self, path: ObjectPath) -> JsonObject:
        assert path.name == NODE
        self.node_reads += 1
        return {"status": {"nodeInfo": {"kubeletVersion": self.kubelet}}}

    async def create(
        self, resource: Resource, body: dict[str, Any], *, options: WriteOptions
    ) -> JsonObject:
        assert options.dry_run
        if not self.is_new and resource.plural == "deviceclasses":
            return {**body, "spec": {}}
        return body

    def path(self, wanted: OfferPath = OfferPath.AUTO) -> NodePath:
        async def wait_for_others(_: OfferPath) -> None:
            pass

        return NodePath(cast("ApiClient", self), NODE, wanted, wait_for_others)


async def taken(cluster: FakeCluster, wanted: OfferPath = OfferPath.AUTO) -> TakenPath:
    return await cluster.path(wanted).take()


@pytest.mark.parametrize(
    ("kubelet", "path", "waits"),
    [
        ("v1.36.3", OfferPath.DRA, False),
        ("v1.37.2", OfferPath.DRA, False),
        ("v1.35.2", OfferPath.DEVICE_PLUGIN, True),
    ],
)
async def test_beside_a_new_api_server_the_kubelet_decides(
    kubelet: str, path: OfferPath, waits: bool
) -> None:
    found = await taken(FakeCluster(kubelet=kubelet))

    assert (found.path, found.waits_for_kubelet) == (path, waits)
    assert found.serves_slices


async def test_an_old_api_server_waits_for_no_kubelet() -> None:
    found = await taken(FakeCluster(kubelet="v1.35.2", is_new=False))

    assert (found.path, found.waits_for_kubelet) == (OfferPath.DEVICE_PLUGIN, False)


async def test_a_path_that_was_set_is_taken_whatever_the_kubelet_is() -> None:
    found = await taken(FakeCluster(kubelet="v1.35.2"), OfferPath.DRA)

    assert (found.path, found.waits_for_kubelet) == (OfferPath.DRA, False)


async def test_the_process_ends_once_the_kubelet_is_upgraded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apiserver_path, "KUBELET_SECONDS", 0.0)
    cluster = FakeCluster(kubelet="v1.35.2")
    path = cluster.path()
    await path.take()
    watching = asyncio.create_task(path.watch())
    reads = cluster.node_reads
    for _ in range(50):
        await asyncio.sleep(0)
    assert cluster.node_reads > reads
    assert not watching.done()

    cluster.kubelet = "v1.36.3"

    assert await why_it_ends(watching) == [FeaturesChangedError]


async def test_the_process_ends_once_the_api_server_is_upgraded_to_one_that_keeps_more() -> None:
    cluster = FakeCluster(server_version="v1.35.2", is_new=False)
    path = cluster.path()
    await path.take()
    watching = asyncio.create_task(path.watch())

    cluster.server_version, cluster.is_new = "v1.36.3", True
    for _ in range(READINGS):
        path.read_version("v1.36.3")

    assert await why_it_ends(watching) == [FeaturesChangedError]


async def why_it_ends(watching: asyncio.Task[None]) -> list[type[Exception]]:
    with pytest.raises(ExceptionGroup) as raised:
        await watching
    return [type(error) for error in raised.value.exceptions]

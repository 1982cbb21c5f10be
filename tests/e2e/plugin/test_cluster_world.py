"""The world follows the real API server: through restarts, late kinds and odd objects."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import pytest

from kube.calls.api import ApiClient, NotFoundError, connect
from kube.kinds import CLAIMS, DEFINITIONS, PODS
from kube.resources import Resource
from local_cluster.api import Cluster
from scheduler_plugin.accounting.world_changes import ClaimChanged, PodChanged, WorldChange
from scheduler_plugin.cluster import feeds as cluster_feeds
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import NO_QUEUE, AccountingSettings, QueueName
from tests.deploy.documents import CRDS
from tests.e2e.kube_world import EAGER, new_namespace
from tests.e2e.plugin.cluster_objects import Lives, known, world_from_lists

SETTINGS = AccountingSettings(default_queue=QueueName("q"))
SOON = 20.0


@pytest.fixture(scope="session")
def queues_served(apiserver: Cluster) -> None:
    apiserver.apply(CRDS / "queues.moorage.dev.yaml")
    apiserver.wait("crd/queues.moorage.dev", "condition=Established")


@pytest.fixture
async def client(apiserver: Cluster, queues_served: None) -> AsyncIterator[ApiClient]:
    async with connect(apiserver.kubeconfig) as connected:
        yield connected
    # aiohttp leaves TLS connections to close by themselves, which the end of the loop would stop.
    await asyncio.sleep(0.25)


@pytest.fixture
async def place(client: ApiClient) -> str:
    name = await new_namespace(client)
    account = {"metadata": {"name": "default", "namespace": name}}
    await client.create(Resource("", "v1", "serviceaccounts"), account)
    return name


@asynccontextmanager
async def following(
    client: ApiClient, pod_groups: Sequence[Resource] = ()
) -> AsyncIterator[ClusterWorld]:
    cluster = ClusterWorld(client, SETTINGS, pod_groups=pod_groups, watch=EAGER)
    task = asyncio.create_task(cluster.run())
    try:
        async with asyncio.timeout(SOON):
            await cluster.in_sync()
        yield cluster
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def caught_up(cluster: ClusterWorld) -> bool:
    return await cluster.catch_up(asyncio.get_running_loop().time(), SOON)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not condition():  # noqa: ASYNC110  There is nobody to wake this.
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("seed", range(3))
async def test_world_that_followed_equals_one_of_what_is_listed(
    client: ApiClient, place: str, seed: int
) -> None:
    lives = Lives(client, place, random.Random(seed))
    await lives.go_on(60)
    charged = 0
    async with following(client) as cluster:
        lives.cluster = cluster
        for _ in range(4):
            await lives.go_on(60)

            assert await caught_up(cluster)
            found = known(cluster.world)
            assert found == known(await world_from_lists(client, SETTINGS))
            charged += len(found["charged"]) + len(found["orphans"])

    assert charged, "nothing was ever charged"


async def test_restarted_api_server_costs_the_world_nothing(
    apiserver: Cluster, client: ApiClient, place: str
) -> None:
    part = apiserver.part("kube-apiserver")
    async with following(client) as cluster:
        crew = [Lives(client, place, random.Random(n), cluster) for n in range(3)]
        work = asyncio.gather(*(lives.go_on(150) for lives in crew))
        await until(lambda: sum(lives.answered for lives in crew) > 60)
        await asyncio.to_thread(part.kill)
        await asyncio.to_thread(part.start)
        await work

        await until(lambda: cluster.why_not_ready() == "")
        async with asyncio.timeout(SOON):
            assert await caught_up(cluster)
        assert known(cluster.world) == known(await world_from_lists(client, SETTINGS))


async def test_kind_that_is_served_later_is_followed_then(
    client: ApiClient, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_feeds, "PROBE_SECONDS", 0.2)
    groups = a_kind()
    async with following(client, [groups]) as cluster:
        assert cluster.why_not_ready() == ""
        lives = Lives(client, place, random.Random(0))
        await make_pod(client, place, group="g")
        await until(lambda: cluster.world.facts.pod_named(place, "p") is not None)
        pod = cluster.world.facts.pod_named(place, "p")
        assert pod is not None
        assert cluster.world.facts.queue_of(pod) == SETTINGS.default_queue

        await serve(client, groups)
        await until(lambda: cluster.world.facts.queue_of(pod) == NO_QUEUE)
        queue = lives.queue()
        await create_served(client, groups, place, {"queue": queue})

        await until(lambda: cluster.world.facts.queue_of(pod) == queue)
        assert cluster.why_not_ready() == ""


async def test_object_that_becomes_unreadable_counts_as_before_until_it_is_gone(
    client: ApiClient, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    groups = a_kind()
    await serve(client, groups)
    await create_served(client, groups, place, {"queue": "research"})
    pod = await make_pod(client, place, group="g")
    async with following(client, [groups]) as cluster:
        facts = cluster.world.facts
        view = facts.pod_named(place, pod)
        assert view is not None
        path = groups.at("g", place)

        await client.merge_patch(path, {"spec": {"queue": 5}})
        assert await caught_up(cluster)
        assert facts.queue_of(view) == "research"
        assert f"selection={groups.select()} key={place}/g" in caplog.text
        assert "spec.queue: 5 is not a string." in caplog.text

        await client.merge_patch(path, {"spec": {"queue": "robots"}})
        assert await caught_up(cluster)
        assert facts.queue_of(view) == "robots"

        await client.merge_patch(path, {"spec": {"queue": [1]}})
        await client.delete(path)
        assert await caught_up(cluster)
        assert facts.queue_of(view) == NO_QUEUE
        missing = facts.pod_queues.missing(view)
        assert missing is not None
        assert missing.gone


async def test_object_that_was_never_readable_is_not_known(client: ApiClient, place: str) -> None:
    groups = a_kind()
    await serve(client, groups)
    await create_served(client, groups, place, {"queue": 5})
    pod = await make_pod(client, place, group="g")
    async with following(client, [groups]) as cluster:
        view = cluster.world.facts.pod_named(place, pod)

        assert view is not None
        assert cluster.why_not_ready() == ""
        assert cluster.world.facts.queue_of(view) == NO_QUEUE
        assert cluster.world.facts.awaits(view)


async def test_refreshed_claim_is_known_at_once_and_waiters_hear_of_it(
    client: ApiClient, place: str
) -> None:
    changes: list[WorldChange] = []
    async with following(client) as cluster:
        facts = cluster.world.facts
        cluster.subscribe(changes.append)
        made = await client.create(CLAIMS, a_claim(place))
        waiting = asyncio.create_task(
            cluster.wait_for(lambda: facts.claim_named(place, "c") is not None, SOON)
        )

        found = await cluster.refresh_claim(place, "c")

        assert found is not None
        assert found.resource_version == made["metadata"]["resourceVersion"]
        assert facts.claim_named(place, "c") == found
        assert await waiting
        assert ClaimChanged(found.uid) in changes
        assert await cluster.refresh_claim(place, "none") is None
        assert not await cluster.wait_for(lambda: False, 0.01)


async def test_every_version_of_a_claim_is_known_by_its_resource_version(
    client: ApiClient, place: str
) -> None:
    """What changes nothing that counts still changes what a write must be based on."""
    await client.create(CLAIMS, a_claim(place))
    async with following(client) as cluster:
        patch = {"metadata": {"annotations": {"note": "x"}}}
        answer = await client.merge_patch(CLAIMS.at("c", place), patch)
        assert await caught_up(cluster)

        claim = cluster.world.facts.claim_named(place, "c")

        assert claim is not None
        assert claim.resource_version == answer["metadata"]["resourceVersion"]


async def test_pod_without_devices_is_read_and_not_kept(client: ApiClient, place: str) -> None:
    plain = await make_pod(client, place, name="plain", claims=())
    user = await make_pod(client, place, name="user")
    changes: list[WorldChange] = []
    async with following(client) as cluster:
        cluster.subscribe(changes.append)
        found = await cluster.refresh_pod(place, plain)

        assert found is not None
        assert not found.may_use_devices
        assert cluster.world.facts.pod(found.uid) is None
        known_pod = await cluster.refresh_pod(place, user)
        assert known_pod is not None
        assert cluster.world.facts.pod(known_pod.uid) == known_pod
        assert PodChanged(found.uid) not in changes
        assert await cluster.refresh_pod(place, "none") is None


def a_kind() -> Resource:
    """PodGroups of an API group that nobody else has."""
    return Resource(f"g{uuid4().hex[:8]}.example.com", "v1", "podgroups")


async def serve(client: ApiClient, kind: Resource) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": kind.group,
        "scope": "Namespaced",
        "names": {"plural": kind.plural, "kind": "PodGroup"},
        "versions": [version],
    }
    metadata = {"name": f"{kind.plural}.{kind.group}"}
    body = {"apiVersion": DEFINITIONS.api_version, "kind": "CustomResourceDefinition"}
    await client.create(DEFINITIONS, {**body, "metadata": metadata, "spec": spec})


async def create_served(client: ApiClient, kind: Resource, place: str, spec: object) -> None:
    """Create the object `g`, as soon as its kind is served."""
    metadata = {"name": "g", "namespace": place}
    body = {"apiVersion": kind.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}
    async with asyncio.timeout(SOON):
        while True:
            with suppress(NotFoundError):
                await client.create(kind, body)
                return
            await asyncio.sleep(0.05)


def a_claim(place: str) -> dict[str, object]:
    request = {"name": "req", "exactly": {"deviceClassName": "camera"}}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": place},
        "spec": {"devices": {"requests": [request]}},
    }


async def make_pod(
    client: ApiClient,
    place: str,
    *,
    name: str = "p",
    group: str = "",
    claims: Sequence[str] = ("c",),
) -> str:
    metadata: dict[str, object] = {"name": name, "namespace": place}
    if group:
        metadata["annotations"] = {"pod-group-name": group}
    spec = {
        "containers": [{"name": "main", "image": "none"}],
        "resourceClaims": [{"name": c, "resourceClaimName": c} for c in claims],
        "automountServiceAccountToken": False,
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    await client.create(PODS, body)
    return name

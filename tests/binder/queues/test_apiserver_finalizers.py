"""The finalizer of charged Queues, written on a real socket to an API server that is a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from binder.queues.apiserver_finalizers import (
    FinalizerSettings,
    FinalizerWriter,
    FinalizingBinder,
)
from kube.backoff import Backoff
from kube.calls.api import ApiClient, connect
from kube.objects import JsonObject
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.bindings import BindFailed, BindRequest, Bound, ClaimsChanged, Outcome
from scheduler_plugin.objects.names import CHARGES_FINALIZER, PodUid, Queue, QueueName
from scheduler_plugin.objects.queue_objects import parse_queue
from tests.fakes.fence import FakeFence
from tests.fakes.scripted_apiserver import FakeScript, refuses, says, scripted
from tests.scheduler_plugin.builders import a_pod, a_queue, a_queue_object, a_world, put

VISION = QueueName("vision")
SOON = FinalizerSettings(tick_seconds=0.01, backoff=Backoff(first_seconds=0.01, cap_seconds=0.01))
RUNNING = a_pod("a", queue="vision", node="n", requests={"akri.sh/onvif": 1})
REQUEST = BindRequest(
    namespace="default", name="a", uid=PodUid("uid-of-a"), node="n", queue=VISION, claims=()
)


@dataclass
class Cluster:
    """The world, and what is noted of own writes."""

    world: World

    def note_queue(self, obj: JsonObject) -> None:
        queue = parse_queue(obj)
        assert isinstance(queue, Queue)
        self.world.put_queue(queue)


@dataclass
class FakeBinder:
    """Says what it was asked."""

    asked: list[str] = field(default_factory=list)

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        self.asked.append("owners")
        return None

    async def roll_back(self, request: BindRequest) -> bool:
        self.asked.append("take back")
        return True

    async def bind(self, request: BindRequest) -> Outcome:
        self.asked.append("bind")
        return Bound()


@dataclass
class Scene:
    """A keeper of Queues between a world and an API server that are a test's."""

    fake: FakeScript
    cluster: Cluster
    writer: FinalizerWriter
    fence: FakeFence
    binder: FakeBinder = field(default_factory=FakeBinder)

    @property
    def finalizing(self) -> FinalizingBinder:
        return FinalizingBinder(self.binder, self.writer)

    @property
    def vision(self) -> Queue:
        found = self.cluster.world.facts.tree.get(VISION)
        assert found is not None
        return found


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        yield a_scene(fake, client)


def a_scene(fake: FakeScript, client: ApiClient) -> Scene:
    cluster, fence = Cluster(a_world(a_queue(), RUNNING)), FakeFence()
    writer = FinalizerWriter(client, cluster.world, fence, cluster.note_queue, SOON)
    return Scene(fake, cluster, writer, fence)


def as_written(*, present: bool) -> dict[str, Any]:
    body = a_queue_object()
    body["metadata"]["finalizers"] = [CHARGES_FINALIZER] if present else []
    return body


async def test_finalizer_is_there_before_anything_is_written(scene: Scene) -> None:
    scene.fake.will(says(as_written(present=True)))

    assert await scene.finalizing.write_owners(REQUEST) is None
    assert await scene.finalizing.bind(REQUEST) == Bound()

    (seen,) = scene.fake.seen
    assert (seen.method, seen.path) == ("PATCH", "/apis/moorage.dev/v1alpha1/queues/vision")
    assert seen.query["fieldManager"] == CHARGES_FINALIZER
    assert seen.headers["Content-Type"] == "application/apply-patch+yaml"
    assert seen.body["metadata"] == {
        "name": "vision",
        "uid": "uid-of-vision",
        "finalizers": [CHARGES_FINALIZER],
    }
    assert "spec" not in seen.body
    assert scene.binder.asked == ["owners", "bind"]


async def test_many_binds_at_one_time_write_it_once(scene: Scene) -> None:
    scene.fake.will(says(as_written(present=True)))

    await asyncio.gather(*(scene.finalizing.bind(REQUEST) for _ in range(5)))

    assert len(scene.fake.seen) == 1
    assert scene.binder.asked == ["bind"] * 5


@pytest.mark.parametrize("code", [404, 409, 403, 500])
async def test_nothing_is_bound_where_the_queue_could_go(scene: Scene, code: int) -> None:
    """It is gone, is another object by now, or the API server does not answer."""
    scene.fake.will(refuses(code))

    found = await scene.finalizing.bind(REQUEST)

    assert isinstance(found, BindFailed)
    assert found.is_certain
    assert found.why.startswith('Queue "vision": its finalizer could not be added: ')
    assert scene.binder.asked == ["take back"]


async def test_nothing_is_written_without_the_lease(scene: Scene) -> None:
    scene.fence.closed = "The Lease is another's."

    found = await scene.finalizing.write_owners(REQUEST)

    assert isinstance(found, BindFailed)
    assert "The Lease is another's." in found.why
    assert scene.fake.seen == []


async def test_nothing_new_is_charged_to_a_queue_that_is_on_its_way_out(scene: Scene) -> None:
    put(scene.cluster.world, replace(a_queue(), is_deleting=True))

    found = await scene.finalizing.bind(REQUEST)

    assert isinstance(found, BindFailed)
    assert "is being deleted" in found.why


async def test_binding_waits_for_a_removal_under_way_and_undoes_it(scene: Scene) -> None:
    world = scene.cluster.world
    world.delete_pod(RUNNING.uid)
    put(world, replace(a_queue(), has_finalizer=True))
    scene.fake.will(says(as_written(present=False)), says(as_written(present=True)))
    removal = asyncio.create_task(scene.writer.write_under_lock(VISION, present=False))
    await asyncio.sleep(0)
    put(world, RUNNING)

    assert await scene.finalizing.bind(REQUEST) == Bound()
    await removal

    assert ["finalizers" in seen.body["metadata"] for seen in scene.fake.seen] == [False, True]
    assert scene.vision.has_finalizer


async def test_charge_that_began_otherwise_is_found_and_its_end_too(scene: Scene) -> None:
    scene.fake.will(refuses(500), says(as_written(present=True)), says(as_written(present=False)))
    running = asyncio.create_task(scene.writer.run())
    try:
        await scene.fake.has_seen(2)
        async with asyncio.timeout(5):
            while not scene.vision.has_finalizer:  # noqa: ASYNC110  There is nobody to wake this.
                await asyncio.sleep(0.01)
        scene.cluster.world.delete_pod(RUNNING.uid)
        put(scene.cluster.world, replace(scene.vision, is_deleting=True))
        scene.writer.changed()
        *_, last = await scene.fake.has_seen(3)
    finally:
        running.cancel()
        await asyncio.wait([running])

    assert last.body["metadata"] == {"name": "vision", "uid": "uid-of-vision"}

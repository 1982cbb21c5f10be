"""Statuses of Queues are written, whatever the API server answers about one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from binder.queues.apiserver_queues import QueueStatusWriter, StatusSettings
from kube.backoff import Backoff
from kube.calls.api import connect
from scheduler_plugin.accounting.figures import quota_excess
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import InstanceView
from tests.fakes.fence import FakeFence
from tests.fakes.pods import running
from tests.fakes.queues import FakeQueues
from tests.fakes.scripted_apiserver import (
    FakeScript,
    Reply,
    hangs,
    lists,
    refuses,
    scripted,
)
from tests.scheduler_plugin.builders import (
    a_pod,
    a_queue,
    a_queue_object,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
)

QUEUES = ("broken", "fine")
NEVER_AGAIN = StatusSettings(backoff=Backoff(first_seconds=1e9, cap_seconds=1e9))


def failing_at_one(status: int, written: dict[str, asyncio.Event]) -> Reply:
    """Two Queues; the write of one's status fails, and that of the other is heard of."""
    objects = [a_queue_object(name) for name in QUEUES]
    for one in objects:
        one["metadata"]["resourceVersion"] = "1"

    async def reply(request: web.Request) -> web.StreamResponse:
        name = request.path.split("/")[-2]
        if request.method == "PATCH":
            written[name].set()
            return await refuses(status, "InternalError")(request)
        return await (hangs if "watch" in request.query else lists(*objects, version=1))(request)

    return reply


@pytest.mark.parametrize("status", [500, 403])
async def test_where_one_status_is_not_taken_the_others_are_written(
    tmp_path: Path, status: int
) -> None:
    written = {name: asyncio.Event() for name in QUEUES}
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, failing_at_one(status, written))
        writer = QueueStatusWriter(client, a_world(*map(a_queue, QUEUES)), FakeFence(), NEVER_AGAIN)
        async with running(writer.run()), asyncio.timeout(30):
            await asyncio.gather(*(one.wait() for one in written.values()))


async def test_while_the_api_server_is_away_it_is_not_asked_for_each(tmp_path: Path) -> None:
    written = {name: asyncio.Event() for name in QUEUES}
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, failing_at_one(503, written))
        writer = QueueStatusWriter(client, a_world(*map(a_queue, QUEUES)), FakeFence(), NEVER_AGAIN)
        async with running(writer.run()), asyncio.timeout(30):
            await written["broken"].wait()
            await fake.has_seen(3)

    assert [seen.path.split("/")[-2] for seen in fake.seen if seen.method == "PATCH"] == ["broken"]


async def test_an_older_definition_gets_the_status_that_it_has(tmp_path: Path) -> None:
    """Helm leaves definitions as they are: the plugin may be the first that is upgraded."""
    queues = FakeQueues(
        *(a_queue_object(name, onvif=(1, 2)) for name in QUEUES),
        unknown=frozenset({"summary", "waiting"}),
    )
    world = a_world(*(a_queue(name, onvif=(1, 2)) for name in QUEUES))
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, queues.reply)
        writer = QueueStatusWriter(client, world, FakeFence())
        async with running(writer.run()):
            await queues.until_written(2)
            put(world, an_allocated_claim("cam", "a", queue="fine"))
            writer.changed()
            status = await queues.until_written(3)

    assert status["usage"] == {"onvif": 1}
    assert not {"summary", "waiting"} & status.keys()
    assert queues.refused == 1, "it is tried once for all of them"


async def test_a_definition_that_has_the_fields_by_now_gets_them(tmp_path: Path) -> None:
    soon = StatusSettings(plain_seconds=0.5, recount_seconds=0.1)
    queues = FakeQueues(a_queue_object("fine", onvif=(1, 2)), unknown=frozenset({"summary"}))
    world = a_world(a_queue("fine", onvif=(1, 2)))
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, queues.reply)
        async with running(QueueStatusWriter(client, world, FakeFence(), soon).run()):
            plain = await queues.until_written(1)
            queues.unknown = frozenset()
            status = await queues.until_written(2)

    assert "summary" not in plain
    assert status["summary"] == "onvif 0/1/2"


async def test_pods_that_wait_for_a_moment_and_change_no_figure_cost_no_write(
    tmp_path: Path,
) -> None:
    """Pods that join what is charged already come and go in thousands."""
    seldom = StatusSettings(recount_seconds=3600.0)
    queues = FakeQueues(a_queue_object("fine", onvif=(1, 2)))
    claim = an_allocated_claim("cam", "a", queue="fine")
    world = a_world(a_queue("fine", onvif=(1, 2)), claim)
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, queues.reply)
        writer = QueueStatusWriter(client, world, FakeFence(), seldom)
        async with running(writer.run()):
            first = await queues.until_written(1)
            for number in range(20):
                pod = a_pod(f"joins-{number}", queue="fine", claims=["cam"])
                put(world, pod)
                world.ledger.touch([pod.queue])
                writer.changed()
                await asyncio.sleep(0.1)
                world.delete_pod(pod_uid(pod.name))
            put(world, an_allocated_claim("second", "b", queue="fine"))
            put(world, a_pod("stays", queue="fine", claims=["cam"]))
            writer.changed()
            last = await queues.until_written(2)

    assert first["waiting"] == 0
    assert (last["usage"], last["waiting"]) == ({"onvif": 2}, 1)
    assert len(queues.written) == 2


async def test_a_number_of_waiting_pods_that_stays_is_shown_soon(tmp_path: Path) -> None:
    soon = StatusSettings(recount_seconds=0.1)
    objects = a_queue_object("top"), a_queue_object("fine", parent="top", onvif=(1, 2))
    queues = FakeQueues(*objects)
    claim = an_allocated_claim("cam", "a", queue="fine")
    world = a_world(a_queue("top"), a_queue("fine", parent="top", onvif=(1, 2)), claim)
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, queues.reply)
        async with running(QueueStatusWriter(client, world, FakeFence(), soon).run()):
            await queues.until_written(2)
            put(world, a_pod("joins", queue="fine", claims=["cam"]))
            await queues.until_written(4)

    assert [status["waiting"] for status in queues.written] == [0, 0, 1, 1]


async def test_a_quota_of_more_than_there_is_becomes_a_condition_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event touches the queue: time passes, and devices come."""
    soon = StatusSettings(excess_seconds=0.05)
    monkeypatch.setattr(quota_excess, "LASTING_SECONDS", 0.3)
    queues = FakeQueues(a_queue_object("fine", onvif=(2, 2)))
    world = a_world(a_queue("fine", onvif=(2, 2)))
    onvif = ResourceKey("onvif")
    world.put_configuration(onvif)
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, queues.reply)
        async with running(QueueStatusWriter(client, world, FakeFence(), soon).run()):
            await queues.until_written(2)
            world.put_instance(InstanceView("onvif-1", onvif, ("node-a",), 2))
            await queues.until_written(3)

    told = [[c["type"] for c in status["conditions"]] for status in queues.written]
    assert told == [["Accepted"], ["Accepted", "QuotaExceedsDevices"], ["Accepted"]]


def _always(fake: FakeScript, reply: Reply) -> None:
    fake.will(*[reply] * 100)

"""Statuses of Queues are written, whatever the API server answers about one of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from kube.api import connect
from scheduler_plugin.cluster import apiserver_queues
from scheduler_plugin.cluster.apiserver_queues import QueueStatusWriter
from tests.kube.fake_apiserver import (
    FakeApiServer,
    Reply,
    fake_apiserver,
    hangs,
    lists,
    refuses,
)
from tests.scheduler_plugin.builders import a_queue, a_queue_object, a_world
from tests.scheduler_plugin.fake_pods import Fence, running

QUEUES = ("broken", "fine")


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(apiserver_queues, "SHORTEST_SECONDS", 3600.0)
    written = {name: asyncio.Event() for name in QUEUES}
    async with fake_apiserver(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, failing_at_one(status, written))
        writer = QueueStatusWriter(client, a_world(*map(a_queue, QUEUES)), Fence())
        async with running(writer.run()), asyncio.timeout(30):
            await asyncio.gather(*(one.wait() for one in written.values()))


async def test_while_the_api_server_is_away_it_is_not_asked_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apiserver_queues, "SHORTEST_SECONDS", 3600.0)
    written = {name: asyncio.Event() for name in QUEUES}
    async with fake_apiserver(tmp_path) as fake, connect(fake.kubeconfig) as client:
        _always(fake, failing_at_one(503, written))
        writer = QueueStatusWriter(client, a_world(*map(a_queue, QUEUES)), Fence())
        async with running(writer.run()), asyncio.timeout(30):
            await written["broken"].wait()
            await fake.has_seen(3)

    assert [seen.path.split("/")[-2] for seen in fake.seen if seen.method == "PATCH"] == ["broken"]


def _always(fake: FakeApiServer, reply: Reply) -> None:
    fake.will(*[reply] * 100)

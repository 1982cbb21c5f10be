"""A replica that stands by asks the leader, or says why it cannot and what to type instead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aiohttp import web

from kube.api import ApiClient, JsonObject, NotFoundError, ObjectPath
from scheduler_plugin.dashboard import http_leader
from scheduler_plugin.dashboard.http_leader import CannotAskError, LeaderPages
from scheduler_plugin.extender.kube_scheduler_lease import LeaseSettings
from scheduler_plugin.extender.listening import Listening

LEASE = LeaseSettings(namespace="moorage-system", name="moorage-scheduler", identity="standby")


@dataclass
class FakeCluster:
    """A Lease and the pods that there are, each with its IP address."""

    holder: str = "leader_2f1c"
    pods: dict[str, str] = field(default_factory=lambda: {"leader": "127.0.0.1"})
    asked: list[str] = field(default_factory=list)

    async def get(self, path: ObjectPath, **_: Any) -> JsonObject:
        self.asked.append(f"{path.resource.plural} {path.namespace}/{path.name}")
        if path.resource.plural == "leases":
            return {"spec": {"holderIdentity": self.holder}}
        if path.name not in self.pods:
            raise NotFoundError(f"{path.name} is not there")
        return {"status": {"podIP": self.pods[path.name]}}


@dataclass
class FakeLeader:
    """Its pages."""

    port: int = 0
    status: int = 200
    body: Any = field(default_factory=lambda: {"why": {"pod": "ns/p"}, "place": "2 of 7"})
    hangs: bool = False
    seen: list[web.Request] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        if self.hangs:
            await asyncio.Event().wait()
        return web.json_response(self.body, status=self.status)


@asynccontextmanager
async def serving(leader: FakeLeader) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/{path:.*}", leader.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        leader.port = runner.addresses[0][1]
        yield
    finally:
        await runner.cleanup()


@pytest.fixture
async def leader() -> AsyncIterator[FakeLeader]:
    found = FakeLeader()
    async with serving(found):
        yield found


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


class Clock:
    """Goes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def pages(
    cluster: FakeCluster, port: int, host: str = "", clock: Clock | None = None
) -> LeaderPages:
    listening = Listening(host=host, port=port, tls=None)
    return LeaderPages(cast(ApiClient, cluster), LEASE, listening, clock or Clock())


async def test_the_leader_is_asked_with_the_viewers_own_token(
    cluster: FakeCluster, leader: FakeLeader
) -> None:
    found = await pages(cluster, leader.port).pod("alice", "ns", "p")

    assert found == leader.body
    (request,) = leader.seen
    assert request.path_qs == "/dashboard/api/pods/ns/p?here=true"
    assert request.headers["Authorization"] == "Bearer alice"
    assert cluster.asked == [
        "leases moorage-system/moorage-scheduler",
        "pods moorage-system/leader",
    ]


async def test_whether_it_can_be_asked_is_found_without_a_token_and_remembered(
    cluster: FakeCluster, leader: FakeLeader
) -> None:
    clock = Clock()
    asker = pages(cluster, leader.port, clock=clock)

    assert [await asker.why_not() for _ in range(3)] == ["", "", ""]
    assert [request.path for request in leader.seen] == ["/healthz"]
    assert "Authorization" not in leader.seen[0].headers
    leader.status = 503
    clock.now += http_leader.REMEMBERED_SECONDS
    assert "status 503" in await asker.why_not()


@pytest.mark.parametrize(
    ("holder", "said"),
    [
        ("", "no replica holds Lease moorage-system/moorage-scheduler."),
        ("standby_77", "it is this replica, which is about to begin."),
        ("gone_1", "there is no pod moorage-system/gone."),
        ("new_1", "pod moorage-system/new has no IP address yet."),
    ],
)
async def test_who_is_not_there_is_said(cluster: FakeCluster, holder: str, said: str) -> None:
    cluster.holder = holder
    cluster.pods["new"] = ""

    assert await pages(cluster, 1).why_not() == f"The leader could not be asked: {said}"


async def test_where_pages_listen_on_loopback_the_command_is_told(cluster: FakeCluster) -> None:
    closed = pages(cluster, 10262, host="127.0.0.1")
    with pytest.raises(CannotAskError) as raised:
        await closed.pod("alice", "ns", "p")
    cluster.holder = "machine_1"
    outside = await pages(cluster, 10262, host="127.0.0.1").why_not()

    assert str(raised.value).endswith(
        "Look at it with: kubectl -n moorage-system port-forward pod/leader 10262"
    )
    assert outside.endswith('Forward port 10262 of loopback on host "machine".')


async def test_a_leader_that_hangs_costs_no_more_than_a_moment(
    cluster: FakeCluster, leader: FakeLeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_leader, "WAIT_SECONDS", 0.05)
    leader.hangs = True

    with pytest.raises(CannotAskError, match=r"did not answer within 0\.05 s"):
        await pages(cluster, leader.port).pod("alice", "ns", "p")


async def test_a_leader_that_is_gone_is_looked_for_anew(
    cluster: FakeCluster, leader: FakeLeader
) -> None:
    cluster.pods["leader"] = "127.0.0.2"
    asker = pages(cluster, leader.port)
    with pytest.raises(CannotAskError, match="could not be asked"):
        await asker.pod("alice", "ns", "p")
    cluster.pods["leader"] = "127.0.0.1"

    assert (await asker.pod("alice", "ns", "p"))["place"] == "2 of 7"


@pytest.mark.parametrize("body", [{"place": "1 of 1"}, ["why", "place"], "why place"])
async def test_an_answer_of_another_version_is_none(
    cluster: FakeCluster, leader: FakeLeader, body: Any
) -> None:
    leader.body = body

    with pytest.raises(CannotAskError, match="another version"):
        await pages(cluster, leader.port).pod("alice", "ns", "p")


async def test_what_the_leader_refuses_is_told(cluster: FakeCluster, leader: FakeLeader) -> None:
    leader.status, leader.body = 403, "no"

    with pytest.raises(CannotAskError, match="status 403"):
        await pages(cluster, leader.port).pod("alice", "ns", "p")

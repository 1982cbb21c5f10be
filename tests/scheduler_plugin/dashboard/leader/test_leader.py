"""The elected plugin answers the dashboard over mutual TLS, and no other client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import msgspec
import pytest
from aiohttp import ClientError, ClientSession

from kube.live_tls import TlsCredential, client_context
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard.leader import http_answers, http_leader
from scheduler_plugin.dashboard.leader.answers import PodAnswer
from scheduler_plugin.dashboard.leader.credentials import (
    HOST,
    LIFE,
    NAMES,
    certificates_in,
    new_certificates,
    secret_data,
)
from scheduler_plugin.dashboard.leader.http_answers import LeaderAnswers, answers_app
from scheduler_plugin.dashboard.leader.http_leader import CannotAskError, Leader, LeaderSettings
from scheduler_plugin.extender.mutual_certificates import mutual_certificates
from scheduler_plugin.objects.names import PodUid, QueueName
from tests.fakes.fence import FakeFence
from tests.fakes.leader_server import (
    LEADER,
    LEASE,
    SECRET,
    FakeLeaderServer,
)
from tests.fakes.waiting import FakeWaitingPods
from tests.scheduler_plugin.builders import a_pod, a_world, amounts, put

VISION = QueueName("vision")


class Clock:
    """Goes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Running:
    """A plugin that answers the dashboard."""

    server: FakeLeaderServer
    pods: FakeWaitingPods
    world: World
    port: int
    clock: Clock = field(default_factory=Clock)
    askers: list[Leader] = field(default_factory=list)

    def asker(self, port: int | None = None) -> Leader:
        settings = LeaderSettings(
            lease=LEASE, port=self.port if port is None else port, secret=SECRET
        )
        self.askers.append(Leader(self.server.client, settings, self.clock))
        return self.askers[-1]

    async def end(self, serving: asyncio.Task[NoReturn]) -> None:
        for asker in self.askers:
            await asker.aclose()
        serving.cancel()
        await asyncio.wait([serving])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    server, pods, world, port = FakeLeaderServer(), FakeWaitingPods(), a_world(), free_port()
    answers = LeaderAnswers(server.client, ("127.0.0.1", port), SECRET, FakeFence())
    serving = asyncio.create_task(answers.run(answers_app(world, pods)))
    found = Running(server, pods, world, port)
    async with asyncio.timeout(10):
        while await found.asker().why_not():  # noqa: ASYNC110  Nothing tells of it.
            await asyncio.sleep(0.02)
    server.asked.clear()
    yield found
    await found.end(serving)


def a_hold(uid: str) -> Hold:
    return Hold(PodUid(uid), "default/w", VISION, amounts(onvif=1), amounts(), node="node-a")


async def test_places_and_holds_are_told(running: Running) -> None:
    asker, pod = running.asker(), a_pod("w", queue="vision")
    before = await asker.pod("default", "w")
    put(running.world, pod)
    running.world.hold(a_hold(pod.uid))
    found = await asker.pod("default", "w")

    place = '2 of 7 pods that wait in queue "vision"'
    waits = PodAnswer(place=place, reason="OverLimit", message="It does not fit.")
    assert before == waits
    assert found == msgspec.structs.replace(waits, held='Held: room on node "node-a".')
    assert await asker.pod("default", "other") == PodAnswer(place="")


async def test_lease_pod_and_certificate_are_read_once_for_a_while(running: Running) -> None:
    asker = running.asker()
    for _ in range(3):
        assert await asker.why_not() == ""
        await asker.pod("default", "w")

    assert sorted(running.server.asked) == [
        "GET leader",
        "GET moorage-dashboard-tls",
        "GET moorage-scheduler",
    ]


def a_strangers_credential(running: Running, kind: str) -> TlsCredential | None:
    ours = certificates_in({"data": running.server.data})
    assert ours is not None
    other = new_certificates(datetime.now(UTC))
    if kind == "of another authority":
        return TlsCredential(other.client, other.client_key, ours.authority)
    return TlsCredential(ours.server, ours.server_key, ours.authority)


@pytest.mark.parametrize("kind", ["of another authority", "the server's own"])
async def test_a_client_without_the_dashboards_certificate_is_told_nothing(
    running: Running, kind: str
) -> None:
    credential = a_strangers_credential(running, kind)
    assert credential is not None
    url, tls = f"https://127.0.0.1:{running.port}/pods/default/w", client_context(credential)
    async with ClientSession() as session:
        with pytest.raises((ClientError, OSError)):
            async with session.get(url, ssl=tls, server_hostname=HOST) as answer:
                answer.raise_for_status()


async def test_a_name_that_the_authority_signed_and_nobody_hears_is_refused() -> None:
    """The authority signs no such name; were there one, the name would not be heard."""
    server, pods, port = FakeLeaderServer(), FakeWaitingPods(), free_port()
    names = msgspec.convert({**msgspec.to_builtins(NAMES), "client": "other"}, type(NAMES))
    server.data = dict(secret_data(mutual_certificates(names, LIFE, datetime.now(UTC))))
    answers = LeaderAnswers(server.client, ("127.0.0.1", port), SECRET, FakeFence())
    app = answers_app(a_world(), pods)
    serving = asyncio.create_task(answers.run(app))
    found = Running(server, pods, a_world(), port)
    async with asyncio.timeout(10):
        while "status 403" not in (said := await found.asker().why_not()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # Until there is a certificate.
    await found.end(serving)

    assert 'Your certificate names "other"' in said


async def test_a_plugin_that_does_not_know_yet_says_why(running: Running) -> None:
    running.pods.not_told = "Which pods wait is not known yet."
    asker = running.asker()

    assert (await asker.why_not()).endswith("status 503: Which pods wait is not known yet.")
    with pytest.raises(CannotAskError, match="not known yet"):
        await asker.pod("default", "w")


async def test_whether_it_can_be_asked_is_looked_at_anew_after_a_while(running: Running) -> None:
    asker = running.asker()
    assert await asker.why_not() == ""
    running.pods.not_told = "Which pods wait is not known yet."

    assert await asker.why_not() == ""
    running.clock.now += http_leader.REMEMBERED_SECONDS
    assert "status 503" in await asker.why_not()


async def test_certificates_that_were_made_anew_are_read_after_a_failure(running: Running) -> None:
    asker, data = running.asker(), running.server.data
    running.server.data = dict(secret_data(new_certificates(datetime.now(UTC) - timedelta(1))))
    with pytest.raises(CannotAskError, match="could not be reached"):
        await asker.pod("default", "w")
    running.server.data = data

    assert (await asker.pod("default", "w")).place


@pytest.mark.parametrize(
    ("holder", "said"),
    [
        ("", "no scheduler holds Lease moorage-system/moorage-scheduler."),
        ("gone_1", "the leader's pod moorage-system/gone does not exist."),
        ("new_1", "pod moorage-system/new, which leads, has no IP address yet."),
    ],
)
async def test_a_leader_that_is_not_there_is_said(running: Running, holder: str, said: str) -> None:
    running.server.hold(holder)
    running.server.put_pod("new", "")

    assert await running.asker().why_not() == f"Places in line are not known: {said}"


async def test_a_static_pod_is_found_by_its_nodes_name(running: Running) -> None:
    running.server.hold("control-1_77")
    running.server.remove(LEADER)
    running.server.put_pod("kube-scheduler-control-1", "127.0.0.1")

    assert await running.asker().why_not() == ""


async def test_a_port_that_is_taken_is_tried_again_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_answers, "RETRY_SECONDS", 0.02)
    server, pods = FakeLeaderServer(), FakeWaitingPods()
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = other.getsockname()
        answers = LeaderAnswers(server.client, place, SECRET, FakeFence())
        serving = asyncio.create_task(answers.run(answers_app(a_world(), pods)))
        async with asyncio.timeout(10):
            while "the dashboard is not answered" not in caplog.text:  # noqa: ASYNC110  A log.
                await asyncio.sleep(0.02)
    found = Running(server, pods, a_world(), place[1])
    async with asyncio.timeout(10):
        while await found.asker().why_not():  # noqa: ASYNC110  Nothing tells of it.
            await asyncio.sleep(0.02)
    await found.end(serving)


async def test_without_a_port_no_plugin_is_asked(running: Running) -> None:
    with pytest.raises(CannotAskError, match="set --plugin-port"):
        await running.asker(port=0).pod("default", "w")
    assert running.server.asked == []


@pytest.mark.parametrize("data", [{}, None])
async def test_before_there_is_a_certificate_it_is_said(
    running: Running, data: dict[str, str] | None
) -> None:
    if data is None:
        running.server.remove(SECRET)
    else:
        running.server.data = data
    said = await running.asker().why_not()

    assert said.startswith("Places in line are not known: ")
    assert ("has no certificate yet." in said) is (data is not None)


async def test_a_leader_that_is_gone_is_looked_for_anew(running: Running) -> None:
    running.server.put_pod("leader", "127.0.0.2")
    asker = running.asker()
    with pytest.raises(CannotAskError, match="could not be reached"):
        await asker.pod("default", "w")
    running.server.put_pod("leader", "127.0.0.1")

    assert (await asker.pod("default", "w")).place


async def test_a_leader_that_hangs_costs_no_more_than_a_moment(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_leader, "WAIT_SECONDS", 0.05)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(CannotAskError, match=r"did not answer within 0\.05 s"),
    ):
        await running.asker(silent.getsockname()[1]).pod("default", "w")


@pytest.mark.parametrize("body", ["{}", '["place"]', "place", '{"place": 2}'])
async def test_an_answer_of_another_version_is_none(
    running: Running, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answers(*_: Any) -> bytes:
        return body.encode()

    monkeypatch.setattr(Leader, "_ask", answers)
    with pytest.raises(CannotAskError, match="another version"):
        await running.asker().pod("default", "w")

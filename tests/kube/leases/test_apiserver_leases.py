"""Candidates for a Lease, and a server that keeps or loses it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from kube.calls.api import ApiClient
from kube.leases.api import ElectionSettings, LeaderElector, LeadershipLostError, LeaseWatcher
from tests.fakes.scripted_apiserver import FakeScript, hangs, refuses, says

STEADY = ElectionSettings(
    lease_seconds=60, renew_deadline_seconds=30, retry_seconds=0.3, uniform=lambda: 0.5
)
"""Renews often. A busy machine has the time of a retry to give the Lease back."""

BRIEF = ElectionSettings(
    lease_seconds=1, renew_deadline_seconds=0.5, retry_seconds=0.05, uniform=lambda: 0.5
)

SECONDS = 20.0
"""How long a machine may take for what is waited for."""


@dataclass
class FakeLease:
    """One Lease with a resourceVersion; writes of an old version are refused."""

    obj: dict[str, Any] | None = None
    version: int = 0
    holders: list[str] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return await (says(self.obj) if self.obj else refuses(404, "NotFound"))(request)
        body = await request.json()
        expected = body["metadata"].get("resourceVersion")
        if request.method == "PUT" and expected != str(self.version):
            return await refuses(409, "Conflict")(request)
        answer = says(self.write(body))
        async with self.news:
            self.news.notify_all()
        return await answer(request)

    async def was_written(self, count: int) -> None:
        """Wait until it was written so often."""
        async with asyncio.timeout(SECONDS), self.news:
            await self.news.wait_for(lambda: len(self.holders) >= count)

    def write(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.obj = {**body, "metadata": metadata}
        self.holders.append(body["spec"]["holderIdentity"])
        return self.obj

    def take(self, holder: str) -> None:
        """Somebody writes over it, as no well-behaved candidate would."""
        assert self.obj
        self.write({**self.obj, "spec": {**self.obj["spec"], "holderIdentity": holder}})


@pytest.fixture
def lease(fake: FakeScript) -> FakeLease:
    kept = FakeLease()
    fake.will(*[kept.answer] * 1000)
    return kept


def an_elector(
    client: ApiClient, identity: str = "me", settings: ElectionSettings = STEADY
) -> LeaderElector:
    return LeaderElector(client, "l", "ns", identity, settings)


async def no_work() -> None:
    """It is over at once."""


async def test_lease_is_taken_renewed_and_given_back(client: ApiClient, lease: FakeLease) -> None:
    elector = an_elector(client)

    async def work() -> str:
        await lease.was_written(4)
        return "done"

    assert await elector.lead(work) == "done"

    assert lease.holders[:4] == ["me"] * 4
    assert lease.holders[-1] == ""
    assert lease.obj
    assert lease.obj["spec"]["leaseDurationSeconds"] == 1
    assert elector.seconds_left() == 0


async def test_leader_knows_how_long_it_certainly_leads(
    client: ApiClient, lease: FakeLease
) -> None:
    elector = an_elector(client)

    async def work() -> float:
        return elector.seconds_left()

    assert elector.seconds_left() == 0
    assert 30 < await elector.lead(work) < 60


async def test_failure_of_the_work_gives_the_lease_back(
    client: ApiClient, lease: FakeLease
) -> None:
    async def work() -> None:
        raise ValueError("own")

    with pytest.raises(ValueError, match="own"):
        await an_elector(client).lead(work)

    assert lease.holders == ["me", ""]


async def test_cancelled_leader_stops_its_work_and_gives_the_lease_back(
    client: ApiClient, lease: FakeLease
) -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert lease.holders[-1] == "me"
            stopped.set()

    leading = asyncio.create_task(an_elector(client).lead(work))
    async with asyncio.timeout(SECONDS):
        await began.wait()
    leading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leading

    assert stopped.is_set()
    assert lease.holders[-1] == ""


async def test_second_candidate_waits_until_the_lease_is_given_back(
    client: ApiClient, lease: FakeLease
) -> None:
    first, second = an_elector(client, "one"), an_elector(client, "two")
    may_end = asyncio.Event()

    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        group.create_task(first.lead(may_end.wait))
        await lease.was_written(1)
        group.create_task(second.lead(no_work))
        while second.holder != "one":  # noqa: ASYNC110  Nobody tells what a candidate sees.
            await asyncio.sleep(0.005)
        may_end.set()

    runs = [holder for n, holder in enumerate(lease.holders) if lease.holders[n - 1] != holder]
    assert runs == ["one", "", "two", ""]


async def test_lease_that_is_not_renewed_is_taken_after_its_duration(
    client: ApiClient, lease: FakeLease
) -> None:
    lease.write(
        {
            "metadata": {"name": "l"},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1, "renewTime": "x"},
        }
    )
    began = asyncio.get_running_loop().time()

    await an_elector(client).lead(no_work)

    assert asyncio.get_running_loop().time() - began >= 1
    assert lease.holders == ["dead", "me", ""]


async def test_lease_that_somebody_took_is_lost_at_once_and_left_alone(
    client: ApiClient, lease: FakeLease
) -> None:
    elector = an_elector(client)

    async def work() -> None:
        lease.take("thief")
        await asyncio.Event().wait()

    with pytest.raises(LeadershipLostError, match="thief"):
        async with asyncio.timeout(SECONDS):
            await elector.lead(work)

    assert lease.holders == ["me", "thief"]
    assert elector.seconds_left() == 0


async def test_leader_without_a_server_stops_before_its_lease_ends(
    client: ApiClient, fake: FakeScript, lease: FakeLease
) -> None:
    elector = an_elector(client, settings=BRIEF)
    left_at_the_end = []

    async def work() -> None:
        fake.script.clear()
        fake.will(*[hangs] * 100)
        try:
            await asyncio.Event().wait()
        finally:
            left_at_the_end.append(elector.seconds_left())

    with pytest.raises(LeadershipLostError):
        await elector.lead(work)

    assert left_at_the_end == [0.0]
    assert lease.holders == ["me"]


async def test_failures_that_end_in_time_do_not_end_leadership(
    client: ApiClient, fake: FakeScript, lease: FakeLease
) -> None:
    async def work() -> str:
        fake.script.extendleft([refuses(503), refuses(500)])
        await lease.was_written(len(lease.holders) + 1)
        return "done"

    assert await an_elector(client).lead(work) == "done"


async def test_times_must_leave_room_for_each_other() -> None:
    with pytest.raises(ValueError, match="retry"):
        ElectionSettings(lease_seconds=5)


async def test_foreign_lease_is_followed_and_failures_promise_nothing_new(
    client: ApiClient, fake: FakeScript, lease: FakeLease
) -> None:
    watcher = LeaseWatcher(client, "l", "ns")
    assert watcher.view().holder == ""
    await watcher.poll()
    assert watcher.view().holder == ""

    spec = {"holderIdentity": "them", "leaseDurationSeconds": 5, "renewTime": "1"}
    lease.write({"metadata": {"name": "l"}, "spec": spec})
    await watcher.poll()
    first = watcher.view()
    lease.write({"metadata": {"name": "l"}, "spec": {**spec, "renewTime": "2"}})
    await watcher.poll()
    second = watcher.view()
    fake.script.appendleft(refuses(500))
    await watcher.poll()
    third = watcher.view()

    assert (first.holder, first.at_least_seconds) == ("them", 0)
    assert 4 < second.at_least_seconds < second.at_most_seconds <= 5
    assert third.at_least_seconds < second.at_least_seconds


async def test_an_outage_is_told_once_and_so_is_what_comes_after_it(
    client: ApiClient, fake: FakeScript, caplog: pytest.LogCaptureFixture
) -> None:
    """A right that is missing must not pass for the outage that came before."""
    kept = FakeLease()
    outage, missing = refuses(503, "ServiceUnavailable"), refuses(403, "Forbidden")
    fake.will(*[outage] * 3, *[missing] * 3, *[kept.answer] * 1000)
    with caplog.at_level(logging.WARNING, "kube.leases.apiserver_leases"):
        async with asyncio.timeout(SECONDS):
            await an_elector(client, settings=BRIEF).lead(no_work)

    said = [r.getMessage() for r in caplog.records if "election failed" in r.getMessage()]
    assert [line.partition("cause=")[2].partition(" ")[0] for line in said] == [
        "unavailable",
        "refused",
    ]

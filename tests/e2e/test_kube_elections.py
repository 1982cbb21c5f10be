"""Candidates for one Lease, in processes of their own that are killed, frozen and cut off."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kube.calls.api import ApiClient, connect
from kube.leases.api import LeaseWatcher
from local_cluster.api import Cluster
from tests.e2e.kube_candidate import SETTINGS
from tests.e2e.kube_world import new_namespace

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


@dataclass
class Candidate:
    """One process, and what it said so far."""

    process: asyncio.subprocess.Process
    lines: list[tuple[float, str]] = field(default_factory=list)

    async def listen(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            at, _, what = line.decode().strip().partition(" ")
            self.lines.append((float(at), what))

    def times(self, what: str) -> list[float]:
        return [at for at, said in self.lines if said.split()[0] == what]

    async def says(self, what: str, seconds: float = 15) -> float:
        async with asyncio.timeout(seconds):
            while not self.times(what):  # noqa: ASYNC110  A line may come at any time.
                await asyncio.sleep(0.01)
        return self.times(what)[0]


@dataclass(frozen=True)
class Place:
    """Where the Lease is."""

    cluster: Cluster
    namespace: str

    @asynccontextmanager
    async def candidate(self, identity: str) -> AsyncIterator[Candidate]:
        arguments = [str(self.cluster.kubeconfig), "lease", self.namespace, identity]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.e2e.kube_candidate",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        candidate = Candidate(process)
        listening = asyncio.create_task(candidate.listen())
        try:
            yield candidate
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await listening

    @asynccontextmanager
    async def leader_and_rival(self) -> AsyncIterator[tuple[Candidate, Candidate]]:
        async with self.candidate("a") as leader:
            await leader.says("leading")
            async with self.candidate("b") as rival:
                await rival.says("waiting")
                yield leader, rival


@pytest.fixture
async def client(apiserver: Cluster) -> AsyncIterator[ApiClient]:
    async with connect(apiserver.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def place(apiserver: Cluster, client: ApiClient) -> Place:
    return Place(apiserver, await new_namespace(client))


async def test_lease_of_a_killed_leader_is_taken_when_it_ran_out_and_not_before(
    place: Place, client: ApiClient
) -> None:
    watcher = LeaseWatcher(client, "lease", place.namespace)

    async def watch() -> None:
        while True:
            await watcher.poll()
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    async with place.leader_and_rival() as (a, b):
        await asyncio.sleep(1.5)
        a.process.kill()
        killed_at = time.monotonic()
        certain_until = killed_at + watcher.view().at_least_seconds

        taken_at = await b.says("leading")

        last, said = a.lines[-1]
        assert b.times("leading") == [taken_at]
        # Neither what the leader promised itself nor what the watcher promised was broken.
        assert taken_at >= last + float(said.split()[1])
        assert taken_at >= certain_until
        assert taken_at - killed_at < 3 * SETTINGS.lease_seconds
        assert certain_until - killed_at > SETTINGS.lease_seconds / 2
    watching.cancel()


async def test_leader_that_leaves_lets_the_next_one_in_at_once(place: Place) -> None:
    async with place.leader_and_rival() as (a, b):
        a.process.send_signal(signal.SIGTERM)
        stopped_at = await a.says("stopped")
        taken_at = await b.says("leading")

        ran_out_after = SETTINGS.lease_seconds - SETTINGS.retry_seconds
        assert 0 <= taken_at - stopped_at < ran_out_after
        assert await a.process.wait() == 0


async def test_leader_that_was_frozen_stops_before_it_works_again(place: Place) -> None:
    async with place.leader_and_rival() as (a, b):
        a.process.send_signal(signal.SIGSTOP)
        taken_at = await b.says("leading")

        a.process.send_signal(signal.SIGCONT)
        await a.says("lost")

        # It may say once what it was about to say; the time it believes to have left is none.
        late = [said for at, said in a.lines if at > taken_at and said.startswith("working")]
        assert set(late) <= {"working 0.000"}


async def test_leader_without_a_server_stops_while_its_lease_still_holds(
    place: Place, apiserver: Cluster
) -> None:
    part = apiserver.part("kube-apiserver")
    async with place.candidate("a") as a:
        await a.says("leading")
        await asyncio.sleep(1)
        await asyncio.to_thread(part.stop)
        try:
            await a.says("lost", 3 * SETTINGS.renew_deadline_seconds)
        finally:
            await asyncio.to_thread(part.cont)

        [stopped_at] = a.times("stopped")
        # Whoever is told that it is lost may say once more, before it ends, that no time is left.
        worked = [(at, float(said.split()[1])) for at, said in a.lines if said[:4] == "work"]
        last, left = next((at, left) for at, left in reversed(worked) if left > 0)
        assert last + left > stopped_at

"""Events: read while a viewer looks, and told where they cannot be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kube.calls.api import ApiClient, connect
from scheduler_plugin.accounting.world import World
from scheduler_plugin.dashboard import cluster_snapshots
from scheduler_plugin.dashboard.cluster_events import ClusterEvents
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.parts import Part
from scheduler_plugin.dashboard.recent_events import Recent
from tests.fakes.scripted_apiserver import event, hangs, lists, refuses, scripted, streams
from tests.scheduler_plugin.builders import SETTINGS


def an_event(name: str, time: str, version: int = 1) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
        },
        "eventTime": time,
        "type": "Warning",
        "reason": "Reclaimed",
        "note": name,
        "regarding": {"kind": "Pod", "namespace": "ns", "name": "p"},
    }


TIME = "2026-01-01T00:00:00.000000Z"


def notes(recent: Recent) -> list[str]:
    return [json.loads(line.body)["note"] for line in recent.lines()]


@asynccontextmanager
async def reading(client: ApiClient, recent: Recent) -> AsyncIterator[ClusterEvents]:
    found = ClusterEvents(client, recent)
    async with asyncio.TaskGroup() as tasks:
        found.start(tasks)
        await found.read(5.0)
        yield found
        found.stop()


async def test_events_are_added_but_for_those_of_pods_at_the_gate(tmp_path: Path) -> None:
    recent = Recent()
    listed = (
        an_event("first", TIME),
        # Of a pod that waits at the gate: there may be thousands.
        {**an_event("waits", TIME), "action": "Admit"},
    )
    news = an_event("news", TIME, version=6)
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        fake.will(lists(*listed, version=5), streams(event("ADDED", news), then=hangs))
        async with reading(client, recent):
            async with asyncio.timeout(5):
                while recent.count < 2:  # noqa: ASYNC110  The watch brings it.
                    await asyncio.sleep(0.01)

    assert sorted(notes(recent)) == ["first", "news"]
    assert fake.seen[0].path == "/apis/events.k8s.io/v1/events"
    assert fake.seen[0].query["fieldSelector"] == "reportingController=moorage.dev/scheduler-plugin"


async def test_where_they_cannot_be_read_it_is_said(tmp_path: Path) -> None:
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        fake.will(*[refuses(403, "Forbidden")] * 20)
        found = ClusterEvents(client, Recent())
        assert found.why_not() == ""
        async with asyncio.TaskGroup() as tasks:
            found.start(tasks)
            await found.read(0.5)
            said = found.why_not()
            found.stop()

    assert said.startswith("Events could not be read: ")


async def test_while_nobody_looks_nothing_is_asked_and_the_first_look_has_them(
    tmp_path: Path,
) -> None:
    recent = Recent()
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        fake.will(lists(an_event("first", TIME), version=5))
        snapshots = Snapshots(World(SETTINGS), recent)
        snapshots.cluster_events = ClusterEvents(client, recent)
        running = asyncio.create_task(snapshots.run())
        await asyncio.sleep(0.05)
        asked_before = len(fake.seen)
        found = await snapshots.now()
        running.cancel()
        await asyncio.wait((running,))

    assert asked_before == 0
    assert found is not None
    assert len(found.lines[Part.EVENTS]) == 1


async def test_once_nobody_looks_any_more_they_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LEAST_SECONDS", "MOST_SECONDS", "WATCHED_SECONDS"):
        monkeypatch.setattr(cluster_snapshots, name, 0.05)
    async with scripted(tmp_path) as fake, connect(fake.kubeconfig) as client:
        fake.will(lists(version=5), streams(then=hangs))
        snapshots = Snapshots(World(SETTINGS), Recent())
        snapshots.cluster_events = ClusterEvents(client, Recent())
        running = asyncio.create_task(snapshots.run())
        with snapshots.listening():
            await snapshots.now()
            await fake.has_seen(2)
        async with asyncio.timeout(5):
            while not fake.hung_up:  # noqa: ASYNC110  Its connection ends.
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait((running,))

    assert snapshots.latest is None

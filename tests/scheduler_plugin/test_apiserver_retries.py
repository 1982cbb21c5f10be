"""Refused pods that fit by now are told so, whatever the API server answers."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from scheduler_plugin import apiserver_retries
from scheduler_plugin.apiserver_gate_writes import GateWrites
from scheduler_plugin.apiserver_retries import RetryWriter
from scheduler_plugin.refusals import FIRST_REST, LONGEST_REST, Refusals
from tests.scheduler_plugin.builders import NOW, a_pod_object, a_queue, a_world, pod_uid
from tests.scheduler_plugin.fake_pods import FakePods, Fault, Fence, running


@dataclass
class Scene:
    """Two pods that were refused, for one `onvif` each of a queue that may have none."""

    pods: FakePods = field(default_factory=lambda: FakePods(a_world()))
    fence: Fence = field(default_factory=Fence)
    refusals: Refusals = field(default_factory=Refusals)
    now: datetime = NOW

    def __post_init__(self) -> None:
        writes = GateWrites(self.pods.client, self.pods, self.fence)
        self.writer = RetryWriter(writes, self.refusals, lambda: self.now)
        self.limit(0)
        for name in ("one", "two"):
            pod = self.pods.put(a_pod_object(name, queue="a", requests={"akri.sh/onvif": 1}))
            self.refusals.add(pod.uid, self.now)
        self.now += FIRST_REST

    def limit(self, limit: int) -> None:
        self.pods.world.put_queue(a_queue("a", onvif=(0, limit)))

    def running(self) -> AbstractAsyncContextManager[None]:
        return running(self.writer.run())

    async def looks(self) -> None:
        """Let it look at everything that is due."""
        for _ in range(100):
            await asyncio.sleep(0)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(apiserver_retries, "TICK_SECONDS", 0)
    monkeypatch.setattr(apiserver_retries, "PACE_SECONDS", 0)
    monkeypatch.setattr(apiserver_retries, "FAILED_SECONDS", 0)
    return Scene()


async def test_pods_that_fit_by_now_are_told_so_once(scene: Scene) -> None:
    async with scene.running():
        await scene.looks()
        assert scene.pods.asked == []

        scene.limit(1)
        scene.now += LONGEST_REST
        await scene.looks()
        scene.now += LONGEST_REST
        await scene.looks()

    assert scene.pods.asked == ["status one", "status two"]
    assert scene.pods.told("one") == "Fits"
    assert len(scene.refusals) == 0


async def test_a_pod_is_told_each_time_in_other_words(scene: Scene) -> None:
    """A write that changes nothing would wake nobody."""
    scene.limit(1)
    told = []
    async with scene.running():
        for _ in range(2):
            scene.refusals.add(pod_uid("one"), scene.now)
            scene.now += FIRST_REST
            await scene.looks()
            told.append(scene.pods.objects["one"]["status"]["conditions"])

    assert told[0] != told[1]


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.LOST, Fault.UNANSWERED, Fault.FORBIDDEN])
async def test_what_was_not_written_is_tried_again(scene: Scene, fault: Fault) -> None:
    scene.limit(1)
    scene.pods.faults["one"].append(fault)
    async with scene.running():
        await scene.looks()
        scene.now += LONGEST_REST
        await scene.looks()

    assert scene.pods.asked.count("status one") == 2
    assert scene.pods.told("one") == "Fits"


async def test_a_pod_that_is_refused_while_it_is_told_is_looked_at_again(scene: Scene) -> None:
    scene.limit(1)
    scene.pods.before = lambda name: scene.refusals.add(pod_uid(name), scene.now)
    async with scene.running():
        await scene.looks()

    assert len(scene.refusals) == 2


async def test_an_odd_pod_does_not_keep_others_from_being_told(scene: Scene) -> None:
    scene.limit(1)

    def spoil(name: str) -> None:
        if name == "one":
            raise RuntimeError("odd")

    scene.pods.before = spoil
    async with scene.running():
        await scene.looks()

    assert scene.pods.told("two") == "Fits"


async def test_nothing_is_written_while_the_lease_may_not_be_ours(scene: Scene) -> None:
    scene.limit(1)
    scene.fence.closed = "Not ours."
    async with scene.running():
        await scene.looks()
        assert scene.pods.asked == []
        scene.fence.closed = ""
        await scene.looks()

    assert scene.pods.told("one") == "Fits"


@pytest.mark.parametrize("what", ["bound", "deleted"])
async def test_a_pod_that_cannot_be_tried_is_forgotten(scene: Scene, what: str) -> None:
    scene.limit(1)
    if what == "deleted":
        scene.pods.delete("one")
    else:
        obj = scene.pods.objects["one"]
        scene.pods.put({**obj, "spec": {**obj["spec"], "nodeName": "node-a"}})
    async with scene.running():
        await scene.looks()

    assert "status one" not in scene.pods.asked
    assert len(scene.refusals) == (1 if what == "bound" else 0)

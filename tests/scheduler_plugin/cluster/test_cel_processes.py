"""The selectors of entries are evaluated by the real process, and pods wait for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube.cel import processes
from kube.cel.api import CelProcess
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import ClaimChanged, WorldChange
from scheduler_plugin.cluster import cel_processes
from scheduler_plugin.cluster.cel_processes import LookEvaluator, evaluate_all
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import Reason
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    admit,
    refusal,
    their_class,
    usage,
)

GPU = "gpu.example.com"
H200 = f"device.attributes['{GPU}'].model == 'H200'"
LARGE = f"device.capacity['{GPU}'].memory.compareTo(quantity('80Gi')) >= 0"


def a_gpu(name: str, model: str, memory: str) -> dict[str, Any]:
    capacity = {"memory": {"value": memory}}
    return {"name": name, "attributes": {"model": {"string": model}}, "capacity": capacity}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)
    entries = [
        {"name": "h200", "driver": GPU, "selector": H200, "limit": 1},
        {"name": "large", "driver": GPU, "selector": LARGE},
    ]
    found = a_world(
        a_queue("vision", resources=entries),
        their_class("gpu", f"device.driver == '{GPU}'"),
    )
    devices = [a_gpu("g0", "H200", "141Gi"), a_gpu("g1", "A100", "80Gi"), a_gpu("g2", "A", "4Gi")]
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": devices}
    found.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    return found


def allocated(name: str, device: str) -> Any:
    result = a_result(driver=GPU, pool="a", device=device)
    return a_claim(name, requests=[a_request("gpu")], results=[result], queue="vision", pods=[name])


def used(world: World) -> dict[str, int]:
    return {str(key): amount for key, amount in usage(world, "vision")}


async def test_devices_count_where_the_selectors_select_them(world: World) -> None:
    for number in range(3):
        world.put_claim(allocated(f"c{number}", f"g{number}"))
    assert used(world) == {"h200": 3, "large": 3}

    await evaluate_all(world)

    assert used(world) == {"h200": 1, "large": 2}


async def test_a_pod_waits_for_the_evaluation_and_is_heard_of_then(world: World) -> None:
    world.put_claim(allocated("c0", "g0"))
    selectors: Any = [{"cel": {"expression": f"!({H200})"}}]
    claim = a_claim("wanted", requests=[a_request("gpu", selectors=selectors)])
    pod = a_pod("p", queue="vision", claims=["wanted"])
    world.put_claim(claim)
    world.put_pod(pod)
    assert refusal(world, pod).reason is Reason.NOT_KNOWN_YET
    heard: list[WorldChange] = []
    closed = asyncio.Event()

    def changed(change: WorldChange) -> None:
        heard.append(change)
        if not world.facts.open_looks:
            closed.set()

    evaluator = LookEvaluator(world, changed)
    running = asyncio.create_task(evaluator.run())
    evaluator.look()
    async with asyncio.timeout(600):
        await closed.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert ClaimChanged(claim.uid) in heard
    assert dict(admit(world, pod).claims[0].cost) != {}
    assert used(world) == {"h200": 1, "large": 1}


class FakeCelProcess(CelProcess):
    """Counts how often it is to start; there is no child."""

    starts = 0

    async def start(self) -> None:
        self.starts += 1


@pytest.mark.parametrize(
    ("entry", "starts"),
    [
        ({"name": "h200", "driver": GPU, "selector": H200}, 1),
        ({"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}, 1),
        ({"deviceClass": "gpu"}, 0),
    ],
    ids=["selector", "measure", "class"],
)
async def test_the_process_is_started_once_before_any_pod_comes(
    monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], starts: int
) -> None:
    """Without a selector in the entry, a class or a request may have one."""
    fake = FakeCelProcess()
    monkeypatch.setattr(cel_processes, "CelProcess", lambda: fake)
    evaluator = LookEvaluator(a_world(a_queue("vision", resources=[entry])), lambda _: None)
    running = asyncio.create_task(evaluator.run())
    for _ in range(20):
        evaluator.look()
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert fake.starts == starts


async def test_a_selector_that_takes_too_long_counts_all_devices(world: World) -> None:
    hundred = f"[{','.join('1' for _ in range(100))}]"
    slow = f"{hundred}.map(a, {hundred}.map(b, {hundred}.map(c, true))).size() == 0"
    world.put_queue(
        a_queue("vision", resources=[{"name": "slow", "driver": GPU, "selector": slow}])
    )
    world.put_claim(allocated("c2", "g2"))

    await evaluate_all(world)

    assert used(world) == {"slow": 1}

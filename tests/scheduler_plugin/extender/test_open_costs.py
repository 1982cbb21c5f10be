"""Filter and Bind wait a moment for the evaluation of selectors that decide what a claim costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scheduler_plugin.extender.messages import Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import Reason
from tests.scheduler_plugin.builders import (
    a_claim,
    a_queue,
    a_request,
    a_result,
    put,
    their_class,
)
from tests.scheduler_plugin.extender.test_kube_scheduler import Scene

GPU = "gpu.example.com"
H200 = f"device.attributes['{GPU}'].model == 'H200'"


@pytest.fixture
def scene() -> Scene:
    found = Scene()
    entry = {"name": "h200", "driver": GPU, "selector": H200, "limit": 0}
    device = {"name": "g0", "attributes": {"model": {"string": "A100"}}}
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": [device]}
    put(
        found.cluster.world,
        a_queue("vision", resources=[entry]),
        their_class("gpu", f"device.driver == '{GPU}'"),
    )
    found.cluster.world.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    return found


def evaluate(scene: Scene, *, says: bool = False) -> None:
    (opened,) = scene.cluster.world.facts.open_looks.by_expressions().items()
    expressions, looks = opened
    scene.cluster.world.put_selected(expressions, dict.fromkeys(looks, says))


def asking(scene: Scene) -> dict[str, Any]:
    scene.cluster.store(a_claim(requests=[a_request("gpu")]))
    return scene.pod("a", claims=["cam"], queue="vision")


@pytest.mark.parametrize(("says", "passes"), [(False, True), (True, False)])
async def test_filter_judges_by_a_result_that_comes_in_a_moment(
    scene: Scene, says: bool, passes: bool
) -> None:
    body = asking(scene)
    asyncio.get_running_loop().call_soon(lambda: evaluate(scene, says=says))

    answer = await scene.extender.filter_once_known(body)

    assert (answer == Passed()) is passes
    assert passes or (isinstance(answer, Refused) and answer.reason is Reason.OVER_LIMIT)


async def test_filter_refuses_a_pod_whose_cost_is_not_known(scene: Scene) -> None:
    answer = await scene.extender.filter_once_known(asking(scene))

    assert isinstance(answer, Refused)
    assert answer.reason is Reason.NOT_KNOWN_YET
    assert "selectors that decide it are not evaluated yet" in answer.sentence
    assert len(scene.extender.refusals) == 1, "it gets a condition once it fits"


@pytest.mark.parametrize("in_time", [True, False])
async def test_bind_judges_what_was_allocated_once_it_is_evaluated(
    scene: Scene, in_time: bool
) -> None:
    body = asking(scene)
    evaluate(scene)
    assert await scene.extender.filter_once_known(body) == Passed()
    device = {"name": "g1", "attributes": {"model": {"string": "B200"}}}
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": [device]}
    scene.cluster.world.put_slice(slice_view({"metadata": {"name": "t"}, "spec": spec}))
    result = a_result(driver=GPU, pool="a", device="g1")
    scene.cluster.store(a_claim(requests=[a_request("gpu")], results=[result], pods=["a"]))
    if in_time:
        asyncio.get_running_loop().call_soon(lambda: evaluate(scene))

    why = await scene.bind("a")

    assert (why == "") is in_time
    assert in_time or why.startswith(Reason.NOT_KNOWN_YET)

"""The gates of a PodGroup of Kubernetes' own API, whose pods kube-scheduler tries together only."""

from __future__ import annotations

import pytest

from scheduler_plugin.objects.names import QUOTA_GATE
from tests.binder.gates.test_apiserver_gates import Scene, settled, until
from tests.fakes.apiserver import Fault
from tests.scheduler_plugin.builders import a_group


@pytest.fixture
def scene() -> Scene:
    found = Scene()
    found.limit(1)
    found.pods.world.put_group(a_group("train"))
    return found


def waits(scene: Scene, *names: str, gates: tuple[str, ...] = (QUOTA_GATE,)) -> None:
    scene.waits(*names, gates=gates, group="train")


async def test_all_of_a_group_leave_the_gate_though_one_fits(scene: Scene) -> None:
    async with scene.running():
        waits(scene, "a", "b", "c")
        await until(lambda: sorted(scene.out_of_the_gate()) == ["a", "b", "c"])
        await settled()

    assert scene.assumed == 1


async def test_a_pod_that_comes_later_leaves_the_gate_while_others_wait_for_a_node(
    scene: Scene,
) -> None:
    async with scene.running():
        waits(scene, "a")
        await until(lambda: scene.out_of_the_gate() == ["a"])
        waits(scene, "late")
        await until(lambda: sorted(scene.out_of_the_gate()) == ["a", "late"])


async def test_a_pod_that_comes_after_they_were_bound_waits_at_the_gate(scene: Scene) -> None:
    async with scene.running():
        waits(scene, "a")
        await until(lambda: scene.out_of_the_gate() == ["a"])
        scene.binds("a")
        waits(scene, "late")
        await settled()

    assert scene.out_of_the_gate() == ["a"]


async def test_what_an_earlier_leader_left_behind_leaves_the_gate(scene: Scene) -> None:
    waits(scene, "a", gates=())
    waits(scene, "b")
    async with scene.running():
        await until(lambda: sorted(scene.out_of_the_gate()) == ["a", "b"])


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.LOST, Fault.UNANSWERED, Fault.FORBIDDEN])
async def test_a_refused_removal_is_tried_again(scene: Scene, fault: Fault) -> None:
    waits(scene, "a", gates=())
    scene.pods.faults["b"].append(fault)
    waits(scene, "b")
    async with scene.running():
        await until(lambda: sorted(scene.out_of_the_gate()) == ["a", "b"])


async def test_nothing_is_removed_without_the_lease(scene: Scene) -> None:
    scene.fence.closed = "another leads"
    waits(scene, "a", gates=())
    waits(scene, "b")
    async with scene.running():
        await settled()

    assert scene.out_of_the_gate() == ["a"]

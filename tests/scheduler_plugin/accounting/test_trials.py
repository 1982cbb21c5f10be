"""A trial, and a change of the tree, leave the ledger right whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging import gangs, verdicts
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, ClaimUid, QueueName
from scheduler_plugin.objects.pods import PodGroupView, PodView
from scheduler_plugin.viewing.why import why
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    admit,
    amounts,
    an_allocated_claim,
    usage,
)


def a_gang(size: int) -> list[PodView]:
    gate = {"schedulingGates": [{"name": QUOTA_GATE}]}
    traits: dict[str, Any] = {
        "annotations": {"pod-group-name": "g"},
        "requests": {"akri.sh/onvif": 1},
    }
    return [a_pod(f"g{n}", queue="a", spec=gate, **traits) for n in range(size)]


def a_waiting_world() -> World:
    world = a_world(a_queue("a", onvif=(0, 9)), a_claim("cam"), *a_gang(3))
    world.put_group(PodGroupView("default", "g", NO_QUEUE, 3))
    return world


@contextmanager
def told_of(world: World) -> Iterator[list[ClaimUid]]:
    heard: list[ClaimUid] = []
    end = world.assumptions.subscribe(heard.extend)
    yield heard
    end()


def test_an_error_while_somebody_looks_at_a_pod_makes_nobody_deaf(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever reads a page tries the group, and what reads can meet an error."""
    world, judge, calls = a_waiting_world(), verdicts.judge, iter(range(9))

    def fails_at_the_second(*args: object, **options: bool) -> object:
        if next(calls) == 1:
            raise RuntimeError
        return judge(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(gangs, "judge", fails_at_the_second)
    with told_of(world) as heard:
        with pytest.raises(RuntimeError):
            why(world, "default", "g0", NOW)

        assert len(world.assumptions) == 0, "nothing of the trial is left"
        assert not world.assumptions.usage.by_queue()
        reader = a_pod("b", queue="a", claims=["cam"])
        world.put_pod(reader)
        admit(world, reader)
        assert heard == ["uid-of-cam"], "keeper and gates hear of what is assumed"


def a_charged_world() -> World:
    claim = an_allocated_claim("cam", "a", queue="leaf")
    pod = a_pod("a", queue="leaf", claims=["cam"], node="node-a")
    queues = [a_queue("root"), a_queue("other"), a_queue("leaf", parent="root")]
    return a_world(*queues, claim, pod)


def a_failing_tree(world: World, method: str, *, at_once: bool) -> Iterable[pytest.MonkeyPatch]:
    """The tree fails before it changes, or after."""
    tree = world.facts.tree
    change = getattr(tree, method)

    def fails(argument: object) -> None:
        if not at_once:
            change(argument)
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, method, fails)
        yield patch


@pytest.mark.parametrize("at_once", [True, False])
def test_an_error_while_a_queue_moves_loses_no_charge(*, at_once: bool) -> None:
    world = a_charged_world()
    admit(world, a_pod("b", queue="leaf", requests={"akri.sh/onvif": 1}))
    for _ in a_failing_tree(world, "put", at_once=at_once):
        with pytest.raises(RuntimeError):
            world.put_queue(a_queue("leaf", parent="other"))

    above = "root" if at_once else "other"
    for queue in ("leaf", above):
        assert usage(world, queue) == amounts(onvif=1)
        assert world.assumptions.usage.of(QueueName(queue)) == amounts(onvif=1)
    assert set(world.ledger.usage.by_queue()) == {"leaf", above}


@pytest.mark.parametrize("at_once", [True, False])
def test_an_error_while_a_queue_goes_loses_no_charge(*, at_once: bool) -> None:
    world = a_charged_world()
    for _ in a_failing_tree(world, "remove", at_once=at_once):
        with pytest.raises(RuntimeError):
            world.delete_queue(QueueName("leaf"))

    assert usage(world, "leaf") == amounts(onvif=1)
    assert usage(world, "root") == (amounts(onvif=1) if at_once else amounts())


def test_an_error_while_a_queue_lists_a_class_leaves_no_claim_uncharged() -> None:
    """What the tree took is followed, though the caller is told of an error."""
    world = a_charged_world()
    device = a_result(driver="gpu.example.com")
    world.put_claim(
        an_allocated_claim("gpu", queue="leaf", requests=[a_request("gpu")], results=[device])
    )
    for _ in a_failing_tree(world, "put", at_once=False):
        with pytest.raises(RuntimeError):
            world.put_queue(a_queue("other", gpu=(0, 1)))

    assert usage(world, "root") == amounts(gpu=1, onvif=1)


def test_who_reads_tries_a_group_and_nothing_is_assumed() -> None:
    world = a_waiting_world()
    pod = world.facts.pod_named("default", "g0")
    assert pod is not None

    with told_of(world) as heard:
        assert waiting_refusal(pod, world) is None

    assert (len(world.assumptions), heard) == (0, [])

"""Waiting pods whose claims have alternatives: any that fits admits them."""

from __future__ import annotations

from datetime import timedelta

from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import ClaimChanged, PodChanged
from scheduler_plugin.waiting.classes.polled import POLL_SECONDS
from scheduler_plugin.waiting.gates import GateKeeper
from tests.scheduler_plugin.builders import (
    NOW,
    a_choice,
    a_claim,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    claim_uid,
    pod_uid,
    put,
    their_class,
)
from tests.scheduler_plugin.waiting.test_gates import a_gated_pod, decide, names


def a_waiting_world(*alternatives: tuple[str, int]) -> tuple[World, GateKeeper]:
    """Both classes are at their limit of 3, by claims x and y; a pod waits for any alternative."""
    drivers = {name: f"{name}.example.com" for name in ("x", "y")}
    classes = [their_class(name, f"device.driver == '{drivers[name]}'") for name in drivers]
    world = a_world(a_queue("a", x=(0, 3), y=(0, 3)), *classes)
    for name, driver in drivers.items():
        results = [a_result(driver=driver)] * 3
        requests = [a_request(name, count=3)]
        put(world, an_allocated_claim(name, queue="a", results=results, requests=requests))
    asked = [a_request(of, name=f"{of}-{count}", count=count) for of, count in alternatives]
    put(world, a_claim("w", requests=[a_choice(*asked)]), a_gated_pod("w", claims=["w"]))
    keeper = GateKeeper(world)
    keeper.note(PodChanged(pod_uid("w")))
    assert decide(keeper, NOW) == ()
    return world, keeper


def released(world: World, keeper: GateKeeper, name: str) -> None:
    world.delete_claim(claim_uid(name))
    keeper.note(ClaimChanged(claim_uid(name)))


def test_room_for_the_smallest_alternative_admits_at_once() -> None:
    world, keeper = a_waiting_world(("x", 3), ("x", 1))
    results, requests = [a_result(driver="x.example.com")] * 2, [a_request("x", count=2)]

    put(world, an_allocated_claim("x", queue="a", results=results, requests=requests))
    keeper.note(ClaimChanged(claim_uid("x")))

    assert names(decide(keeper, NOW)) == ["w"]


def test_room_for_any_alternative_admits_soon_where_each_lacks_room_elsewhere() -> None:
    world, keeper = a_waiting_world(("x", 1), ("y", 1))

    released(world, keeper, "y")

    assert names(decide(keeper, NOW + timedelta(seconds=POLL_SECONDS))) == ["w"]

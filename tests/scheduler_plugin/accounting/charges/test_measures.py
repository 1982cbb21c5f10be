"""What entries by measure and by driver are charged: by the allocation, the slice, the request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scheduler_plugin.accounting.charges.costs import claim_cost, is_accounted
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.measures import amount_text
from scheduler_plugin.objects.names import Reason
from tests.scheduler_plugin.builders import (
    a_claim,
    a_class,
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

GPU, NIC = "gpu.example.com", "nic.example.com"
MEMORY = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}, "limit": "80Gi"}
GPUS = {"name": "gpus", "driver": GPU, "limit": 4}
MIG = {"name": "mig", "driver": GPU, "measure": {"counter": {"set": "gpu-*", "name": "memory"}}}
LINK = {"name": "link", "deviceClass": "nic", "measure": {"capacity": "bandwidth"}}
STEP = {"validRange": {"min": "10Gi", "step": "5Gi"}, "default": "20Gi"}


def a_device(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def has(policy: Any = None, **amounts: str) -> dict[str, Any]:
    more = {"requestPolicy": policy} if policy else {}
    return {name: {"value": value, **more} for name, value in amounts.items()}


def uses(counter_set: str, **amounts: str) -> list[dict[str, Any]]:
    counters = {name: {"value": value} for name, value in amounts.items()}
    return [{"counterSet": counter_set, "counters": counters}]


WHOLE = a_device(
    "whole", capacity=has(memory="80Gi"), consumesCounters=uses("gpu-0", memory="80Gi")
)
PART = a_device("part", capacity=has(memory="10Gi"), consumesCounters=uses("gpu-0", memory="10Gi"))
SHARED = a_device("shared", capacity=has(STEP, memory="40Gi"), allowMultipleAllocations=True)
CARD = a_device("card", capacity=has(bandwidth="100G"), allowMultipleAllocations=True)


def sliced(name: str, driver: str, *devices: dict[str, Any]) -> Any:
    spec = {"driver": driver, "pool": {"name": "a"}, "nodeName": "a", "devices": list(devices)}
    return slice_view({"metadata": {"name": name}, "spec": spec})


@pytest.fixture
def world() -> World:
    found = a_world(
        a_queue("vision", resources=[MEMORY, GPUS, MIG, LINK]),
        their_class("gpu", f"device.driver == '{GPU}'"),
        their_class("nic", f"device.driver == '{NIC}'"),
        a_class("any"),
    )
    found.put_slice(sliced("gpus", GPU, WHOLE, PART, SHARED))
    found.put_slice(sliced("nics", NIC, CARD))
    return found


def told(found: Charges) -> dict[str, str]:
    return {str(key): amount_text(key, amount) for key, amount in found}


def allocated(device: str, driver: str = GPU, of: str = "gpu", **fields: Any) -> Any:
    result = a_result(driver=driver, pool="a", device=device, **fields)
    return a_claim(requests=[a_request(of)], results=[result], queue="vision", pods=["a"])


@pytest.mark.parametrize(
    ("claim", "cost"),
    [
        (allocated("whole"), {"gpus": "1", "memory": "80Gi", "mig": "80Gi"}),
        (allocated("part"), {"gpus": "1", "memory": "10Gi", "mig": "10Gi"}),
        (allocated("part", of="any"), {"gpus": "1", "memory": "10Gi", "mig": "10Gi"}),
        (
            allocated("shared", consumedCapacity={"memory": "15Gi"}),
            {"gpus": "1", "memory": "15Gi"},
        ),
        (allocated("card", NIC, "nic", consumedCapacity={"bandwidth": "2G"}), {"link": "2G"}),
        (allocated("card", NIC, "any", consumedCapacity={"bandwidth": "2G"}), {}),
        (allocated("part", adminAccess=True), {}),
    ],
)
def test_an_allocated_device_costs_what_it_has_or_what_was_consumed(
    world: World, claim: Any, cost: dict[str, str]
) -> None:
    assert told(claim_cost(claim, world.facts.catalog)) == cost
    assert is_accounted(claim, world.facts.catalog) is bool(cost)


def asked(of: str = "gpu", memory: str = "", **fields: Any) -> Any:
    capacity: dict[str, Any] = {"capacity": {"requests": {"memory": memory}}} if memory else {}
    return a_claim(requests=[a_request(of, **capacity, **fields)])


@pytest.mark.parametrize(
    ("claim", "cost"),
    [
        (asked(), {"gpus": "1", "memory": "80Gi", "mig": "80Gi"}),
        (asked(count=2), {"gpus": "2", "memory": "160Gi", "mig": "160Gi"}),
        (asked("any"), {"gpus": "1", "memory": "80Gi", "mig": "80Gi"}),
        (asked("nic"), {"link": "100G"}),
        (asked(adminAccess=True), {}),
    ],
)
def test_a_request_costs_the_most_that_a_device_of_its_driver_can(
    world: World, claim: Any, cost: dict[str, str]
) -> None:
    assert told(claim_cost(claim, world.facts.catalog)) == cost


def test_a_request_by_a_class_that_does_not_exist_costs_nothing_until_it_does(
    world: World,
) -> None:
    """As that of a Configuration which was deleted: no device is selected by it."""
    claim = asked("later")
    world.put_claim(claim)
    assert told(claim_cost(claim, world.facts.catalog)) == {}

    world.put_class(a_class("later"))

    assert told(claim_cost(claim, world.facts.catalog))["memory"] == "80Gi"


@pytest.mark.parametrize(
    ("memory", "most"), [("7Gi", "10Gi"), ("11Gi", "15Gi"), ("15Gi", "15Gi"), ("", "20Gi")]
)
def test_a_request_of_a_divided_device_is_rounded_as_its_policy_says(
    world: World, memory: str, most: str
) -> None:
    world.put_slice(sliced("gpus", GPU, SHARED))

    assert told(claim_cost(asked(memory=memory), world.facts.catalog))["memory"] == most


def test_usage_follows_slices_and_queues(world: World) -> None:
    world.put_claim(allocated("part"))
    assert told(usage(world, "vision")) == {"gpus": "1", "memory": "10Gi", "mig": "10Gi"}

    larger = a_device("part", capacity=has(memory="20Gi"))
    world.put_slice(sliced("gpus", GPU, WHOLE, larger))
    assert told(usage(world, "vision")) == {"gpus": "1", "memory": "20Gi"}

    world.put_queue(a_queue("vision", resources=[GPUS]))
    assert told(usage(world, "vision")) == {"gpus": "1"}


def test_trees_that_define_a_name_otherwise_do_not_meet(world: World) -> None:
    world.put_queue(a_queue("other", resources=[{**MEMORY, "measure": {"capacity": "cores"}}]))
    world.put_claim(allocated("part"))

    assert told(usage(world, "vision"))["memory"] == "10Gi"
    assert told(usage(world, "other")) == {}


DIVIDED = a_device(
    "divided",
    capacity=has(memory="40Gi"),
    consumesCounters=uses("gpu-1", memory="40Gi"),
    allowMultipleAllocations=True,
)


def sharing(name: str, queue: str, at: str = "", *, memory: str = "10Gi", parts: int = 1) -> Any:
    results = [
        a_result(
            driver=GPU,
            pool="a",
            device="divided",
            shareID=f"{name}-{number}",
            consumedCapacity={"memory": memory},
        )
        for number in range(parts)
    ]
    requests = [a_request("gpu")]
    claim = a_claim(name, requests=requests, results=results, queue=queue, pods=[name])
    return replace(claim, allocated_at=at)


@pytest.fixture
def shared(world: World) -> World:
    world.put_queue(a_queue("robots", resources=[MEMORY, MIG]))
    world.put_slice(sliced("gpus", GPU, DIVIDED))
    return world


def test_a_shared_device_consumes_its_counters_once_for_the_claim_that_came_first(
    shared: World,
) -> None:
    second = sharing("a-second", "robots", "2026-11-28T10:00:01Z")
    shared.put_claim(second)
    assert told(usage(shared, "robots"))["mig"] == "40Gi"

    shared.put_claim(sharing("first", "vision", "2026-11-28T10:00:00Z"))
    assert told(usage(shared, "vision")) == {"gpus": "1", "memory": "10Gi", "mig": "40Gi"}
    assert told(usage(shared, "robots")) == {"gpus": "1", "memory": "10Gi"}

    shared.delete_claim(sharing("first", "vision").uid)
    assert told(usage(shared, "robots"))["mig"] == "40Gi"
    shared.put_claim(replace(second, results=None))
    assert told(usage(shared, "robots")) == {}


def test_a_claim_with_two_parts_of_a_device_consumes_its_counters_once(shared: World) -> None:
    shared.put_claim(sharing("both", "vision", parts=2))

    assert told(usage(shared, "vision")) == {"gpus": "2", "memory": "20Gi", "mig": "40Gi"}


def test_a_pod_that_joins_a_device_in_use_is_judged_without_its_counters(shared: World) -> None:
    limited = {**MIG, "limit": "0"}
    shared.put_queue(a_queue("robots", resources=[MEMORY, limited]))
    shared.put_claim(sharing("first", "vision", "2026-11-28T10:00:00Z"))
    mine = sharing("mine", "", "2026-11-28T10:00:01Z")
    shared.put_claim(mine)
    pod = a_pod("mine", queue="robots", claims=["mine"])
    shared.put_pod(pod)

    assert admit(shared, pod, at_bind=True).claims

    shared.delete_claim(sharing("first", "vision").uid)
    assert refusal(shared, pod, at_bind=True).reason is Reason.OVER_LIMIT

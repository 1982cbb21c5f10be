"""Pods whose claims have alternatives: any that fits is enough, and Bind charges what was got."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_plugin.accounting.charges.alternatives import (
    MOST_COMBINATIONS,
    least_cost,
    possible_costs,
)
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.cases import ClaimUse
from scheduler_plugin.judging.gangs import judge_waiting
from scheduler_plugin.judging.verdicts import (
    NONE_FITS,
    Admitted,
    Refused,
    deciding_case,
    expected_case,
)
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.measures import amount_text
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.objects.pods import PodGroupView, PodView
from tests.scheduler_plugin.builders import (
    a_choice,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    admit,
    amounts,
    put,
    refusal,
    their_class,
    usage,
    verdict,
)

GPU = "gpu.example.com"


def memory(limit: str | int = -1, quota: str | int = 0) -> dict[str, Any]:
    measured = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}
    return {**measured, "quota": quota, "limit": limit}


def a_gpu_world(*entries: Any) -> World:
    """Devices of 80Gi that claims divide, and a queue with these entries."""
    world = a_world(
        a_queue("vision", resources=list(entries)), their_class("gpu", f"device.driver == '{GPU}'")
    )
    capacity = {"memory": {"value": "80Gi"}}
    device = {"name": "g0", "capacity": capacity, "allowMultipleAllocations": True}
    spec = {"driver": GPU, "pool": {"name": "n"}, "nodeName": "n", "devices": [device]}
    world.put_slice(slice_view({"metadata": {"name": "gpus"}, "spec": spec}))
    return world


def part(asked: str) -> dict[str, Any]:
    return a_request("gpu", name=f"of-{asked.lower()}", capacity={"requests": {"memory": asked}})


def waits(world: World, name: str, *asked: str, **pod: Any) -> PodView:
    """A pod whose claim asks for the first of these parts that there is."""
    claim = a_claim(name, requests=[a_choice(*map(part, asked))])
    found = a_pod(name, queue="vision", claims=[name], **pod)
    put(world, claim, found)
    return found


def gets(world: World, name: str, *asked: str, got: str, **claim: Any) -> None:
    """kube-scheduler allocates one of the parts."""
    result = a_result(
        f"req/of-{got.lower()}",
        driver=GPU,
        pool="n",
        device="g0",
        consumedCapacity={"memory": got},
        shareID=f"share-of-{name}",
    )
    requests = [a_choice(*map(part, asked))]
    world.put_claim(a_claim(name, requests=requests, results=[result], pods=[name], **claim))


def assumed(world: World) -> str:
    (found,) = world.assumptions.usage.of(QueueName("vision"))
    return amount_text(*found)


def cost(use: ClaimUse) -> str:
    (found,) = use.cost
    return amount_text(*found)


def test_the_second_alternative_passes_where_the_first_does_not_fit() -> None:
    world = a_gpu_world(memory(limit="40Gi"))
    pod = waits(world, "a", "80Gi", "10Gi")

    admit(world, pod)

    assert assumed(world) == "10Gi"
    case = deciding_case(pod, world.facts.claims_of(pod), world)
    assert cost(case.claims[0]) == "10Gi"


def test_the_first_that_fits_is_assumed_as_kube_scheduler_prefers_it() -> None:
    world = a_gpu_world(memory(limit="85Gi"))

    admit(world, waits(world, "a", "10Gi", "80Gi"))
    assert assumed(world) == "10Gi"
    admit(world, waits(world, "b", "60Gi", "10Gi"))
    assert assumed(world) == "70Gi"


def test_bind_charges_what_was_got_and_refuses_what_does_not_fit() -> None:
    world = a_gpu_world(memory(limit="40Gi"))
    pod = waits(world, "a", "80Gi", "10Gi")
    admit(world, pod)

    gets(world, "a", "80Gi", "10Gi", got="80Gi")
    refused = refusal(world, pod, at_bind=True)
    gets(world, "a", "80Gi", "10Gi", got="10Gi")
    found = verdict(world, pod, at_bind=True)

    assert refused.reason is Reason.OVER_LIMIT
    assert refused.sentence == (
        "ResourceClaim default/a with device gpu.example.com/n/g0 does not fit: queue"
        ' "vision" uses 0 memory, 80Gi more would pass its limit of 40Gi. Entry memory counts'
        " capacity memory of driver gpu.example.com."
    )
    assert isinstance(found, Admitted)
    assert cost(found.claims[0]) == "10Gi"


def test_where_none_fits_the_least_is_told() -> None:
    world = a_gpu_world(memory(limit="5Gi"))
    pod = waits(world, "a", "80Gi", "10Gi")

    assert "10Gi more would pass its limit of 5Gi" in refusal(world, pod).sentence


def test_alternatives_that_do_not_fit_at_different_ceilings_are_refused() -> None:
    other = their_class("other", "device.driver == 'other.example.com'")
    world = a_gpu_world(memory(limit="5Gi"), {"deviceClass": "other", "limit": 0})
    put(world, other)
    pod = a_pod("a", queue="vision", claims=["a"])
    put(world, a_claim("a", requests=[a_choice(part("10Gi"), a_request("other", name="o"))]), pod)

    found = refusal(world, pod)

    assert found.reason is Reason.OVER_LIMIT
    assert found.sentence.endswith(NONE_FITS)
    assert "1 more would pass its limit of 0" in found.sentence


@pytest.mark.parametrize(("quota", "passes"), [("10Gi", True), ("9Gi", False)])
def test_non_preemptible_quota_is_compared_with_any_alternative(quota: str, passes: bool) -> None:
    world = a_gpu_world(memory(quota=quota))
    pod = waits(world, "a", "80Gi", "10Gi", non_preemptible=True)

    found = verdict(world, pod)

    assert isinstance(found, Admitted) is passes
    assert passes or isinstance(found, Refused)


def test_a_pod_that_joins_keeps_the_cost_that_is_assumed() -> None:
    world = a_gpu_world(memory(limit="40Gi"))
    admit(world, waits(world, "a", "80Gi", "10Gi"))
    joins = a_pod("b", queue="vision", claims=["a"])
    put(world, joins)

    admit(world, joins)

    assert assumed(world) == "10Gi"


@pytest.mark.parametrize(("limit", "passes"), [("20Gi", True), ("19Gi", False)])
def test_a_gang_that_could_fit_with_the_least_is_admitted(limit: str, passes: bool) -> None:
    world = a_gpu_world(memory(limit=limit))
    world.serve_groups(served=True)
    world.put_group(PodGroupView("default", "train", queue=QueueName(""), min_member=2))
    pods = [waits(world, name, "15Gi", "10Gi", group="train") for name in ("a", "b")]

    found = judge_waiting(pods[0], world)

    assert isinstance(found, Refused) is not passes


def test_what_is_reclaimed_for_is_the_most_that_fits() -> None:
    world = a_gpu_world(memory(limit="40Gi"))
    pod = waits(world, "a", "80Gi", "10Gi", "30Gi")

    case = expected_case(pod, world.facts.claims_of(pod), world)

    assert cost(case.claims[0]) == "30Gi"


CLASSES = ("x", "y", "z")
alternatives = st.lists(
    st.tuples(st.sampled_from(CLASSES), st.integers(1, 3)), min_size=1, max_size=3
)
limits = st.fixed_dictionaries({name: st.integers(-1, 4) for name in CLASSES})


@settings(max_examples=300, deadline=None)
@given(claims=st.lists(st.lists(alternatives, min_size=1, max_size=2), max_size=2), most=limits)
def test_a_pod_fits_if_and_only_if_any_combination_does(
    claims: list[list[list[tuple[str, int]]]], most: dict[str, int]
) -> None:
    pairs = {name: (0, limit) for name, limit in most.items()}
    classes = [their_class(name, f"device.driver == '{name}.example.com'") for name in CLASSES]
    world = a_world(a_queue("vision", **pairs), *classes)
    named = [f"c{number}" for number in range(len(claims))]
    for name, requests in zip(named, claims, strict=True):
        world.put_claim(a_claim(name, requests=[_request(*each) for each in enumerate(requests)]))
    pod = a_pod("a", queue="vision", claims=named)

    fits = any(
        all(most[name] < 0 or _sum(chosen, name) <= most[name] for name in CLASSES)
        for chosen in product(*(request for requests in claims for request in requests))
    )

    assert isinstance(verdict(world, pod), Admitted) is fits


def _request(number: int, choices: list[tuple[str, int]]) -> dict[str, Any]:
    asked = [a_request(name, name=f"a{n}", count=count) for n, (name, count) in enumerate(choices)]
    return a_choice(*asked, name=f"r{number}")


def _sum(chosen: tuple[tuple[str, int], ...], name: str) -> int:
    return sum(count for of, count in chosen if of == name)


def test_of_too_many_combinations_the_least_of_each_resource_counts() -> None:
    """Three requests of five alternatives: 125 combinations, each of another cost."""
    classes = [their_class(f"c{n}", f"device.driver == 'd{n}'") for n in range(15)]
    queue = a_queue("vision", **{f"c{n}": (0, 1) for n in range(15)}, onvif=(0, 1))
    world = a_world(queue, *classes)
    requests = [
        *(_request(n, [(f"c{5 * n + each}", 2) for each in range(5)]) for n in range(3)),
        a_request(count=1, name="camera"),
    ]
    claim, pod = a_claim("a", requests=requests), a_pod("a", queue="vision", claims=["a"])
    put(world, claim, pod)

    assert MOST_COMBINATIONS < 5**3
    assert possible_costs(claim, world.facts.catalog) == ()
    assert least_cost(claim, world.facts.catalog) == amounts(onvif=1)
    admit(world, pod)
    assert world.assumptions.usage.of(QueueName("vision")) == amounts(onvif=1)
    two = a_claim("b", requests=[*requests[:3], a_request(count=2, name="camera")])
    put(world, two)
    assert isinstance(verdict(world, a_pod("b", queue="vision", claims=["b"])), Refused)


def test_equal_costs_are_one_combination() -> None:
    world = a_world(a_queue("vision", onvif=(0, 2)))
    choices = [a_choice(*(a_request(name=f"a{n}") for n in range(8)), name=f"r{m}") for m in (0, 1)]

    assert possible_costs(a_claim(requests=choices * 16), world.facts.catalog) == (
        amounts(onvif=32),
    )


def test_usage_is_that_of_the_allocation() -> None:
    world = a_gpu_world(memory())

    gets(world, "a", "80Gi", "10Gi", got="10Gi", queue="vision")

    assert [amount_text(*each) for each in usage(world, "vision")] == ["10Gi"]


@settings(max_examples=150, deadline=None)
@given(
    claims=st.lists(alternatives, min_size=1, max_size=4),
    pods=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    most=limits,
)
def test_what_is_assumed_fits_whichever_pods_share_claims(
    claims: list[list[tuple[str, int]]], pods: list[int], most: dict[str, int]
) -> None:
    pairs = {name: (0, limit) for name, limit in most.items()}
    classes = [their_class(name, f"device.driver == '{name}.example.com'") for name in CLASSES]
    world = a_world(a_queue("vision", **pairs), *classes)
    for number, choices in enumerate(claims):
        world.put_claim(a_claim(f"c{number}", requests=[_request(0, choices)]))
    used = set[int]()
    for index, wanted in enumerate(pods):
        number = wanted % len(claims)
        pod = a_pod(f"p{index}", queue="vision", claims=[f"c{number}"])
        world.put_pod(pod)
        before = dict(world.assumptions.usage.of(QueueName("vision")))
        fits = number in used or any(
            most[name] < 0 or before.get(ResourceKey(name), 0) + count <= most[name]
            for name, count in claims[number]
        )
        assert isinstance(verdict(world, pod), Admitted) is fits
        if fits:
            admit(world, pod)
            used.add(number)
        now = dict(world.assumptions.usage.of(QueueName("vision")))
        assert all(most[key] < 0 or amount <= most[key] for key, amount in now.items())

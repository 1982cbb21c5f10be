"""Devices that claims divide, as slices publish them: who goes for a part, and what is held."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.objects.names import RECLAIMING_CONDITION
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.reclaiming.held_placements import hold_of
from scheduler_plugin.reclaiming.placement import device_counts
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.device_counts import too_few_for
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_request,
    a_result,
    an_allocated_claim,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod
from tests.scheduler_plugin.reclaiming.devices_builders import UNSCHEDULABLE, Cluster
from tests.scheduler_plugin.reclaiming.measure_builders import (
    GIB,
    GPU,
    GPUS,
    a_gpu_world,
    below,
    gpus,
    memory,
    use,
    waits,
)


def a_cluster(*objects: Any) -> Cluster:
    teams = [below("a", memory()), below("b", memory("40Gi"))]
    return Cluster(a_gpu_world(*teams, *objects), {"spec": GPUS})


def tried(queue: str, asked: str, name: str = "w", **pod: Any) -> list[Any]:
    """A pod that kube-scheduler found no device for."""
    return waits(queue, asked, name, status=UNSCHEDULABLE, **pod)


def test_one_of_the_claims_that_divide_a_device_goes_and_its_part_is_held() -> None:
    users = [use("a", f"r{number}", "40Gi", on=f"g{number // 2}") for number in range(4)]
    cluster = a_cluster(*users, tried("b", "40Gi"))

    decision = cluster.decide()

    assert isinstance(decision, Targets)
    assert len(decision.pods) == 1
    (claim,) = decision.victims[0].claims
    assert decision.hold.awaits == (claim.uid,)
    assert decision.hold.parts == ((claim.devices[0], (("memory", 40 * GIB),)),)


def test_a_part_that_is_free_beside_other_claims_needs_no_eviction() -> None:
    users = [use("a", "r1", "40Gi"), use("a", "r2", "80Gi", on="g1")]

    assert isinstance(a_cluster(*users, tried("b", "40Gi")).decide(), InProgress)


def test_a_device_that_has_less_than_is_asked_for_is_not_emptied_in_vain() -> None:
    users = [use("a", "r1", "40Gi"), use("a", "r2", "40Gi")]
    cluster = Cluster(
        a_gpu_world(below("a", memory()), below("b", memory("200Gi")), *users, tried("b", "90Gi")),
        {"spec": GPUS},
    )

    assert isinstance(cluster.decide(), NoCandidates)


def test_what_is_held_of_a_divided_device_leaves_the_rest_to_others() -> None:
    small, large = tried("a", "20Gi", "small"), tried("a", "50Gi", "large")
    cluster = a_cluster(use("a", "r2", "80Gi", on="g1"), small, large, tried("b", "40Gi"))
    decision = cluster.decide()
    assert isinstance(decision, InProgress)
    cluster.world.hold(decision.holds[0])
    held = HeldDevices(cluster.world, cluster.inventory())
    pods = {pod.name: pod for pod in cluster.world.facts.pods()}

    assert held.kept_off(pods["small"]) == {}
    assert list(held.kept_off(pods["large"])) == ["n"]
    for name, amount, refused in (("small", "40Gi", False), ("large", "41Gi", True)):
        result = a_result(driver=GPU, pool="n", device="g0", consumedCapacity={"memory": amount})
        claim = a_claim(name, results=[result], requests=[a_request("gpu")])
        cluster.world.put_claim(claim)
        assert bool(held.why_taken(pods[name], [claim], "n")) is refused
        cluster.world.put_claim(a_claim(name, requests=[a_request("gpu")]))


@pytest.mark.parametrize(("count", "enough"), [(3, True), (4, False)])
def test_a_gang_divides_devices_as_its_claims_say(count: int, enough: bool) -> None:
    users = [use("a", "r1", "40Gi"), use("a", "r2", "80Gi", on="g1")]
    heads = [tried("b", "13Gi", f"w{number}") for number in range(count)]
    cluster = a_cluster(*users, *heads)
    pods = [cluster.world.facts.pod(pod_uid(f"w{number}")) for number in range(count)]
    accepted = AcceptedDevices(cluster.inventory())

    why = too_few_for([pod for pod in pods if pod is not None], cluster.world, accepted)

    assert (why == "") is enough


def partitions(count: int = 1) -> list[dict[str, Any]]:
    """GPUs of 80Gi as a whole and as two halves, and a slice with the counters that they share."""
    amounts = {"whole": "80Gi", "half-0": "40Gi", "half-1": "40Gi"}
    devices = [
        {
            "name": name if number == 0 else f"{name}-of-{number}",
            "attributes": {"kind": {"string": name.partition("-")[0]}},
            "capacity": {"memory": {"value": amount}},
            "consumesCounters": [
                {"counterSet": f"gpu-{number}", "counters": {"memory": {"value": amount}}}
            ],
        }
        for number in range(count)
        for name, amount in amounts.items()
    ]
    memory = {"memory": {"value": "80Gi"}}
    shared = [{"name": f"gpu-{number}", "counters": memory} for number in range(count)]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 2}
    counters = {**GPUS, "pool": pool, "devices": [], "sharedCounters": shared}
    return [{"spec": {**GPUS, "pool": pool, "devices": devices}}, {"spec": counters}]


HALF = {"cel": {"expression": f'device.attributes["{GPU}"].kind == "half"'}}


def a_partitioned(*used: tuple[str, str]) -> Cluster:
    """Pods of queue a have these devices, by pod; one of queue b waits for a half."""
    objects: list[Any] = [below("a", gpus()), below("b", gpus(1))]
    for name, device in used:
        result = a_result(driver=GPU, pool="n", device=device)
        requests = [a_request("gpu")]
        objects += [
            an_allocated_claim(name, name, queue="a", results=[result], requests=requests),
            a_used_pod(name, "a", name),
        ]
    claim = a_claim("w", requests=[a_request("gpu", selectors=[HALF])])
    pod = a_pod("w", queue="b", claims=["w"], status=UNSCHEDULABLE)
    world = a_gpu_world(*objects, claim, pod)
    return Cluster(world, *partitions())


@pytest.mark.parametrize(
    ("used", "goes"),
    [
        ([("r1", "whole")], ["r1"]),
        ([("r1", "half-0")], []),
        ([("r1", "half-0"), ("r2", "half-1")], 1),
    ],
)
def test_partitions_are_free_as_far_as_the_counters_that_they_share(
    used: list[tuple[str, str]], goes: list[str] | int
) -> None:
    cluster = a_partitioned(*used)

    found = cluster.taken()

    assert found == goes if isinstance(goes, list) else len(found) == goes


@pytest.mark.parametrize(
    ("gpus", "used", "free"),
    [
        (1, [], 2),
        (1, [("r1", "half-0")], 1),
        (1, [("r1", "whole")], 0),
        (2, [("r1", "half-0")], 3),
        (2, [("r1", "whole"), ("r2", "half-0-of-1")], 1),
    ],
)
def test_a_gang_gets_as_many_partitions_as_may_be_in_use_together(
    gpus: int, used: list[tuple[str, str]], free: int
) -> None:
    """Of each GPU three are published, and all are of the class that is asked for."""
    cluster = a_partitioned(*used)
    cluster.slices = tuple(partitions(gpus))
    pods = [a_pod(f"w{n}", queue="b", claims=[f"w{n}"]) for n in range(free + 1)]
    put(cluster.world, *pods)
    put(cluster.world, *(a_claim(pod.name, requests=[a_request("gpu")]) for pod in pods))
    accepted = AcceptedDevices(cluster.inventory())

    assert not free or too_few_for(pods[:free], cluster.world, accepted) == ""
    assert f", and {free} matching devices" in too_few_for(pods, cluster.world, accepted)


def test_counters_of_more_devices_than_one_look_takes_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_counts, "MOST_BY_COUNTERS", 0)
    cluster = a_partitioned()
    pods = [a_pod(f"w{n}", queue="b", claims=[f"w{n}"]) for n in range(3)]
    put(cluster.world, *pods)
    put(cluster.world, *(a_claim(pod.name, requests=[a_request("gpu")]) for pod in pods))

    assert too_few_for(pods, cluster.world, AcceptedDevices(cluster.inventory())) == ""


def test_a_pool_whose_counters_are_not_published_has_enough_of_them() -> None:
    cluster = a_partitioned(("r1", "half-0"))
    devices, _ = partitions()
    devices["spec"]["pool"]["resourceSliceCount"] = 1
    cluster.slices = (devices,)

    assert isinstance(cluster.decide(), InProgress)


@pytest.mark.parametrize(("picked", "refused"), [("half-1", False), ("whole", True)])
def test_a_device_that_needs_the_counters_of_a_held_one_is_refused(
    picked: str, refused: bool
) -> None:
    cluster = a_partitioned()
    decision = cluster.decide()
    assert isinstance(decision, InProgress)
    cluster.world.hold(decision.holds[0])
    result = a_result(driver=GPU, pool="n", device=picked)
    claim = a_claim("other", results=[result], requests=[a_request("gpu")])
    pod = a_pod("other", queue="a", claims=["other"])
    put(cluster.world, claim, pod)
    held = HeldDevices(cluster.world, cluster.inventory())

    assert bool(held.why_taken(pod, [claim], "n")) is refused


def test_the_next_leader_holds_the_part_that_the_pod_asks_for() -> None:
    told = {"type": RECLAIMING_CONDITION, "status": "True", "reason": "DeviceReclaimed"}
    message = f'It waits. Held: {GPU}/n/g0 (1) on node "n".'
    status = {"conditions": [{**told, "message": message}]}
    world = a_gpu_world(below("b", memory("40Gi")), waits("b", "40Gi", status=status))
    pod = world.facts.pod(pod_uid("w"))
    assert pod is not None

    hold = hold_of(pod, world)

    assert hold is not None
    assert [(device.name, part) for device, part in hold.parts] == [("g0", (("memory", 40 * GIB),))]

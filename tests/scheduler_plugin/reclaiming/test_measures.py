"""Who goes for a pod whose queue is guaranteed an amount of a measure, such as GPU memory."""

from __future__ import annotations

from typing import Any

import pytest

from kube.shapes.quantities import PER_UNIT
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.device_counts import too_few_for
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.queue_order import QueueOrder
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    pod_uid,
    put,
    their_class,
)
from tests.scheduler_plugin.reclaiming.builders import a_used_pod, decided, taken
from tests.scheduler_plugin.reclaiming.devices_builders import UNSCHEDULABLE, Cluster

GPU = "gpu.example.com"
GIB = PER_UNIT * 2**30


def memory(quota: str | int = 0, limit: str | int = -1) -> dict[str, Any]:
    measured = {"name": "gpu-memory", "driver": GPU, "measure": {"capacity": "memory"}}
    return {**measured, "quota": quota, "limit": limit}


def h200(quota: int = 0, limit: int = -1) -> dict[str, Any]:
    return {"name": "h200", "driver": GPU, "quota": quota, "limit": limit}


def gpus(quota: int = 0, limit: int = -1) -> dict[str, Any]:
    return {"deviceClass": "gpu", "quota": quota, "limit": limit}


def root(*entries: Any) -> Any:
    return a_queue("root", resources=list(entries))


def below(name: str, *entries: Any, parent: str = "root") -> Any:
    return a_queue(name, parent=parent, resources=list(entries))


def a_gpu(name: str) -> dict[str, Any]:
    """A device of 80Gi that claims divide."""
    return {
        "name": name,
        "capacity": {"memory": {"value": "80Gi"}},
        "allowMultipleAllocations": True,
    }


GPUS = {
    "driver": GPU,
    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
    "nodeName": "n",
    "devices": [a_gpu("g0"), a_gpu("g1")],
}


def use(queue: str, name: str, consumed: str, on: str = "g0", **pod: Any) -> list[Any]:
    """A running pod with a part of a device."""
    result = a_result(
        driver=GPU, pool="n", device=on, consumedCapacity={"memory": consumed}, shareID="s"
    )
    results, requests = [result], [a_request("gpu")]
    claim = an_allocated_claim(name, name, queue=queue, results=results, requests=requests)
    return [claim, a_used_pod(name, queue, name, **pod)]


def waits(queue: str, asked: str, name: str = "w", **pod: Any) -> list[Any]:
    """A pod that waits for a part of a device."""
    request = a_request("gpu", capacity={"requests": {"memory": asked}})
    return [a_claim(name, requests=[request]), a_pod(name, queue=queue, claims=[name], **pod)]


def a_gpu_world(*objects: Any) -> World:
    """Devices of a vendor beside queues and pods; each object may be a list of them."""
    flat = [each for found in objects for each in (found if isinstance(found, list) else [found])]
    world = a_world(their_class("gpu", f"device.driver == '{GPU}'"))
    world.put_slice(slice_view({"metadata": {"name": "gpus"}, "spec": GPUS}))
    put(world, *flat)
    return world


TEAMS = [root(memory("80Gi", "80Gi")), below("a", memory()), below("b", memory("40Gi"))]


def test_a_claim_of_80gi_goes_for_a_queue_that_is_below_its_quota_by_40gi() -> None:
    world = a_gpu_world(*TEAMS, use("a", "r1", "80Gi"), waits("b", "40Gi"))

    decision = decided(world)

    assert isinstance(decision, Targets)
    assert [pod.name for pod in decision.pods] == ["r1"]
    assert "within the share of gpu-memory that is guaranteed" in decision.sentence


def test_of_two_claims_of_40gi_exactly_one_goes_for_40gi() -> None:
    world = a_gpu_world(*TEAMS, use("a", "r1", "40Gi"), use("a", "r2", "40Gi"), waits("b", "40Gi"))

    assert len(taken(world)) == 1


def test_amounts_are_compared_to_the_last_thousandth() -> None:
    users = [use("a", "r1", "40Gi"), use("a", "r2", "40Gi")]
    assert taken(a_gpu_world(*TEAMS, *users, waits("b", "42949672960001m"))) == []
    assert len(taken(a_gpu_world(*TEAMS, *users, waits("b", "42949672960000m")))) == 1


def test_a_claim_that_only_overshoots_by_a_thousandth_goes_for_it() -> None:
    users = [use("a", "r1", "79Gi"), use("b", "r2", "1Gi", on="g1")]
    world = a_gpu_world(*TEAMS, *users, waits("b", "1m"))

    assert taken(world) == ["r1"]


def test_what_its_users_hold_without_preemption_is_not_taken() -> None:
    users = use("a", "r1", "40Gi", labels={"moorage.dev/preemptibility": "non-preemptible"})
    world = a_gpu_world(root(memory("80Gi", "60Gi")), *TEAMS[1:], users, waits("b", "40Gi"))

    decision = decided(world)

    assert isinstance(decision, NoCandidates)
    assert "has no room below its limit for 20Gi gpu-memory more" in decision.sentence


def test_a_number_of_devices_without_a_quota_is_exempt_beside_a_measure_with_one() -> None:
    entries = [memory("80Gi", "80Gi"), gpus(0, 8)]
    teams = [root(*entries), below("a", memory()), below("b", memory("40Gi"), gpus(0, 8))]
    world = a_gpu_world(*teams, use("a", "r1", "80Gi"), waits("b", "40Gi"))

    assert taken(world) == ["r1"]


def test_nothing_goes_for_a_queue_whose_number_of_devices_is_at_its_limit() -> None:
    teams = [*TEAMS[:2], below("b", memory("80Gi"), gpus(1, 1))]
    users = [use("a", "r1", "40Gi"), use("b", "r2", "40Gi", on="g1")]
    world = a_gpu_world(*teams, *users, waits("b", "40Gi"))
    pod = world.facts.pod(pod_uid("w"))
    assert pod is not None

    refused = waiting_refusal(pod, world)

    assert refused is not None
    assert refused.reason is Reason.OVER_LIMIT
    assert taken(world) == []


def test_two_names_that_count_one_device_are_both_served_by_one_claim() -> None:
    teams = [
        root(memory("80Gi", "80Gi"), h200(2, 2)),
        below("a", memory(), h200()),
        below("b", memory("40Gi"), h200(1)),
    ]
    users = [use("a", "r1", "40Gi"), use("a", "r2", "40Gi", on="g1")]

    assert len(taken(a_gpu_world(*teams, *users, waits("b", "40Gi")))) == 1


def test_a_queue_within_its_number_of_devices_keeps_them_from_a_measure_that_it_does_not_list() -> (
    None
):
    limit = root(memory("80Gi", "80Gi"))
    mine = below("b", memory("40Gi"))
    users = [use("a", "r1", "80Gi"), waits("b", "40Gi")]
    within = a_gpu_world(limit, below("a", gpus(1)), mine, *users)
    beyond = a_gpu_world(limit, below("a", gpus(0)), mine, *users)
    unlisted = a_gpu_world(limit, below("a"), mine, *users)

    decision = decided(within)

    assert isinstance(decision, NoCandidates)
    assert "within the share of their queue in a resource that it lists" in decision.sentence
    assert taken(beyond) == taken(unlisted) == ["r1"]


def test_a_queue_takes_on_the_guarantee_of_the_queue_above_it_that_lists_the_measure() -> None:
    tree = [
        root(memory("80Gi", "80Gi")),
        below("a", memory()),
        below("research", memory("40Gi")),
        below("b", gpus(1), parent="research"),
    ]
    users = [use("a", "r1", "80Gi"), waits("b", "40Gi")]

    assert taken(a_gpu_world(*tree, *users)) == ["r1"]
    larger = use("b", "r2", "1Gi", on="g1")
    tree[3] = below("b", gpus(2), parent="research")
    assert taken(a_gpu_world(*tree, *users, larger)) == []


def test_the_head_of_the_queue_that_lacks_the_largest_part_goes_first() -> None:
    tree = [
        root(memory("80Gi", "80Gi"), gpus(8, 8)),
        below("a", memory("80Gi")),
        below("b", gpus(8)),
    ]
    users = [use("a", "r1", "79Gi"), *(use("b", f"u{n}", "1m", on="g1") for n in range(4))]
    heads = [waits("a", "1Gi", name="of-a"), waits("b", "1m", name="of-b")]
    world = a_gpu_world(*tree, *users, *heads)
    cycle = Cycle(world, NOW, NONE_EXCLUDED, LimitsOnly())
    pods = [pod for pod in world.facts.pods() if not pod.is_bound]

    assert [pod.name for pod in QueueOrder(pods, cycle.queue_shares)] == ["of-b", "of-a"]


def test_what_a_target_releases_is_held_and_serves_one_head_only() -> None:
    world = a_gpu_world(
        *TEAMS[:2],
        below("b", memory("80Gi")),
        *(use("a", f"r{number}", "40Gi") for number in range(2)),
        *(waits("b", "40Gi", name=f"w{number}") for number in range(3)),
    )
    cycle = Cycle(world, NOW, NONE_EXCLUDED, LimitsOnly())
    pods = [world.facts.pod(pod_uid(f"w{number}")) for number in range(3)]

    found = [cycle.serve(pod) for pod in pods if pod is not None]

    assert [type(each) for each in found] == [Targets, Targets, NoCandidates]
    assert not isinstance(decided(world, "w0"), InProgress)


# Devices that claims divide, as slices publish them.


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

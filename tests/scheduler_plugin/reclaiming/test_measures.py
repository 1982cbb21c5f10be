"""Who goes for a pod whose queue is guaranteed an amount of a measure, such as GPU memory."""

from __future__ import annotations

from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.queue_order import QueueOrder
from scheduler_plugin.reclaiming.targets import InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import NOW, claim_uid, pod_uid
from tests.scheduler_plugin.reclaiming.builders import decided, is_still_due, taken
from tests.scheduler_plugin.reclaiming.measure_builders import (
    TEAMS,
    a_gpu_world,
    below,
    gpus,
    h200,
    memory,
    root,
    use,
    waits,
)


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


def test_a_target_stays_where_its_queue_is_within_its_share_meanwhile() -> None:
    """One of two devices goes; then the other one ends by itself."""
    limit, mine = root(memory("80Gi", "80Gi")), below("b", memory("40Gi"))
    users = [use("a", "r1", "40Gi"), use("a", "r2", "40Gi", on="g1")]
    world = a_gpu_world(limit, below("a", gpus(1)), mine, *users, waits("b", "40Gi"))
    decision = decided(world)
    assert isinstance(decision, Targets)
    assert is_still_due(decision, world)

    (other,) = {"r1", "r2"} - {pod.name for pod in decision.pods}
    world.delete_claim(claim_uid(other))

    assert not is_still_due(decision, world)

"""Who goes for pods that wait, all of them at one time: by the rules, one case each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.targets import Decision, InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED, ExcludedPods
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_group,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    our_class,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.builders import a_full_world, a_used_pod, use, waiting


def served(world: World, *names: str, excluded: ExcludedPods = NONE_EXCLUDED) -> list[Decision]:
    """One cycle, for these pods in this order."""
    cycle = Cycle(world, NOW, excluded, LimitsOnly())
    pods = [world.facts.pod(pod_uid(name)) for name in names or ("w",)]
    return [cycle.serve(pod) for pod in pods if pod is not None]


def gone(decisions: Sequence[Decision]) -> list[list[str]]:
    """Who goes for each, by name."""
    return [
        sorted(pod.name for pod in found.pods) if isinstance(found, Targets) else []
        for found in decisions
    ]


def test_a_whole_line_is_served_in_one_cycle() -> None:
    robots = [use("robots", f"r{n}") for n in range(10)]
    line = [f"w{n}" for n in range(10)]
    world = a_world(
        a_queue("root", onvif=(10, 10)),
        a_queue("mine", parent="root", onvif=(10, 10)),
        a_queue("robots", parent="root", onvif=(0, 10)),
        *(found for each in robots for found in each),
        *(found for name in line for found in waiting(name=name)),
    )

    found = gone(served(world, *line))

    assert sorted(found) == sorted([[f"r{n}"] for n in range(10)])


def test_who_comes_after_what_the_quota_has_room_for_gets_nothing() -> None:
    robots = [use("robots", "r1"), use("robots", "r2"), use("robots", "r3")]
    heads = [waiting(name="w1"), waiting(name="w2")]
    world = a_full_world(*robots, *heads, mine=(1, 3), robots=(0, 3))

    first, second = served(world, "w1", "w2")

    assert len(gone([first])[0]) == 1
    assert isinstance(second, NoCandidates)
    assert second.unmet is None


def test_a_head_that_nobody_could_go_for_is_passed_over() -> None:
    robots = use("robots", "r1", cost=3, labels={}, non_preemptible=False)
    world = a_full_world(robots, waiting(name="w1", cost=9), waiting(name="w2"), mine=(9, 9))
    put(world, a_queue("robots", parent="root", onvif=(1, 3)))

    first, second = served(world, "w1", "w2")

    assert isinstance(first, NoCandidates)
    assert gone([second]) == [["r1"]]


def test_one_large_claim_is_no_shield() -> None:
    world = a_full_world(use("robots", "r1", cost=3), waiting(), mine=(1, 3), robots=(1, 3))

    assert gone(served(world)) == [["r1"]]


def test_below_a_queue_that_has_a_limit_and_no_quota_its_childrens_quotas_count() -> None:
    world = a_full_world(use("robots", "r1", cost=3), waiting(), mine=(1, 3), robots=(1, 3))
    put(world, a_queue("root", onvif=(0, 3)))

    assert gone(served(world)) == [["r1"]]


def test_what_began_in_one_second_goes_by_its_size() -> None:
    """Of two claims of one device the one goes that fewer pods use."""
    shared, alone = use("robots", "r1", ("x", "robots")), use("robots", "r2")
    world = a_full_world(shared, alone, waiting(), mine=(1, 2), robots=(0, 2))
    put(world, a_queue("root", onvif=(2, 2)))

    assert gone(served(world)) == [["r2"]]


def test_a_pod_that_is_not_bound_protects_nothing() -> None:
    results = [a_result(f"r{number}") for number in range(3)]
    requests = [a_request(name=f"r{number}") for number in range(3)]
    claim = an_allocated_claim(
        "r1", "r1", "joiner", queue="robots", results=results, requests=requests
    )
    joiner = a_pod("joiner", queue="robots", claims=["r1"])
    used = [claim, a_used_pod("r1", "robots", "r1"), joiner]
    world = a_full_world(used, waiting(), mine=(1, 3), robots=(1, 3))

    assert gone(served(world)) == [["r1"]]


@pytest.mark.parametrize("owner_runs", [False, True])
def test_a_claim_that_its_owner_left_to_others_goes_for_a_pod_of_its_owner(
    *, owner_runs: bool
) -> None:
    """The resource locking of the seed: foreign pods of the same priority keep what is ours."""
    pods = ["foreign", *(["own"] if owner_runs else [])]
    claim = an_allocated_claim("shared", *pods, queue="mine")
    users = [a_used_pod(name, "robots" if name == "foreign" else "mine", "shared") for name in pods]
    world = a_full_world(claim, *users, waiting(), mine=(1, 1), robots=(0, 3))

    assert gone(served(world)) == [[] if owner_runs else ["foreign"]]


def test_a_claim_is_not_left_to_others_while_a_group_of_its_owner_waits_for_it() -> None:
    claim = an_allocated_claim("shared", "foreign", queue="mine", groups=["train"])
    foreign = a_used_pod("foreign", "robots", "shared")
    world = a_full_world(a_group(), claim, foreign, waiting(), mine=(1, 1), robots=(0, 3))
    assert gone(served(world)) == [["foreign"]]

    put(world, a_pod("member", queue="mine", claims=["shared"], group="train"))

    assert gone(served(world)) == [[]]


def two_keys(**queues: dict[str, Any]) -> World:
    """Queues of two classes, cameras and arms."""
    world = a_world(our_class("arms"))
    for name, spec in queues.items():
        put(world, a_queue(name, **spec))
    return world


def with_both(queue: str, name: str, *, runs: bool) -> list[object]:
    """A pod with a camera and an arm."""
    claims = [f"{name}-onvif", f"{name}-arms"]
    kinds = list(zip(claims, ("onvif", "arms"), strict=True))
    if not runs:
        waits = [a_claim(claim, requests=[a_request(kind)]) for claim, kind in kinds]
        return [*waits, a_pod(name, queue=queue, claims=claims)]
    used = [
        an_allocated_claim(claim, name, queue=queue, requests=[a_request(kind)])
        if kind == "onvif"
        else an_allocated_claim(
            claim,
            name,
            queue=queue,
            requests=[a_request(kind)],
            results=[a_result(pool="arms", device="arms-aaaaaa")],
        )
        for claim, kind in kinds
    ]
    return [*used, a_used_pod(name, queue, *claims)]


def test_what_is_within_the_quota_of_one_class_and_not_of_another_takes_nothing() -> None:
    """Two such pods would evict each other without end, if only what is lacking were looked at."""
    world = two_keys(
        root={"onvif": (1, 1), "arms": (1, 1)},
        a={"parent": "root", "onvif": (1, 1), "arms": (0, 1)},
        b={"parent": "root", "onvif": (0, 1), "arms": (1, 1)},
    )
    put(world, *with_both("b", "r", runs=True), *with_both("a", "w", runs=False))

    (found,) = served(world)

    assert isinstance(found, NoCandidates)


def test_a_class_of_which_a_queue_has_no_quota_has_to_be_free() -> None:
    """A network card beside an accelerator: nothing is taken for it, and it keeps from nothing."""
    world = two_keys(
        root={"onvif": (1, 1), "arms": (0, 9)},
        a={"parent": "root", "onvif": (1, 1)},
        b={"parent": "root", "onvif": (0, 1)},
    )
    put(world, *with_both("b", "r", runs=True), *with_both("a", "w", runs=False))

    assert gone(served(world)) == [["r"]]


def test_whoever_fits_beside_what_goes_for_others_takes_nobody() -> None:
    robots = [use("robots", "r1", cost=2), use("robots", "r2")]
    world = a_full_world(
        *robots, waiting(name="w1"), waiting(name="w2"), mine=(2, 3), robots=(0, 3)
    )

    first, second = served(world, "w1", "w2")

    assert isinstance(first, Targets)
    assert isinstance(second, InProgress if gone([first]) == [["r1"]] else Targets)

"""Pods of one PodGroup leave the gate together, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    PodChanged,
    QueueChanged,
)
from scheduler_plugin.judging import gangs, verdicts
from scheduler_plugin.judging.cases import case_of
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, QueueName
from scheduler_plugin.objects.pods import PodGroupView, PodView
from scheduler_plugin.reclaiming.expected_charges import hold_of_case
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.device_counts import too_few_for
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from scheduler_plugin.waiting.admissions import GateCondition, GateRemoval, Retry, WaitingPod
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from scheduler_plugin.waiting.gates import GateKeeper
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_result,
    a_world,
    an_allocated_claim,
    claim_uid,
    moment,
    pod_uid,
    put,
)
from tests.scheduler_plugin.reclaiming.devices_builders import a_slice_object, device


def a_member(name: str, group: str = "g", **overrides: Any) -> PodView:
    spec = {"schedulingGates": [{"name": QUOTA_GATE}], **overrides.pop("spec", {})}
    wanted = {} if "claims" in overrides else {"requests": {"akri.sh/onvif": 1}}
    annotations = {"pod-group-name": group} if group else {}
    traits = {"queue": "a", "spec": spec, "annotations": annotations, **wanted, **overrides}
    return a_pod(name, **traits)


def a_group(least: int | None, name: str = "g") -> PodGroupView:
    return PodGroupView("default", name, NO_QUEUE, least)


class Scene:
    """A keeper that hears of each change."""

    def __init__(self, limit: int, *groups: PodGroupView) -> None:
        self.world = a_world(a_queue("a", onvif=(0, limit)))
        self.now = NOW
        self.refusals = RefusedPods()
        self.inventory = Inventory()
        accepted = AcceptedDevices(self.inventory)
        too_few = partial(too_few_for, world=self.world, accepted=accepted)
        self.keeper = GateKeeper(self.world, self.refusals, too_few=too_few)
        self.offer(*(f"d{number}" for number in range(20)))
        for group in groups:
            self.group(group)

    def limit(self, limit: int) -> None:
        put(self.world, a_queue("a", onvif=(0, limit)))
        self.keeper.note(QueueChanged(QueueName("a")))

    def group(self, group: PodGroupView) -> None:
        self.world.put_group(group)
        self.keeper.note(GroupChanged(group.namespace, group.name))

    def pods(self, *pods: PodView) -> None:
        for pod in pods:
            self.world.put_pod(pod)
            self.keeper.note(PodChanged(pod.uid))

    def offer(self, *devices: str) -> None:
        """These are all devices there are."""
        found = a_slice_object(*devices, metadata={"name": "all"})
        self.inventory.devices.put_slice(published_slice(found))

    def claim(self, claim: ClaimView) -> None:
        self.world.put_claim(claim)
        self.keeper.note(ClaimChanged(claim.uid))

    def delete(self, *names: str) -> None:
        for name in names:
            self.world.delete_pod(pod_uid(name))
            self.keeper.note(PodChanged(pod_uid(name)))

    def run(self, *names: str) -> None:
        """What was let go runs."""
        for name in names:
            pod = self.world.facts.pod(pod_uid(name))
            assert pod is not None
            self.pods(replace(pod, gates=(), node="node-a"))

    def gone(self) -> list[str]:
        return [found.name for found in self.keeper.decide(self.now, moment(self.now))]

    def why(self, name: str) -> tuple[str, str]:
        found = self.keeper.waiting("default", name)
        assert isinstance(found, WaitingPod), found
        return found.reason, found.message


def members(count: int, group: str = "g") -> list[PodView]:
    return [a_member(f"{group}{n}", group) for n in range(count)]


def test_a_group_that_does_not_fit_as_a_whole_leaves_nobody_in() -> None:
    scene = Scene(3, a_group(4))
    scene.pods(*members(4))

    assert scene.gone() == []
    reason, message = scene.why("g2")
    assert reason == "OverLimit"
    assert message == (
        "PodGroup default/g is admitted as a whole, 4 pods together: Pod default/g3 does not fit:"
        ' queue "a" uses 3 onvif, 1 more would pass its limit of 3.'
    )
    assert len(scene.world.assumptions) == 0

    scene.limit(4)
    assert scene.gone() == ["g0", "g1", "g2", "g3"]


def test_of_two_groups_with_a_limit_between_them_one_runs_and_then_the_other() -> None:
    """Pod by pod each would have two, and wait for the others' for ever."""
    scene = Scene(3, a_group(3, "g"), a_group(3, "h"))
    scene.pods(*(pod for pair in zip(members(3), members(3, "h"), strict=True) for pod in pair))

    assert scene.gone() == ["g0", "g1", "g2"]
    scene.run("g0", "g1", "g2")
    assert scene.gone() == []
    scene.delete("g0", "g1")
    assert scene.gone() == []
    scene.delete("g2")
    assert scene.gone() == ["h0", "h1", "h2"]


def test_five_sharers_of_one_claim_fit_a_limit_of_one_as_a_group_too() -> None:
    scene = Scene(1, a_group(5))
    put(scene.world, a_claim())
    scene.pods(*(a_member(f"g{n}", claims=["cam"]) for n in range(5)))

    assert scene.gone() == ["g0", "g1", "g2", "g3", "g4"]


def test_too_few_wait_for_the_others_and_say_so() -> None:
    scene = Scene(9, a_group(3))
    scene.pods(*members(2))

    assert scene.gone() == []
    sentence = "PodGroup default/g is admitted as a whole, 3 pods together, and has 2."
    assert scene.why("g0") == ("PodGroupIncomplete", sentence)
    (first, _) = scene.keeper.pending_conditions.take(9)
    assert (first.reason, first.message) == ("PodGroupIncomplete", sentence)

    scene.pods(a_member("late"))
    assert sorted(scene.gone()) == ["g0", "g1", "late"]


def test_without_a_number_all_that_name_the_group_go_together() -> None:
    scene = Scene(3, a_group(None))
    scene.pods(*members(4))
    assert scene.gone() == []

    scene.delete("g3")

    assert scene.gone() == ["g0", "g1", "g2"]


def test_who_comes_to_a_group_that_runs_goes_alone() -> None:
    scene = Scene(3, a_group(2))
    scene.pods(*members(4))
    assert scene.gone() == ["g0", "g1", "g2"]

    scene.run("g0", "g1", "g2")
    scene.limit(4)

    assert scene.gone() == ["g3"]


def test_a_group_that_lost_a_member_gets_one_back_alone() -> None:
    scene = Scene(2, a_group(2))
    scene.pods(*members(2))
    assert scene.gone() == ["g0", "g1"]
    scene.run("g0", "g1")
    scene.delete("g1")

    scene.pods(a_member("g2"))

    assert scene.gone() == ["g2"]


@pytest.mark.parametrize(("least", "went"), [(2, ["g0", "g1"]), (1, ["g0", "g1"])])
def test_a_group_that_shrinks_while_it_waits_lets_those_go_that_fit(
    least: int, went: list[str]
) -> None:
    scene = Scene(2, a_group(3))
    scene.pods(*members(3))
    assert scene.gone() == []

    scene.group(a_group(least))

    assert scene.gone() == went


def test_a_group_that_grows_while_it_waits_lets_nobody_go() -> None:
    scene = Scene(1, a_group(2))
    scene.pods(*members(2))
    assert scene.gone() == []

    scene.group(a_group(3))
    scene.limit(2)

    assert scene.gone() == []
    assert scene.why("g0")[0] == "PodGroupIncomplete"


def test_a_group_that_is_deleted_while_it_waits_lets_nobody_go() -> None:
    scene = Scene(1, a_group(2))
    scene.pods(*members(2))
    scene.world.delete_group("default", "g")
    scene.keeper.note(GroupChanged("default", "g"))
    scene.limit(2)

    assert scene.gone() == []
    sentence = "Pod default/g0 is admitted only with its PodGroup default/g, which does not exist."
    assert scene.why("g0") == ("PodGroupIncomplete", sentence)

    scene.group(a_group(2))
    assert scene.gone() == ["g0", "g1"]


def test_a_member_that_waits_for_its_claim_keeps_the_others() -> None:
    scene = Scene(9, a_group(2))
    scene.pods(a_member("g0"), a_member("g1", claims=["late"]))
    assert scene.gone() == []

    put(scene.world, a_claim("late"))
    scene.keeper.note(ClaimChanged(claim_uid("late")))

    assert scene.gone() == ["g0", "g1"]


def test_a_member_without_devices_counts_and_costs_nothing() -> None:
    scene = Scene(2, a_group(3))
    launcher = a_pod("launcher", queue="a", annotations={"pod-group-name": "g"})
    scene.pods(*members(2), launcher)

    assert scene.gone() == ["g0", "g1"]


def test_members_that_were_refused_without_a_gate_go_with_those_at_it() -> None:
    scene = Scene(2, a_group(2))
    free = replace(a_member("g0"), gates=())
    scene.pods(free, a_member("g1"))
    scene.refusals.answered(free.uid, refused=True)
    scene.keeper.tried(free.uid, 0.0)

    decisions = scene.keeper.decide(NOW, 0.0)

    assert {(type(found), found.name) for found in decisions} == {
        (Retry, "g0"),
        (GateRemoval, "g1"),
    }


def test_a_decision_that_lapses_is_made_again_for_the_group() -> None:
    scene = Scene(2, a_group(2))
    scene.pods(*members(2))
    assert scene.gone() == ["g0", "g1"]

    scene.now += timedelta(seconds=120)

    assert scene.gone() == ["g0", "g1"]


def test_a_group_of_one_and_a_cluster_without_groups_change_nothing() -> None:
    scene = Scene(1, a_group(1))
    scene.pods(*members(2))
    assert scene.gone() == ["g0"]

    world: World = a_world(a_queue("a", onvif=(0, 1)), *members(2, "unknown"))
    world.serve_groups(served=False)
    assert [found.name for found in GateKeeper(world).decide(NOW, 0.0)] == ["unknown0"]


def test_a_group_lacks_room_once_however_many_of_it_wait() -> None:
    scene = Scene(1, a_group(2))
    scene.pods(*members(2), a_member("lone", "", requests={"akri.sh/onvif": 2}))

    assert scene.gone() == []

    assert scene.keeper.short_of_room() == [pod_uid("g0"), pod_uid("lone")]


def test_a_group_that_waits_is_judged_once_and_all_its_pods_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, judged, judge = 40, list[object](), verdicts.judge

    def counted(pod: PodView, *rest: Any, **options: Any) -> Any:
        judged.append(pod)
        return judge(pod, *rest, **options)

    monkeypatch.setattr(gangs, "judge", counted)
    scene = Scene(size - 1, a_group(size))
    scene.pods(*members(size))
    assert scene.gone() == []

    told: list[GateCondition] = []
    while len(told) < size:
        told += scene.keeper.pending_conditions.take(1)

    assert len(judged) <= size
    assert {condition.name for condition in told} == {pod.name for pod in members(size)}
    assert {condition.reason for condition in told} == {"OverLimit"}
    (sentence,) = {condition.message for condition in told}
    assert sentence.startswith(f"PodGroup default/g is admitted as a whole, {size} pods together: ")


def test_a_group_that_was_given_up_begins_again_only_after_a_back_off() -> None:
    scene = Scene(9, a_group(2))
    scene.world.assumptions.group_backoffs.evicted(("default", "g"), NOW)
    scene.pods(a_member("p1"), a_member("p2"))

    assert scene.gone() == []
    reason, sentence = scene.why("p1")
    assert reason == "PodGroupIncomplete"
    assert sentence == (
        "PodGroup default/g was evicted, since too few of its pods ran: it may be admitted again at"
        " 2026-11-21T12:01:00Z."
    )
    scene.now = NOW + timedelta(seconds=61)
    assert scene.gone() == ["p1", "p2"]


def test_a_group_that_runs_takes_more_pods_whatever_was_before() -> None:
    scene = Scene(9, a_group(2))
    scene.pods(*(a_member(name, node="n", spec={"schedulingGates": []}) for name in ("p1", "p2")))
    scene.world.assumptions.group_backoffs.evicted(("default", "g"), NOW)

    scene.pods(a_member("p3"))

    assert scene.gone() == ["p3"]


# Devices.


def with_claims(scene: Scene, count: int) -> None:
    """A group of so many pods, each with a claim of its own."""
    for number in range(count):
        scene.claim(a_claim(f"c{number}"))
    scene.pods(*(a_member(f"g{n}", claims=[f"c{n}"]) for n in range(count)))


def in_use(name: str, device: str) -> ClaimView:
    return an_allocated_claim(name, name, results=[a_result(pool="n", device=device)])


def test_a_group_waits_until_there_are_devices_for_all_of_it() -> None:
    """Half of it would run in vain, and be given up."""
    scene = Scene(9, a_group(3))
    scene.offer("d1", "d2", "d3")
    scene.claim(in_use("other", "d3"))
    with_claims(scene, 3)

    assert scene.gone() == []
    assert scene.keeper.short_of_room() == [pod_uid("g0")]
    assert scene.why("g1") == (
        "NoDeviceFree",
        "PodGroup default/g goes as a whole: 3 of its pods request 3 of onvif, and 2 matching"
        " devices are free.",
    )
    scene.claim(a_claim("other"))
    assert sorted(scene.gone()) == ["g0", "g1", "g2"]


def test_a_group_for_which_devices_are_held_goes_at_once() -> None:
    scene = Scene(9, a_group(2))
    scene.offer("d1", "d2")
    scene.claim(in_use("other", "d2"))
    with_claims(scene, 2)
    assert scene.gone() == []
    pods = [scene.world.facts.pod(pod_uid(f"g{n}")) for n in range(2)]

    for pod in pods:
        assert pod is not None
        claims = scene.world.facts.claims_of(pod)
        hold = hold_of_case(case_of(pod, claims, scene.world, at_bind=False))
        assert hold is not None
        scene.world.hold(replace(hold, is_device=True, devices=((device("d2"), 1),), node="n"))
    scene.keeper.look_again()

    assert sorted(scene.gone()) == ["g0", "g1"]


def test_where_devices_come_a_group_is_looked_at_again_soon() -> None:
    scene = Scene(9, a_group(2))
    scene.offer("d1")
    with_claims(scene, 2)
    assert scene.gone() == []

    scene.offer("d1", "d2")
    assert scene.keeper.next_look() == moment(scene.now) + 5
    scene.now += timedelta(seconds=5)

    assert sorted(scene.gone()) == ["g0", "g1"]


def test_two_gangs_do_not_go_for_the_same_devices() -> None:
    scene = Scene(9, a_group(2, "g"), a_group(2, "h"))
    scene.offer("d1", "d2", "d3")
    for group in "gh":
        for name in (f"{group}1", f"{group}2"):
            scene.claim(a_claim(name))
            scene.pods(a_member(name, group=group, claims=[name]))

    assert scene.gone() == ["g1", "g2"]
    assert scene.gone() == []
    assert scene.why("h1")[0] == "NoDeviceFree"

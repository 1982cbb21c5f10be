"""Gates are removed and conditions written, whatever the API server answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from binder.gates.apiserver_conditions import ConditionSettings
from binder.gates.apiserver_gate_removals import RemovalSettings
from binder.gates.apiserver_gate_terms import GateSettings
from binder.gates.apiserver_gate_writes import GateWrites
from binder.gates.apiserver_gates import GateWriter
from kube.backoff import Backoff
from kube.reconciling import reconcilers
from scheduler_plugin.accounting.assumptions import ASSUMED_TTL
from scheduler_plugin.accounting.world_changes import OtherChanged, QueueChanged
from scheduler_plugin.objects.names import ADMITTED_CONDITION, QUOTA_GATE, QueueName, Reason
from scheduler_plugin.waiting.admissions import WaitingPod
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods
from scheduler_plugin.waiting.gates import GateKeeper
from tests.fakes.apiserver import Fault
from tests.fakes.fence import FakeFence
from tests.fakes.pods import FakePods, running
from tests.scheduler_plugin.builders import (
    NOW,
    a_pod_object,
    a_queue,
    a_world,
    admit,
    moment,
    pod_uid,
)

OTHER_GATE = "example.com/hold"
FAULTS = (Fault.FORBIDDEN, Fault.REFUSED, Fault.FAILS, Fault.LOST, Fault.UNANSWERED)
NO_BACKOFF = Backoff(first_seconds=0.0, cap_seconds=0.0)


IN_NO_TIME = GateSettings(
    tick_seconds=0.0,
    look_seconds=0.0,
    review_rest=0.0,
    removals=RemovalSettings(backoff=NO_BACKOFF),
    conditions=ConditionSettings(pace_seconds=0.0, backoff=NO_BACKOFF),
)
"""Nothing rests."""

AT_ONCE = IN_NO_TIME.removals.workers


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence is looked at all the time."""
    monkeypatch.setattr(reconcilers, "FENCED_SECONDS", 0.0)


@dataclass
class Scene:
    """A queue `a` with a limit, and pods that wait for one `onvif` each."""

    pods: FakePods = field(default_factory=lambda: FakePods(a_world()))
    fence: FakeFence = field(default_factory=FakeFence)
    now: datetime = NOW

    def __post_init__(self) -> None:
        self.refusals = RefusedPods()
        writes = GateWrites(self.pods.client, self.pods, self.fence)
        self.writer = GateWriter(
            writes,
            self.refusals,
            lambda: self.now,
            lambda: moment(self.now),
            settings=IN_NO_TIME,
        )
        self.pods.listener = self.writer.changed

    def limit(self, limit: int) -> None:
        self.pods.world.put_queue(a_queue("a", onvif=(0, limit)))
        self.writer.changed(QueueChanged(QueueName("a")))

    def waits(self, *names: str, gates: tuple[str, ...] = (QUOTA_GATE,), **fields: Any) -> None:
        for name in names:
            spec = {"schedulingGates": [{"name": gate} for gate in gates]}
            asked = {"queue": "a", "requests": {"akri.sh/onvif": 1}, **fields}
            self.pods.put(a_pod_object(name, spec=spec, **asked))

    def binds(self, name: str) -> None:
        obj = self.pods.objects[name]
        self.pods.put({**obj, "spec": {**obj["spec"], "nodeName": "node-a"}})

    def proceeds(self, name: str) -> None:
        """A pod is bound, or is deleted if it was."""
        if self.pods.objects[name]["spec"].get("nodeName"):
            self.pods.delete(name)
        else:
            self.binds(name)

    def out_of_the_gate(self) -> list[str]:
        return [name for name in self.pods.objects if not self.pods.gates(name)]

    @property
    def assumed(self) -> int:
        return len(self.pods.world.assumptions)

    def running(self) -> AbstractAsyncContextManager[None]:
        return running(self.writer.run())


@pytest.fixture
def scene() -> Scene:
    found = Scene()
    found.limit(1)
    return found


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  Whatever happens, happens in these rounds.
            await asyncio.sleep(0)


async def settled() -> None:
    """Long enough for whatever is going to happen: nothing rests here."""
    for _ in range(100):
        await asyncio.sleep(0)


# Who goes.


async def test_nobody_goes_while_a_queue_has_an_entry_of_another_version(scene: Scene) -> None:
    odd = [{"deviceClass": "gpu", "per": "node"}]
    scene.pods.world.put_queue(a_queue("odd", resources=odd))
    scene.waits("p")
    async with scene.running():
        await settled()
        assert scene.out_of_the_gate() == []
        scene.pods.world.put_queue(a_queue("odd"))
        await until(lambda: scene.out_of_the_gate() == ["p"])


async def test_a_raised_limit_lets_as_many_go_some_at_one_time_in_their_order(
    scene: Scene,
) -> None:
    scene.limit(0)
    names = [f"p{number:03}" for number in range(140)]
    scene.waits(*names)
    async with scene.running():
        await until(lambda: scene.pods.told("p139"))
        scene.pods.held.clear()
        scene.limit(100)
        await until(lambda: scene.pods.most_at_once == AT_ONCE)
        scene.pods.held.set()
        await until(lambda: len(scene.pods.gated()) == 40)
        await settled()

    assert scene.pods.gated() == names[100:]
    removals = [asked for asked in scene.pods.asked if asked.startswith("gate")]
    assert removals == [f"gate {name}" for name in names[:100]]
    assert scene.pods.most_at_once == AT_ONCE


async def test_a_pod_that_is_bound_or_deleted_makes_room_for_the_next(scene: Scene) -> None:
    scene.waits("p0", "p1", "p2")
    async with scene.running():
        await until(lambda: not scene.pods.gates("p0"))
        scene.binds("p0")
        await settled()
        assert scene.pods.gated() == ["p1", "p2"]

        scene.pods.delete("p1")
        scene.pods.delete("p0")

        await until(lambda: not scene.pods.gates("p2"))
    assert scene.assumed == 1


async def test_a_pod_with_another_gate_keeps_both(scene: Scene) -> None:
    scene.waits("held", gates=(OTHER_GATE, QUOTA_GATE))
    scene.waits("free")
    async with scene.running():
        await until(lambda: not scene.pods.gates("free"))
        await until(lambda: scene.pods.told("held"))

    assert scene.pods.gates("held") == [OTHER_GATE, QUOTA_GATE]
    assert scene.pods.told("held") == "OtherGates"


async def test_room_that_filter_gives_up_is_taken_at_once(scene: Scene) -> None:
    """Nothing in the API tells of it."""
    running = scene.pods.put(a_pod_object("asks", queue="a", requests={"akri.sh/onvif": 1}))
    admit(scene.pods.world, running)
    scene.waits("p0")
    async with scene.running():
        await until(lambda: scene.pods.told("p0"))

        scene.pods.delete("asks", told=False)
        scene.pods.world.assumptions.forget(running.uid)

        await until(lambda: not scene.pods.gates("p0"))


async def test_who_was_let_go_before_a_restart_keeps_its_room(scene: Scene) -> None:
    gated = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    scene.waits("gone", gates=(), status={"conditions": gated})
    scene.waits("p0")
    async with scene.running():
        await until(lambda: scene.pods.told("p0"))
        assert scene.pods.gates("p0")

        scene.now += ASSUMED_TTL

        await until(lambda: not scene.pods.gates("p0"))


async def test_who_was_tried_in_vain_before_a_restart_keeps_no_room(scene: Scene) -> None:
    tried = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    scene.waits("tried", gates=(), status={"conditions": tried})
    scene.waits("p0")
    async with scene.running():
        await until(lambda: not scene.pods.gates("p0"))


# What goes wrong.


@pytest.mark.parametrize("fault", [Fault.FORBIDDEN, Fault.FAILS])
async def test_a_removal_that_is_refused_lets_others_go(scene: Scene, fault: Fault) -> None:
    scene.waits("p0", "p1")
    scene.pods.faults["p0"].extend([fault] * 9)
    async with scene.running():
        await until(lambda: not scene.pods.gates("p1"))
        scene.binds("p1")
        assert scene.pods.asked.count("gate p0") == 2

        scene.now += timedelta(seconds=3)

        await until(lambda: scene.pods.told("p0"))
    assert scene.assumed == 0


@pytest.mark.parametrize(("fault", "goes"), [(Fault.FAILS, True), (Fault.FORBIDDEN, False)])
async def test_a_pod_that_the_api_server_failed_ten_times_goes_soon_after(
    scene: Scene, fault: Fault, goes: bool
) -> None:
    """Each pod fails while etcd is away; what is forbidden may be so for ever."""
    scene.waits("p0")
    scene.pods.faults["p0"].extend([fault] * 10)
    async with scene.running():
        while scene.pods.faults["p0"]:
            await settled()
            scene.now += timedelta(seconds=10)
        await settled()
        scene.now += timedelta(seconds=10)
        if goes:
            await until(lambda: not scene.pods.gates("p0"))
        else:
            await settled()

    assert (not scene.pods.gates("p0")) is goes


async def test_a_condition_that_cannot_be_removed_keeps_no_other_from_being_written(
    scene: Scene,
) -> None:
    """A webhook may refuse each write of one pod for ever."""
    admitted = {"type": ADMITTED_CONDITION, "status": "False", "reason": "OverLimit"}
    scene.waits("stale", gates=(), status={"conditions": [admitted]})
    scene.binds("stale")
    scene.pods.faults["stale"].extend([Fault.FORBIDDEN] * 1000)
    scene.limit(0)
    scene.waits("p0", "p1")
    async with scene.running():
        await until(lambda: scene.pods.told("p0") and scene.pods.told("p1"))

    assert scene.pods.told("stale") == "OverLimit"


async def test_a_gate_that_is_gone_already_needs_no_removal(scene: Scene) -> None:
    """The watch is late: the pod keeps its room, for it is on its way."""
    scene.waits("p0", "p1")
    scene.pods.ungate("p0", told=False)
    async with scene.running():
        await until(lambda: "GET p0" in scene.pods.asked)
        await until(lambda: scene.pods.told("p1"))

    assert scene.pods.asked[:2] == ["gate p0", "GET p0"]
    assert scene.assumed == 1


@pytest.mark.parametrize("is_made_anew", [False, True])
async def test_a_pod_that_is_gone_leaves_no_trace(scene: Scene, is_made_anew: bool) -> None:
    scene.waits("p0", "p1")
    scene.pods.delete("p0", told=False)
    if is_made_anew:
        scene.pods.put(a_pod_object("p0", uid="another"), told=False)
    async with scene.running():
        await until(lambda: not scene.pods.gates("p1"))

    assert scene.pods.asked.count("gate p0") == 1
    assert scene.assumed == 1


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.REFUSED, Fault.UNANSWERED])
async def test_what_has_no_answer_is_tried_again_and_nobody_else_goes(
    scene: Scene, fault: Fault
) -> None:
    scene.waits("p0", "p1")
    scene.pods.faults["p0"].extend([fault] * 3)
    async with scene.running():
        await until(lambda: scene.pods.told("p1"))

    assert scene.pods.gated() == ["p1"]
    assert scene.assumed == 1


async def test_a_decision_that_lapsed_is_not_carried_out(scene: Scene) -> None:
    """It stands for the pod again, or for another, once somebody decides anew."""
    scene.waits("p0")
    scene.pods.faults["p0"].append(Fault.LOST)

    def lapse(name: str) -> None:
        if scene.now == NOW:
            scene.now += ASSUMED_TTL
            scene.pods.world.put_queue(a_queue("a", onvif=(0, 0)))

    scene.pods.before = lapse
    async with scene.running():
        await until(lambda: scene.pods.told("p0"))

    assert scene.pods.gates("p0")
    assert scene.pods.asked.count("gate p0") == 1


async def test_a_pod_that_leaves_while_it_is_to_be_removed_is_not_written(scene: Scene) -> None:
    scene.limit(AT_ONCE + 2)
    scene.pods.held.clear()
    scene.waits(*(f"p{number:02}" for number in range(AT_ONCE + 2)))
    deleted, freed = f"p{AT_ONCE:02}", f"p{AT_ONCE + 1:02}"
    async with scene.running():
        await until(lambda: scene.pods.most_at_once == AT_ONCE)
        scene.pods.delete(deleted)
        scene.pods.ungate(freed)
        scene.pods.held.set()
        await until(lambda: not scene.pods.gated())
        await settled()

    assert not {f"gate {deleted}", f"gate {freed}"} & set(scene.pods.asked)


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_fails_no_more_go_than_fit_and_in_the_end_all_go(
    scene: Scene, seed: int
) -> None:
    """Who is let go is bound, and deleted after some time; the watch is never quick."""
    random, counts = Random(seed), [0]
    scene.limit(3)
    scene.waits(*(f"p{number:02}" for number in range(20)))

    def maybe_fail(name: str) -> None:
        counts.append(len(scene.out_of_the_gate()))
        if random.random() < 0.4:
            scene.pods.faults[name].append(random.choice(FAULTS))
        if random.random() < 0.1:
            scene.fence.closes_at = 1

    scene.pods.before = maybe_fail
    async with scene.running(), asyncio.timeout(20):
        while scene.pods.objects:
            for _ in range(random.randrange(20)):
                await asyncio.sleep(0)
            for name in scene.out_of_the_gate():
                if random.random() < 0.5:
                    scene.proceeds(name)
            scene.now += timedelta(seconds=1)
        await settled()

    assert max(counts) == 3
    assert scene.assumed == 0


# Whose Lease it is.


async def test_nothing_is_written_or_told_until_the_lease_is_ours(scene: Scene) -> None:
    scene.fence.closed = "Another holds it."
    scene.waits("p0", "p1")
    async with scene.running():
        await settled()
        assert scene.pods.asked == []
        assert scene.assumed == 0
        assert scene.writer.why_unknown() == "Another holds it."

        scene.fence.closed = ""

        await until(lambda: scene.pods.told("p1"))
        assert scene.writer.why_unknown() == ""
    assert scene.pods.gated() == ["p1"]


async def test_who_loses_the_lease_begins_no_write_and_believes_in_none(scene: Scene) -> None:
    scene.limit(AT_ONCE + 5)
    scene.waits(*(f"p{number:02}" for number in range(AT_ONCE + 5)))
    scene.pods.held.clear()
    async with scene.running():
        await until(lambda: scene.pods.most_at_once == AT_ONCE)
        scene.fence.closed = "Another holds it."
        await until(lambda: scene.writer.why_unknown())
        scene.pods.held.set()
        await settled()

        assert scene.pods.asked == []
        assert scene.assumed == AT_ONCE, "those that were under way may have arrived"
        scene.fence.closed = ""
        await until(lambda: not scene.pods.gated())


@pytest.mark.parametrize("closes_at", range(1, 9))
async def test_a_lease_that_is_renewed_late_changes_nothing(scene: Scene, closes_at: int) -> None:
    scene.waits("p0", "p1")
    scene.fence.closes_at = closes_at
    async with scene.running():
        await until(lambda: scene.pods.told("p1"))
        await settled()

    assert scene.pods.gated() == ["p1"]
    assert scene.assumed == 1


async def test_a_fault_in_one_term_is_the_end_of_it_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decide = GateKeeper.decide
    faults = [ValueError("odd")]
    halfway: list[GateKeeper] = []

    def odd(keeper: GateKeeper, *arguments: Any) -> Any:
        assert keeper not in halfway, "it processed a change by half"
        if faults:
            halfway.append(keeper)
            raise faults.pop()
        return decide(keeper, *arguments)

    monkeypatch.setattr(GateKeeper, "decide", odd)
    scene.waits("p0")
    async with scene.running():
        await until(lambda: halfway)
        scene.waits("p1")
        await until(lambda: not scene.pods.gates("p0"))

    assert "gate-terms failed" in caplog.text
    assert "processed a change by half" not in caplog.text


# What is told.


async def test_a_waiting_pod_is_told_once_and_nothing_when_it_goes(scene: Scene) -> None:
    scene.limit(0)
    scene.waits("p0", status={"conditions": [{"type": "PodScheduled", "status": "False"}]})
    async with scene.running():
        await until(lambda: scene.pods.told("p0"))
        await settled()
        told = scene.pods.objects["p0"]["status"]["conditions"]
        scene.limit(1)
        await until(lambda: not scene.pods.told("p0"))
        await settled()

    assert told[1] == {
        "type": "moorage.dev/Admitted",
        "status": "False",
        "reason": Reason.OVER_LIMIT,
        "message": 'Pod default/p0 does not fit: queue "a" uses 0 onvif, 1 more would pass its'
        " limit of 0.",
        "lastTransitionTime": "2026-11-21T11:00:00Z",
    }
    assert scene.pods.objects["p0"]["status"]["conditions"] == told[:1]
    assert scene.pods.asked == ["status p0", "gate p0", "status p0"]


async def test_gates_go_before_conditions(scene: Scene) -> None:
    scene.limit(0)
    scene.waits(*(f"p{number:02}" for number in range(30)))
    raised: list[str] = []

    def raise_limit(name: str) -> None:
        if not raised:
            raised.append(name)
            scene.limit(20)

    scene.pods.before = raise_limit
    async with scene.running():
        await until(lambda: scene.pods.told("p29"))
        await settled()

    first, *removals = scene.pods.asked[:21]
    assert first.startswith("status")
    assert all(asked.startswith("gate") for asked in removals)


async def test_a_condition_of_whoever_does_not_wait_is_removed_after_a_restart(
    scene: Scene,
) -> None:
    stale = [{"type": "moorage.dev/Admitted", "status": "False", "reason": "OverLimit"}]
    scene.waits("p0", gates=(), status={"conditions": stale}, node="node-a")
    async with scene.running():
        await until(lambda: not scene.pods.told("p0"))
        await settled()

    assert scene.pods.asked == ["status p0"]


async def test_a_condition_is_tried_again_unless_the_pod_is_gone(scene: Scene) -> None:
    scene.limit(0)
    scene.waits("p0", "p1")
    scene.pods.faults["p0"].extend([Fault.REFUSED, Fault.FORBIDDEN])
    scene.pods.delete("p1", told=False)
    async with scene.running():
        await until(lambda: scene.pods.told("p0"))
        await settled()

    assert scene.pods.asked.count("status p0") == 3
    assert scene.pods.asked.count("status p1") == 1


async def test_a_place_and_the_reason_of_now_are_told_on_request(scene: Scene) -> None:
    scene.waits("p0", "p1", "p2")
    async with scene.running():
        await until(lambda: not scene.pods.gates("p0"))

        found = scene.writer.waiting("default", "p2")

        assert isinstance(found, WaitingPod)
        assert str(found.place) == '2 of 2 pods that wait in queue "a"'
        assert found.reason == Reason.OVER_LIMIT
        unknown = "Pod default/px does not exist, or requests no devices."
        assert scene.writer.waiting("default", "px") == unknown
        gone = (
            "Pod default/p0 does not wait: it has no gate moorage.dev/quota, and was not refused."
        )
        assert scene.writer.waiting("default", "p0") == gone


# Who waits without a gate.


def refused(scene: Scene, *names: str) -> None:
    """Pods without a gate that kube-scheduler asks about, and that do not fit."""
    scene.waits(*names, gates=())
    for name in names:
        scene.refusals.answered(pod_uid(name), refused=True)


async def test_who_fits_by_now_is_told_so_and_no_more_than_fit(scene: Scene) -> None:
    scene.limit(0)
    refused(scene, *(f"p{n}" for n in range(50)))
    async with scene.running():
        await settled()
        assert scene.pods.asked == []

        scene.limit(1)
        await until(lambda: scene.pods.told("p0") == "Fits")
        await settled()

    assert scene.pods.asked[0] == "status p0"
    assert {asked.split()[1] for asked in scene.pods.asked} == {"p0"}
    assert scene.assumed == 1


async def test_a_pod_is_told_each_time_in_other_words(scene: Scene) -> None:
    """A write that changes nothing would wake nobody."""

    def told() -> object:
        return scene.pods.objects["p0"]["status"]["conditions"]

    refused(scene, "p0")
    async with scene.running():
        await until(lambda: scene.pods.told("p0") == "Fits")
        first = told()
        scene.now += timedelta(seconds=1)
        scene.refusals.answered(pod_uid("p0"), refused=True)
        await until(lambda: scene.pods.told("p0") == "Fits" and told() != first)


async def test_a_pod_that_was_admitted_meanwhile_is_told_nothing(scene: Scene) -> None:
    refused(scene, "p0")
    scene.refusals.answered(pod_uid("p0"), refused=False)
    async with scene.running():
        await settled()

    assert scene.pods.asked == []


async def test_an_odd_pod_does_not_keep_others_from_being_told(scene: Scene) -> None:
    scene.limit(2)

    def spoil(name: str) -> None:
        if name == "p0":
            raise RuntimeError("odd")

    scene.pods.before = spoil
    refused(scene, "p0", "p1")
    async with scene.running():
        await until(lambda: scene.pods.told("p1") == "Fits")


async def test_nobody_is_told_while_the_lease_may_not_be_ours(scene: Scene) -> None:
    scene.fence.closed = "Not ours."
    refused(scene, "p0")
    async with scene.running():
        await settled()
        assert scene.pods.asked == []
        scene.fence.closed = ""
        await until(lambda: scene.pods.told("p0") == "Fits")


@pytest.mark.parametrize("what", ["bound", "deleted"])
async def test_a_pod_that_cannot_be_tried_is_forgotten(scene: Scene, what: str) -> None:
    scene.limit(0)
    refused(scene, "p0")
    async with scene.running():
        await settled()
        if what == "deleted":
            scene.pods.delete("p0")
        else:
            scene.binds("p0")
        scene.limit(5)
        await settled()

    assert scene.pods.asked == []
    assert len(scene.refusals) == 0


async def test_a_pod_that_is_deleted_while_it_is_told_delays_nobody(scene: Scene) -> None:
    scene.limit(0)
    refused(scene, "p0", "p1")
    async with scene.running():
        await settled()
        scene.pods.delete("p0", told=False)
        scene.limit(1)
        await until(lambda: scene.pods.told("p1") == "Fits")


# What it costs.


async def test_a_burst_of_what_all_depend_on_is_looked_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviews: list[str] = []
    monkeypatch.setattr(WaitingPods, "review", lambda _, uid: reviews.append(uid))
    scene.limit(0)
    scene.waits("p0")
    async with scene.running():
        await until(lambda: scene.pods.told("p0"))
        for _ in range(50):
            scene.writer.changed(OtherChanged())
        await until(lambda: reviews)
        await settled()

    assert len(reviews) == 1

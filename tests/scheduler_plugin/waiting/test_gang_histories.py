"""However groups wait, grow, shrink, lose members and come back: all of them that go together go.

The machine plays users, kube-scheduler and the API server around a keeper that hears of each
change. The checker knows nothing of lines: of a group that had too few in it before a decision so
many are in afterwards as it needs, or no more than before; and no group is left that fits.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import GroupChanged, PodChanged, QueueChanged
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, QueueName
from scheduler_plugin.objects.pods import PodGroupView, PodView
from tests.left_overs import kept_in
from tests.scheduler_plugin.builders import NOW, a_claim, a_pod, a_queue, a_world, moment, put
from tests.scheduler_plugin.waiting.watched_keepers import WatchedKeeper

ONVIF = ResourceKey("onvif")
TAKEN_LATER = {".deferred.failures._rests._forgotten._heap", ".pending_conditions._uids"}
"""Of pods that are gone: let go of when its moment comes, or when somebody asks."""
GROUPS = ("g", "h", "i")

groups = st.sampled_from(GROUPS)
numbers = st.integers(0, 30)


def members(world: World, group: str) -> list[PodView]:
    pods = [pod for pod in world.facts.pods() if pod.group == group]
    return [pod for pod in pods if not pod.ended and not pod.deleting]


def is_in(world: World, pod: PodView) -> bool:
    return pod.is_bound or world.assumptions.is_assumed(pod.uid)


def least(world: World, group: str) -> int:
    found = world.facts.group("default", group)
    assert found is not None
    return found.min_member or len(members(world, group))


class Gangs(RuleBasedStateMachine):
    """Pods of three groups and of none, in two queues below one limit."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.births = 0
        self.limit = 4
        self.world = a_world()
        self.keeper = WatchedKeeper(self.world, look_seconds=0.0)

    @initialize(counts=st.tuples(*[st.sampled_from([None, 1, 2, 3, 4])] * 3))
    def begin(self, counts: tuple[int | None, ...]) -> None:
        self.set_limit(4)
        put(self.world, a_claim("shared"))
        for queue in ("a", "b"):
            put(self.world, a_queue(queue, parent="root", onvif=(1, -1)))
            self.keeper.note(QueueChanged(QueueName(queue)))
        for group, count in zip(GROUPS, counts, strict=True):
            self.set_group(group, count)
            for _ in range(2):
                self.create(group, "a", False)

    def put(self, pod: PodView) -> None:
        self.world.put_pod(pod)
        self.keeper.note(PodChanged(pod.uid))

    def pick(self, number: int) -> PodView | None:
        pods = list(self.world.facts.pods())
        return pods[number % len(pods)] if pods else None

    @rule(limit=st.integers(0, 8))
    def set_limit(self, limit: int) -> None:
        self.limit = limit
        put(self.world, a_queue("root", onvif=(0, limit)))
        self.keeper.note(QueueChanged(QueueName("root")))

    @rule(group=groups, count=st.sampled_from([None, 1, 2, 3, 4]))
    def set_group(self, group: str, count: int | None) -> None:
        self.world.put_group(PodGroupView("default", group, NO_QUEUE, count))
        self.keeper.note(GroupChanged("default", group))

    @rule(
        group=st.sampled_from([*GROUPS, *GROUPS, ""]),
        queue=st.sampled_from(["a", "a", "a", "b"]),
        shares=st.booleans(),
    )
    def create(self, group: str, queue: str, shares: bool) -> None:
        """With a device of its own, or a claim that others share."""
        self.births += 1
        wanted = {"claims": ["shared"]} if shares else {"requests": {"akri.sh/onvif": 1}}
        annotations = {"pod-group-name": group} if group else {}
        pod = a_pod(
            f"{group}{self.births}",
            queue=queue,
            created=f"2026-11-21T11:{self.births // 60 % 60:02}:{self.births % 60:02}Z",
            annotations=annotations,
            spec={"schedulingGates": [{"name": QUOTA_GATE}]},
            **wanted,
        )
        self.put(pod)

    @rule(number=numbers, way=st.sampled_from(["delete", "mark", "hold", "run", "fail"]))
    def change(self, number: int, way: str) -> None:
        pod = self.pick(number)
        if pod is None:
            return
        if way == "delete":
            self.world.delete_pod(pod.uid)
            self.keeper.note(PodChanged(pod.uid))
        elif way == "mark":
            self.put(replace(pod, deleting=True))
        elif way == "hold" and pod.is_gated:
            other = () if len(pod.gates) > 1 else ("example.com/hold",)
            self.put(replace(pod, gates=(*other, QUOTA_GATE)))
        elif way == "run" and self.world.assumptions.is_assumed(pod.uid):
            self.put(replace(pod, gates=(), node="node-a"))
        elif way == "fail":
            self.keeper.failed(pod.uid, moment(self.now))

    @rule(seconds=st.sampled_from([1, 70, 400]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def decide(self) -> None:
        self.keeper.decide(self.now, moment(self.now), 0)
        before, used = {group: self.inside(group) for group in GROUPS}, self.used()

        gone = self.step()

        for group in GROUPS:
            came = [uid for uid in gone if self.group_of(uid) == group]
            assert not came or len(self.inside(group)) >= least(self.world, group), group
            assert came or self.inside(group) == before[group]
        assert self.used() <= max(self.limit, used)
        for group in GROUPS:
            assert not self.would_fit(group), group

    def used(self) -> int:
        assumed = self.world.assumptions.usage.amount(QueueName("root"), ONVIF)
        return self.world.ledger.usage.amount(QueueName("root"), ONVIF) + assumed

    def step(self) -> list[str]:
        gone = self.keeper.decide(self.now, moment(self.now))
        while self.keeper.has_more:
            gone += self.keeper.decide(self.now, moment(self.now))
        return [str(found.uid) for found in gone]

    def group_of(self, uid: str) -> str:
        return next(pod.group for pod in self.world.facts.pods() if pod.uid == uid)

    def inside(self, group: str) -> list[str]:
        return [str(p.uid) for p in members(self.world, group) if is_in(self.world, p)]

    def would_fit(self, group: str) -> bool:
        """Whether as many as a group lacks could go, one after the other, in another world."""
        world = deepcopy(self.world)
        lacking = max(1, least(world, group) - len(self.inside(group)))
        coming = [p for p in members(world, group) if self.could_go(p)]
        coming.sort(key=lambda pod: pod.created)
        if len(coming) < lacking:
            return False
        for pod in coming[:lacking]:
            verdict = judge(pod, world.facts.claims_of(pod), world)
            if not isinstance(verdict, Admitted):
                return False
            assume(pod, verdict, world, self.now)
        return True

    def could_go(self, pod: PodView) -> bool:
        deferred = {*self.keeper.deferred.assumed, *self.keeper.deferred.backoff}
        return pod.gates == (QUOTA_GATE,) and pod.uid not in deferred and not pod.is_bound

    def teardown(self) -> None:
        """When all pods are gone nothing is left of them."""
        for pod in list(self.world.facts.pods()):
            self.world.delete_pod(pod.uid)
            self.keeper.note(PodChanged(pod.uid))
        self.step()
        left = kept_in(self.keeper, self.world, *vars(self.world).values())
        assert left.keys() <= TAKEN_LATER
        assert len(self.world.assumptions) == 0


TestGangs = Gangs.TestCase
TestGangs.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_a_pod_leaves_that_could_not_go_is_for_other_groups_at_once() -> None:
    """Found by the machine: only its own group was looked at, and that needs more."""
    gangs = Gangs()
    gangs.begin((None, None, None))
    gangs.decide()
    gangs.change(4, "delete")
    gangs.create("g", "a", False)
    gangs.decide()
    gangs.change(0, "fail")

    gangs.decide()

    assert len(gangs.inside("i")) == 1

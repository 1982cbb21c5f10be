"""However pods wait, come and go: the gate keeper decides what going through everything would.

Some wait at the gate; others have none, were tried by kube-scheduler and refused.

The machine plays users, kube-scheduler and the binder around a keeper that hears of each change.
Each decision is gone through with the plainest means: before each pod that goes every waiting pod
is judged, and none of those that fit may have its turn before; in the end nobody is left who fits.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
)
from scheduler_plugin.judging.missing_claims import missing_claims
from scheduler_plugin.judging.verdicts import Admitted, Refused, Verdict, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClaimView, Result
from scheduler_plugin.objects.names import QUOTA_GATE, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.decisions import Wait
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.refused_pods import RefusedPods
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_world,
    moment,
)

ONVIF = ResourceKey("onvif")
PARENTS = {"left": "root", "right": "root", "leaf": "left"}
CEILINGS = {"root": (4, 6), "left": (3, 5), "right": (2, -1), "leaf": (1, 3)}
SHARED = ("c0", "c1", "c2", "c3")
SLOTS = {"c2": 2, "c3": 3, "p3": 2, "p8": 3}
OTHER_GATE = "example.com/hold"
OWN = "a claim of its own"

numbers = st.integers(0, 11)
pod_names = st.sampled_from([f"p{number}" for number in range(14)])
shared_claims = st.sampled_from([*SHARED, "p1", "p2"])
queues = st.sampled_from(["root", "left", "right", "leaf"])
seldom = st.sampled_from([False, False, False, True])


def verdict(world: World, pod: PodView, now: datetime) -> Verdict:
    world.assumptions.expire(now)
    return judge(pod, world.facts.claims_of(pod), world)


def check_decision(world: World, waiting: list[PodUid], gone: list[PodUid], now: datetime) -> None:
    """Each that went was one whose turn it was, and nobody is left who fits."""
    fitting = plain_fitting(world, waiting, now)
    for uid in gone:
        pod = next(pod for pod in fitting if pod.uid == uid)
        check_turn(pod, fitting, world)
        admitted = verdict(world, pod, now)
        assert isinstance(admitted, Admitted)
        assume(pod, admitted, world, now)
        waiting.remove(uid)
        fitting = plain_fitting(world, waiting, now)
    assert not fitting


def plain_fitting(world: World, waiting: list[PodUid], now: datetime) -> list[PodView]:
    """By judging every pod that waits."""
    pods = [pod for pod in world.facts.pods() if pod.uid in waiting and may_be_judged(pod, world)]
    return [pod for pod in pods if isinstance(verdict(world, pod, now), Admitted)]


def may_be_judged(pod: PodView, world: World) -> bool:
    return set(pod.gates) <= {QUOTA_GATE} and not missing_claims(pod, world.facts)


def plain_turn(pod: PodView) -> tuple[int, str, str]:
    return (-pod.priority, pod.created, pod.name)


def check_turn(pod: PodView, fitting: list[PodView], world: World) -> None:
    """No sibling stands better at any level, and nobody of its queue has an earlier turn."""
    path = world.facts.tree.path(pod.queue)[::-1]
    rivals = fitting
    for level, place in enumerate(path):
        for other in rivals:
            beside = world.facts.tree.path(other.queue)[::-1]
            assert plain_rank(place, world) <= rank_at(level, beside, world), (pod, other)
        rivals = [p for p in rivals if place in world.facts.tree.path(p.queue)]
    for other in rivals:
        if other.queue == pod.queue:
            assert plain_turn(pod) <= plain_turn(other)
        else:
            beside = world.facts.tree.path(other.queue)[::-1]
            own = (True, plain_own(pod.queue, world))
            assert own <= rank_at(len(path), beside, world), (pod, other)


def rank_at(level: int, path: tuple[QueueName, ...], world: World) -> tuple[bool, float]:
    """The rank of a queue's ancestor at a level; below it, that of its own use."""
    if level < len(path):
        return plain_rank(path[level], world)
    return True, plain_own(path[-1], world)


def plain_rank(queue: QueueName, world: World) -> tuple[bool, float]:
    """The part of the quota that is used, or how much more than it."""
    used, quota = usage(world, queue), plain_quota(world, queue)
    return (False, used / quota) if used < quota else (True, used - quota)


def plain_own(queue: QueueName, world: World) -> int:
    children = world.facts.tree.children(queue)
    return usage(world, queue) - sum(usage(world, child) for child in children)


def plain_quota(world: World, place: QueueName) -> int:
    share = world.facts.tree.share(place, ONVIF)
    assert share is not None
    assert share.quota.most is not None
    return share.quota.most


def usage(world: World, place: QueueName) -> int:
    charged = world.ledger.usage.amount(place, ONVIF)
    return charged + world.assumptions.usage.amount(place, ONVIF)


class Waiting(RuleBasedStateMachine):
    """A cluster whose pods come with a gate, most of them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.births = 0
        self.specs: dict[str, tuple[int, int]] = dict(CEILINGS)
        self.policies = dict.fromkeys(CEILINGS, "Allow")
        self.world = a_world()
        self.most: int | None = None
        self.refusals = RefusedPods()
        self.refusals.changed = self.tried
        self.keeper = GateKeeper(self.world, self.refusals, look_seconds=0.0)

    def tried(self, uid: PodUid) -> None:
        self.keeper.tried(uid, moment(self.now))

    @initialize(most=st.sampled_from([1, 3, None]))
    def begin(self, most: int | None) -> None:
        for name in CEILINGS:
            self.put_queue(name)
        self.most = most
        self.keeper = GateKeeper(self.world, self.refusals, look_seconds=0.0)
        for number in range(10):
            queue = ("left", "right", "leaf", "root")[number % 4]
            named = [SHARED[number % 3] if number % 3 else f"p{number}"]
            self.create_pod(f"p{number}", queue, named, (False, 0, 0), True, True)

    # Every change is told.

    def put_queue(self, name: str) -> None:
        parent = {"parent": PARENTS[name]} if name in PARENTS else {}
        sharing = {"claimSharing": {"policy": self.policies[name]}}
        self.world.put_queue(a_queue(name, **parent, **sharing, onvif=self.specs[name]))
        self.keeper.note(QueueChanged(QueueName(name)))

    def put_pod(self, pod: PodView) -> None:
        self.world.put_pod(pod)
        self.keeper.note(PodChanged(pod.uid))

    def put_claim(self, claim: ClaimView) -> None:
        self.world.put_claim(claim)
        self.keeper.note(ClaimChanged(claim.uid))

    def decided(self, pod: PodView) -> None:
        for claim in self.world.facts.claims_of(pod):
            self.keeper.note(ClaimChanged(claim.uid))

    def pick(self, number: int, *, gated: bool | None = None) -> PodView | None:
        found = [p for p in self.world.facts.pods() if gated is None or p.is_gated == gated]
        return found[number % len(found)] if found else None

    def drop_in_flight(self, pod: PodView) -> None:
        self.world.assumptions.forget(pod.uid)
        self.decided(pod)

    # Users.

    @rule(
        name=pod_names,
        queue=queues,
        named=st.one_of(st.just([OWN]), st.lists(shared_claims, unique=True, max_size=2)),
        traits=st.tuples(seldom, st.sampled_from([0, 0, 1]), st.sampled_from([0, 0, 1, 2])),
        gated=st.sampled_from([True, True, True, False]),
        complete=st.sampled_from([True, True, True, False]),
    )
    def create_pod(
        self,
        name: str,
        queue: str,
        named: list[str],
        traits: tuple[bool, int, int],
        gated: bool,
        complete: bool,
    ) -> None:
        """Its claims are made before it, or some time after."""
        if self.world.facts.pod_named("default", name) is not None:
            return
        non_preemptible, priority, own = traits
        named = [name if claim == OWN else claim for claim in named]
        self.births += 1
        pod = a_pod(
            name,
            uid=f"{name}-{self.births}",
            created=f"2026-11-21T11:00:{self.births // 3:04}Z",
            queue=queue,
            claims=named,
            requests={"akri.sh/onvif": own} if own else {},
            non_preemptible=non_preemptible,
            spec={"priority": priority},
        )
        if not pod.may_use_devices:
            return
        self.put_pod(replace(pod, gates=(QUOTA_GATE,) if gated else ()))
        for claim in named if complete else ():
            self.create_claim(claim, "")

    @rule(name=shared_claims, queue=st.sampled_from(["", "", "left", "right"]))
    def create_claim(self, name: str, queue: str) -> None:
        if self.world.facts.claim_named("default", name) is None:
            self.births += 1
            requests = [a_request(slots=str(SLOTS.get(name, 1)))]
            uid = f"{name}-{self.births}"
            self.put_claim(a_claim(name, requests=requests, uid=uid, queue=queue))

    @rule(name=shared_claims)
    def delete_claim(self, name: str) -> None:
        claim = self.world.facts.claim_named("default", name)
        if claim is not None and not claim.reserved_for:
            self.world.delete_claim(claim.uid)
            self.keeper.note(ClaimChanged(claim.uid))

    @rule(number=numbers, way=st.sampled_from(["delete", "end", "hold", "ungate", "mark"]))
    def change_pod(self, number: int, way: str) -> None:
        pod = self.pick(number)
        if pod is None:
            return
        if way == "delete":
            self.delete_pod(pod)
        elif way == "end":
            self.put_pod(replace(pod, ended=True, node="node-a", gates=()))
            self.release(pod)
        elif way == "hold" and pod.is_gated:
            other = () if OTHER_GATE in pod.gates else (OTHER_GATE,)
            self.put_pod(replace(pod, gates=(*other, QUOTA_GATE)))
        elif way == "ungate" and pod.is_gated:
            self.put_pod(replace(pod, gates=()))
        elif way == "mark" and not pod.node:
            self.put_pod(replace(pod, deleting=True))

    def delete_pod(self, pod: PodView) -> None:
        claims = self.world.facts.claims_of(pod)
        self.world.delete_pod(pod.uid)
        self.keeper.note(PodChanged(pod.uid))
        self.release(pod)
        for claim in claims:
            self.keeper.note(ClaimChanged(claim.uid))

    def release(self, pod: PodView) -> None:
        for claim in list(self.world.facts.claims()):
            if pod.uid in claim.reserved_for:
                left = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
                kept = claim if left else replace(claim, results=None, label=QueueName(""))
                self.put_claim(replace(kept, reserved_for=left))

    # Administrators.

    @rule(name=queues, quota=st.integers(0, 5), more=st.sampled_from([0, 1, 4, 9]))
    def set_ceilings(self, name: str, quota: int, more: int) -> None:
        self.specs[name] = (quota, quota + more)
        self.put_queue(name)

    @rule(name=queues, policy=st.sampled_from(["Allow", "Deny"]))
    def set_policy(self, name: str, policy: str) -> None:
        self.policies[name] = policy
        self.put_queue(name)

    # kube-scheduler and the binder.

    @rule(number=numbers, fails=seldom)
    def schedule(self, number: int, fails: bool) -> None:
        """Filter, reservations, owner and binding of a pod without a gate; or only Filter."""
        pod = self.pick(number, gated=False)
        if pod is None or pod.node or pod.gates or missing_claims(pod, self.world.facts):
            return
        self.drop_in_flight(pod)
        found = verdict(self.world, pod, self.now)
        self.refusals.answered(pod.uid, refused=isinstance(found, Refused))
        if not isinstance(found, Admitted):
            return
        assume(pod, found, self.world, self.now)
        self.decided(pod)
        if not fails:
            for use in found.claims:
                self.reserve(use.claim, pod, use.owner, use.owner_pod)
            self.put_pod(replace(pod, node="node-a"))

    def reserve(
        self, claim: ClaimView, pod: PodView, owner: QueueName, owner_pod: PodUid | None
    ) -> None:
        slots = claim.requests[0].alternatives[0].slots
        results = claim.results or (Result("req", "moorage.dev", slots),)
        reserved = replace(claim, results=results, reserved_for=(*claim.reserved_for, pod.uid))
        if owner_pod is not None:
            reserved = replace(reserved, label=owner, owner_pod=owner_pod)
        self.put_claim(reserved)

    def going(self, number: int) -> PodView | None:
        going = sorted(self.keeper._going)
        return self.world.facts.pod(going[number % len(going)]) if going else None

    @rule(number=numbers)
    def ungate(self, number: int) -> None:
        """The removal of a gate arrives."""
        pod = self.going(number)
        if pod is not None and pod.is_gated:
            self.put_pod(replace(pod, gates=()))

    @rule(number=numbers)
    def try_again(self, number: int) -> None:
        """kube-scheduler tries whom it was told to."""
        pod = self.going(number)
        if pod is not None and not pod.gates:
            self.drop_in_flight(pod)
            found = verdict(self.world, pod, self.now)
            self.refusals.answered(pod.uid, refused=isinstance(found, Refused))
            if isinstance(found, Admitted):
                assume(pod, found, self.world, self.now)
                self.decided(pod)

    @rule(number=numbers)
    def fail_to_let_go(self, number: int) -> None:
        pod = self.going(number)
        if pod is not None:
            self.keeper.failed(pod.uid, moment(self.now))
            self.decided(pod)

    @rule()
    def change_what_all_depend_on(self) -> None:
        self.keeper.note(OtherChanged())

    @rule(seconds=st.sampled_from([1, 20, 40, 400]))
    def wait(self, seconds: int) -> None:
        """Time goes by, and decisions without a sign of them lapse."""
        self.now += timedelta(seconds=seconds)

    # The keeper.

    def waits(self, pod: PodView) -> bool:
        return pod.is_gated or (pod.uid in self.refusals and not pod.gates and pod.may_be_bound)

    def step(self, most: int | None) -> list[PodUid]:
        return [found.uid for found in self.keeper.decide(self.now, moment(self.now), most)]

    @rule(steps=st.integers(1, 9))
    def decide_a_little(self, steps: int) -> None:
        """Then something else happens."""
        before = {name: usage(self.world, QueueName(name)) for name in CEILINGS}
        self.step(steps)
        self.check_ceilings(before)

    @rule()
    def decide(self) -> None:
        """Whose turn it is goes, all that fit go, and no ceiling is passed."""
        self.step(0)
        away = {*self.keeper._going, *self.keeper._resting}
        pods = self.world.facts.pods()
        waiting = [p.uid for p in pods if self.waits(p) and p.uid not in away]
        copied = deepcopy(self.world)
        before = {name: usage(self.world, QueueName(name)) for name in CEILINGS}

        gone = self.step(self.most)
        while self.keeper.has_more:
            gone += self.step(self.most)

        check_decision(copied, waiting, gone, self.now)
        self.check_ceilings(before)
        self.tell()

    def check_ceilings(self, before: dict[str, int]) -> None:
        for name, (_, limit) in self.specs.items():
            used = usage(self.world, QueueName(name))
            assert used <= max(limit, before[name]) or limit < 0, name

    def tell(self) -> None:
        """Each pod is told why it waits, once."""
        for condition in self.keeper.untold.take(100):
            pod = self.world.facts.pod(condition.uid)
            assert pod is not None
            assert condition.reason != pod.admission
            self.put_pod(replace(pod, admission=condition.reason))
        assert self.keeper.untold.take(100) == ()
        for pod in list(self.world.facts.pods()):
            if pod.is_gated and pod.uid in self.keeper._waiting:
                assert pod.admission == self.why(pod), pod

    def why(self, pod: PodView) -> str:
        if OTHER_GATE in pod.gates:
            return Wait.OTHER_GATES
        if missing_claims(pod, self.world.facts):
            return Wait.CLAIM_NOT_FOUND
        found = verdict(self.world, pod, self.now)
        assert isinstance(found, Refused)
        return found.reason

    @invariant()
    def each_that_waits_is_in_line_or_away(self) -> None:
        waiting = {pod.uid for pod in self.world.facts.pods() if self.waits(pod)}
        away = {*self.keeper._going, *self.keeper._resting}
        members = set(self.keeper._waiting)
        assert members | set(self.keeper._to_place) >= waiting - away
        assert members <= waiting - away
        assert away <= waiting

    def teardown(self) -> None:
        """When all pods are gone nothing is left of them."""
        for pod in list(self.world.facts.pods()):
            self.delete_pod(pod)
        self.step(None)
        waiting, blockades = self.keeper._waiting, self.keeper._blockades
        left = [waiting.lines, waiting._members, waiting._naming, waiting._uids, waiting._keys]
        left += [waiting._lines_of, waiting.woken, blockades._lines, blockades._bottlenecks]
        assert not any([*left, *self.keeper._going, *self.keeper._resting])
        assert len(self.keeper._failures) == len(self.world.assumptions) == 0
        assert not self.keeper.has_more


TestWaiting = Waiting.TestCase
TestWaiting.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)

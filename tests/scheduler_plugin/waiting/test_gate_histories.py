"""However pods wait, come and go: the gate keeper decides what going through everything would.

Some wait at the gate; others have none, were tried by kube-scheduler and refused. Their queue is
their own, their PodGroup's or their namespace's, which are heard of at any time, change and go; so
do Queues, and who may use them.

The machine plays users, administrators, kube-scheduler and the binder around a keeper that hears of
each change. The watch of pods may be silent about a binding, and clocks are set.
Each decision is gone through with the plainest means: before each pod that goes every waiting pod
is judged, and none of those that fit may have its turn before; in the end nobody is left who fits.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    NamespaceChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
)
from scheduler_plugin.judging.missing_claims import missing_claims
from scheduler_plugin.judging.verdicts import Admitted, Refused, Verdict, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClaimView, Result
from scheduler_plugin.objects.names import QUOTA_GATE, PodUid, QueueName
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from scheduler_plugin.waiting.admissions import WaitReason
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from tests.left_overs import kept_in
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_world,
)
from tests.scheduler_plugin.waiting.watched_keepers import WatchedKeeper

ONVIF = ResourceKey("onvif")
TAKEN_LATER = {".deferred.failures._rests._forgotten._heap", ".pending_conditions._uids"}
"""Of pods that are gone: let go of when its moment comes, or when somebody asks."""
PARENTS = {"left": "root", "right": "root", "leaf": "left"}
CEILINGS = {"root": (4, 6), "left": (3, 5), "right": (2, -1), "leaf": (1, 3)}
SHARED = ("c0", "c1", "c2", "c3")
SLOTS = {"c2": 2, "c3": 3, "p3": 2, "p8": 3}
OTHER_GATE = "example.com/hold"
OWN = "a claim of its own"
GROUP = "its group's"
SELECTORS = {"all": {}, "team a": {"matchLabels": {"team": "a"}}, "none": None}

numbers = st.integers(0, 11)
pod_names = st.sampled_from([f"p{number}" for number in range(14)])
shared_claims = st.sampled_from([*SHARED, "p1", "p2"])
queues = st.sampled_from(["root", "left", "right", "leaf"])
named_queues = st.sampled_from(["root", "left", "right", "leaf", "", GROUP])
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
    queue = world.facts.queue_of(pod)
    path, rivals = plain_path(pod, world), fitting
    for level, place in enumerate(path):
        for other in rivals:
            beside = plain_path(other, world)
            assert plain_rank(place, world) <= rank_at(level, beside, world), (pod, other)
        rivals = [p for p in rivals if place in plain_path(p, world)]
    for other in rivals:
        if world.facts.queue_of(other) == queue:
            assert plain_turn(pod) <= plain_turn(other)
        else:
            own = (2, -100, 2 * plain_own(queue, world) + 1)
            assert own <= rank_at(len(path), plain_path(other, world), world), (pod, other)


def plain_path(pod: PodView, world: World) -> tuple[QueueName, ...]:
    """From the root down to the pod's queue."""
    return world.facts.tree.path(world.facts.queue_of(pod))[::-1]


def rank_at(level: int, path: tuple[QueueName, ...], world: World) -> tuple[int, int, float]:
    """The rank of a queue's ancestor at a level; below it, that of its own use."""
    if level < len(path):
        return plain_rank(path[level], world)
    return 2, -100, 2 * plain_own(path[-1], world) + 1


def plain_rank(name: QueueName, world: World) -> tuple[int, int, float]:
    """Priority, and the part of the quota that is used or how much more than it, for its weight."""
    used, quota = usage(world, name), plain_quota(world, name)
    queue = world.facts.tree.get(name)
    assert queue is not None
    weight = queue.shares[ONVIF].weight
    if used < quota:
        return 0, -queue.priority, used / quota
    return 2, -queue.priority, (2 * (used - quota) + 1) / weight if weight else inf


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
        self.moment = 0.0
        self.births = 0
        self.specs: dict[str, tuple[int, int, int]] = {
            name: (*ceilings, 1) for name, ceilings in CEILINGS.items()
        }
        self.priorities = dict.fromkeys(CEILINGS, 100)
        self.policies = dict.fromkeys(CEILINGS, "Allow")
        self.selectors = {**dict.fromkeys(CEILINGS, "all"), "right": "team a"}
        # Pods that are bound, and of which the watch has not told.
        self.unseen: dict[PodUid, PodView] = {}
        self.world = a_world(namespaces=())
        self.most: int | None = None
        self.refusals = RefusedPods()
        self.refusals.changed = self.tried
        self.keeper = WatchedKeeper(self.world, self.refusals, look_seconds=0.0)

    def tried(self, uid: PodUid) -> None:
        self.keeper.tried(uid, self.moment)

    @initialize(most=st.sampled_from([1, 3, None]), known=st.booleans())
    def begin(self, most: int | None, known: bool) -> None:
        """Of the namespace and the PodGroup nothing may be known yet."""
        for name in CEILINGS:
            self.put_queue(name)
        self.most = most
        self.keeper = WatchedKeeper(self.world, self.refusals, look_seconds=0.0)
        if known:
            self.change_namespace("left", "a")
            self.change_group("right")
        for number in range(10):
            queue = ("", GROUP, "left", "right", "leaf", "root")[number % 6]
            named = [SHARED[number % 3] if number % 3 else f"p{number}"]
            self.create_pod(f"p{number}", queue, named, (False, 0, 0), True, True)

    # Every change is told.

    def put_queue(self, name: str) -> None:
        spec: dict[str, Any] = {"parent": PARENTS[name]} if name in PARENTS else {}
        spec["priority"] = self.priorities[name]
        spec["claimSharing"] = {"policy": self.policies[name]}
        spec["namespaceSelector"] = SELECTORS[self.selectors[name]]
        self.world.put_queue(a_queue(name, **spec, onvif=self.specs[name]))
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
        seen = (p for p in self.world.facts.pods() if p.uid not in self.unseen)
        found = [p for p in seen if gated is None or p.is_gated == gated]
        return found[number % len(found)] if found else None

    def drop_in_flight(self, pod: PodView) -> None:
        self.world.assumptions.forget(pod.uid)
        self.decided(pod)

    # Users.

    @rule(
        name=pod_names,
        queue=named_queues,
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
            queue="" if queue == GROUP else queue,
            claims=named,
            requests={"akri.sh/onvif": own} if own else {},
            non_preemptible=non_preemptible,
            annotations={"pod-group-name": "g"} if queue == GROUP else {},
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

    @rule(name=shared_claims)
    def begin_to_delete_claim(self, name: str) -> None:
        """Under use: what keeps it is not over."""
        claim = self.world.facts.claim_named("default", name)
        if claim is not None:
            self.put_claim(replace(claim, is_deleting=True))

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

    # Administrators. What they write to a Queue that is gone, or on its way out, makes it anew.

    @rule(
        name=queues,
        quota=st.integers(0, 5),
        more=st.sampled_from([0, 1, 4, 9]),
        weight=st.sampled_from([1, 1, 3, 0]),
    )
    def set_ceilings(self, name: str, quota: int, more: int, weight: int) -> None:
        self.specs[name] = (quota, quota + more, weight)
        self.put_queue(name)

    @rule(name=queues, priority=st.sampled_from([1, 100, 200]))
    def set_priority(self, name: str, priority: int) -> None:
        self.priorities[name] = priority
        self.put_queue(name)

    @rule(name=queues, policy=st.sampled_from(["Allow", "Deny"]))
    def set_policy(self, name: str, policy: str) -> None:
        self.policies[name] = policy
        self.put_queue(name)

    @rule(name=queues, selector=st.sampled_from(["all", "all", "team a", "none"]))
    def set_selector(self, name: str, selector: str) -> None:
        self.selectors[name] = selector
        self.put_queue(name)

    @rule(name=queues, by_force=st.booleans(), then=st.booleans())
    def delete_queue(self, name: str, by_force: bool, then: bool) -> None:
        """One that is charged stays until it is not, unless somebody takes its finalizer."""
        found = self.world.facts.tree.get(QueueName(name))
        if found is None:
            return
        if by_force:
            self.world.delete_queue(found.name)
        else:
            self.world.put_queue(replace(found, is_deleting=True))
        self.keeper.note(QueueChanged(found.name))
        self.decide_if(then)

    @rule()
    def make_queues_anew(self) -> None:
        for name in CEILINGS:
            self.put_queue(name)

    @rule(
        queue=st.sampled_from(["left", "right", "", None]),
        team=st.sampled_from(["a", "b"]),
        then=st.booleans(),
    )
    def change_namespace(self, queue: str | None, team: str, then: bool = False) -> None:
        if queue is None:
            self.world.delete_namespace("default")
        else:
            labels = {"moorage.dev/queue": queue, "team": team}
            self.world.put_namespace(NamespaceView("default", labels))
        self.keeper.note(NamespaceChanged("default"))
        self.decide_if(then)

    @rule(queue=st.sampled_from(["right", "leaf", "", None]), then=st.booleans())
    def change_group(self, queue: str | None, then: bool = False) -> None:
        if queue is None:
            self.world.delete_group("default", "g")
        else:
            self.world.put_group(PodGroupView("default", "g", QueueName(queue)))
        self.keeper.note(GroupChanged("default", "g"))
        self.decide_if(then)

    # kube-scheduler and the binder.

    @rule(number=numbers, then=st.sampled_from(["", "", "fails", "the watch is silent"]))
    def schedule(self, number: int, then: str) -> None:
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
        if then == "fails":
            return
        for use in found.claims:
            self.reserve(use.claim, pod, use.owner, use.owner_pod)
        self.world.assumptions.binding_requested(pod.uid)
        self.unseen[pod.uid] = replace(pod, node="node-a", queue=found.queue, queue_is_bound=True)
        if not then:
            self.watch_pods()

    @rule()
    def watch_pods(self) -> None:
        """The watch speaks again."""
        for pod in self.unseen.values():
            self.put_pod(pod)
        self.unseen.clear()

    def reserve(
        self, claim: ClaimView, pod: PodView, owner: QueueName, owner_pod: PodUid | None
    ) -> None:
        slots = claim.requests[0].alternatives[0].slots
        results = claim.results or (Result("req", "moorage.dev", slots),)
        reserved = replace(claim, results=results, reserved_for=(*claim.reserved_for, pod.uid))
        if owner_pod is not None:
            reserved = replace(reserved, label=owner, owner_pod=owner_pod)
        self.put_claim(reserved)

    def assumed(self, number: int) -> PodView | None:
        assumed = sorted(self.keeper.deferred.assumed)
        return self.world.facts.pod(assumed[number % len(assumed)]) if assumed else None

    @rule(number=numbers)
    def ungate(self, number: int) -> None:
        """The removal of a gate arrives."""
        pod = self.assumed(number)
        if pod is not None and pod.is_gated:
            self.put_pod(replace(pod, gates=()))

    @rule(number=numbers)
    def try_again(self, number: int) -> None:
        """kube-scheduler tries whom it was told to."""
        pod = self.assumed(number)
        if pod is not None and not pod.gates:
            self.drop_in_flight(pod)
            found = verdict(self.world, pod, self.now)
            self.refusals.answered(pod.uid, refused=isinstance(found, Refused))
            if isinstance(found, Admitted):
                assume(pod, found, self.world, self.now)
                self.decided(pod)

    @rule(number=numbers)
    def fail_to_let_go(self, number: int) -> None:
        pod = self.assumed(number)
        if pod is not None:
            self.keeper.failed(pod.uid, self.moment)
            self.decided(pod)

    @rule()
    def change_what_all_depend_on(self) -> None:
        self.keeper.note(OtherChanged())

    @rule(seconds=st.sampled_from([1, 20, 40, 400]))
    def wait(self, seconds: int) -> None:
        """Time goes by, and decisions without a sign of them lapse."""
        self.now += timedelta(seconds=seconds)
        self.moment += seconds

    @rule(minutes=st.sampled_from([-60, -1, 1]))
    def set_the_clock(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    # The keeper.

    def waits(self, pod: PodView) -> bool:
        return pod.is_gated or (pod.uid in self.refusals and not pod.gates and pod.may_be_bound)

    def step(self, most: int | None) -> list[PodUid]:
        return [found.uid for found in self.keeper.decide(self.now, self.moment, most)]

    @rule(steps=st.integers(1, 9))
    def decide_a_little(self, steps: int) -> None:
        """Then something else happens."""
        before = {name: usage(self.world, QueueName(name)) for name in CEILINGS}
        self.step(steps)
        self.check_ceilings(before)

    def decide_if(self, then: bool) -> None:
        """At once, or after what else comes: what is due by now is looked at in any case."""
        if then:
            self.decide()

    @rule()
    def decide(self) -> None:
        """Whose turn it is goes, all that fit go, and no ceiling is passed."""
        self.step(0)
        deferred = {*self.keeper.deferred.assumed, *self.keeper.deferred.backoff}
        pods = self.world.facts.pods()
        waiting = [p.uid for p in pods if self.waits(p) and p.uid not in deferred]
        copied = deepcopy(self.world)
        before = {name: usage(self.world, QueueName(name)) for name in CEILINGS}

        gone = self.step(self.most)
        while self.keeper.has_more:
            gone += self.step(self.most)

        check_decision(copied, waiting, gone, self.now)
        self.check_ceilings(before)
        self.tell()

    def check_ceilings(self, before: dict[str, int]) -> None:
        """Those of a Queue that is gone hold for nobody."""
        for queue in self.world.facts.tree:
            quota, limit, weight = self.specs[queue.name]
            limit, used = limit if weight else quota, usage(self.world, queue.name)
            assert used <= max(limit, before[queue.name]) or limit < 0, queue.name

    def tell(self) -> None:
        """Each pod is told why it waits, once."""
        # Each time some are looked at, and there are more pods than that.
        for condition in [
            found for _ in range(3) for found in self.keeper.pending_conditions.take(100)
        ]:
            pod = self.world.facts.pod(condition.uid)
            assert pod is not None
            assert condition.reason != pod.admission
            self.put_pod(replace(pod, admission=condition.reason))
        assert self.keeper.pending_conditions.take(100) == ()
        waiting = set(self.keeper)
        for pod in list(self.world.facts.pods()):
            if pod.is_gated and pod.uid in waiting:
                assert pod.admission == self.why(pod), pod

    def why(self, pod: PodView) -> str:
        if OTHER_GATE in pod.gates:
            return WaitReason.OTHER_GATES
        if missing_claims(pod, self.world.facts):
            return WaitReason.CLAIM_NOT_FOUND
        found = verdict(self.world, pod, self.now)
        assert isinstance(found, Refused)
        return found.reason

    @invariant()
    def each_that_waits_is_in_line_or_away(self) -> None:
        waiting = {pod.uid for pod in self.world.facts.pods() if self.waits(pod)}
        deferred = {*self.keeper.deferred.assumed, *self.keeper.deferred.backoff}
        members = set(self.keeper)
        assert self.keeper.is_reviewing or members >= waiting - deferred
        assert members <= waiting - deferred
        assert deferred <= waiting

    def teardown(self) -> None:
        """When all pods are gone nothing is left of them."""
        for pod in list(self.world.facts.pods()):
            self.delete_pod(pod)
        self.step(None)
        left = kept_in(self.keeper, self.world, *vars(self.world).values())
        assert left.keys() <= TAKEN_LATER
        assert len(self.world.assumptions) == 0
        assert not self.keeper.has_more


TestWaiting = Waiting.TestCase
TestWaiting.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


def test_who_was_let_go_in_vain_leaves_its_room_though_clocks_were_set_back() -> None:
    """It goes for another queue then; nothing else tells of the room in the one of before."""
    cluster = Waiting()
    cluster.begin(most=None, known=True)
    cluster.decide()
    cluster.wait(seconds=20)
    cluster.set_the_clock(minutes=-1)
    cluster.wait(seconds=40)

    cluster.change_group(queue="leaf", then=True)

    assert cluster.keeper.deferred.assumed

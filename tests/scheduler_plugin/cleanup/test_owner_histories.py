"""Whatever happens around a claim: it has one owner or none, and ends up with the right one.

The machine plays kube-scheduler, another scheduler, the binder, Kubernetes' resource claim
controller and users. Decisions about owners are carried out some time after they were made, if
the claim's version is still the one that was judged, as the API server sees to.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.accounting.charges.owners import labelled_owner, runs
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.charge_notes import ChargeNote
from scheduler_plugin.cleanup.claim_cleanup import ClaimCleanup
from scheduler_plugin.cleanup.owner_exits import EvictForeign, OwnerExitTime, RequeueAt, owner_exit
from scheduler_plugin.cleanup.stale_claims import (
    Attribution,
    ClaimCleared,
    EndedOwner,
    StaleClaims,
    attribution,
    ended_owner,
)
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClaimView, GroupConsumer, Result
from scheduler_plugin.objects.names import (
    NO_POD,
    NO_QUEUE,
    ClaimUid,
    PodUid,
    QueueName,
    Reason,
)
from scheduler_plugin.objects.pods import PodGroupView, PodView, oldest
from tests.scheduler_plugin.builders import NOW, a_claim, a_group, a_pod, a_queue, a_world

ONVIF = ResourceKey("onvif")
ROOT = QueueName("root")
EVICTS, KEEPS = QueueName("evicts"), QueueName("keeps")
GRACE = timedelta(minutes=5)
RESULTS = (Result("req", "moorage.dev", 1),)

Decision: TypeAlias = EndedOwner | OwnerExitTime | EvictForeign | Attribution | ClaimCleared

numbers = st.integers(0, 11)
claim_names = st.sampled_from(["c0", "c1", "labelled", "stolen"])


def new_world() -> World:
    evict = {"onOwnerExit": "Evict"}
    return a_world(
        a_queue("root"),
        a_queue("evicts", parent="root", claimSharing=evict),
        a_queue("keeps", parent="root"),
        a_queue("closed", parent="root", namespaceSelector=None),
    )


class Owners(RuleBasedStateMachine):
    """A cluster with Moorage, beside another scheduler that knows nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.world = new_world()
        self.now = NOW
        self.births = 0
        self.versions = 0
        self.stale_parts = StaleClaims(self.world)
        self.cleanup = ClaimCleanup(self.world)
        self.decisions: list[Decision] = []
        self.owner_seen_at: dict[ClaimUid, datetime] = {}
        # The PodGroup `train`, of which a new one has another UID; None while there is none.
        self.group: PodGroupView | None = None
        # Pods that are there and of which the world does not know yet.
        self.late: dict[PodUid, PodView] = {}

    @initialize()
    def begin(self) -> None:
        for name, queue in (
            ("c0", ""),
            ("c1", ""),
            ("labelled", "evicts"),
            ("stolen", "closed"),
        ):
            self.put_claim(a_claim(name, queue=queue))
        self.renew_group()
        for number, claim in enumerate(("c0", "c0", "labelled", "labelled", "c1", "c1")):
            queue = "evicts" if number % 2 == 0 else "keeps"
            self.create_pod(f"p{number}", queue, claim, number == 4)
        for _ in range(4):
            self.schedule(0, 4)

    def put_claim(self, claim: ClaimView) -> None:
        self.versions += 1
        self.world.put_claim(replace(claim, resource_version=str(self.versions)))

    def claims(self) -> list[ClaimView]:
        return list(self.world.facts.claims())

    def pick(self, number: int, *, bound: bool) -> PodView | None:
        found = [p for p in self.world.facts.pods() if p.is_bound == bound and not p.ended]
        return found[number % len(found)] if found else None

    # Users.

    @rule(
        name=st.sampled_from([f"p{number}" for number in range(7)]),
        queue=st.sampled_from(["evicts", "keeps", ""]),
        claim=claim_names,
        is_member=st.booleans(),
    )
    def create_pod(self, name: str, queue: str, claim: str, is_member: bool) -> None:
        late = {pod.name for pod in self.late.values()}
        if self.world.facts.pod_named("default", name) is None and name not in late:
            self.births += 1
            created = f"2026-11-21T11:{self.births % 3600 // 60:02}:{self.births % 60:02}Z"
            uid = f"{name}-{self.births}"
            traits: dict[str, Any] = {
                "uid": uid,
                "created": created,
                "queue": queue,
                "claims": [claim],
            }
            self.world.put_pod(a_pod(name, group="train" if is_member else "", **traits))

    @rule()
    def renew_group(self) -> None:
        """The PodGroup is created, or deleted once none of its pods runs, and created anew."""
        bound = (p for p in self.world.facts.pods() if p.is_bound and not p.ended)
        if any(pod.scheduling_group for pod in bound):
            return
        if self.group is None:
            self.births += 1
            self.group = a_group(uid=f"train-{self.births}")
            self.world.put_group(self.group)
        else:
            self.group = None
            self.world.delete_group("default", "train")

    @rule(number=numbers, bound=st.booleans(), way=st.sampled_from(["end", "delete", "mark"]))
    def end_pod(self, number: int, bound: bool, way: str) -> None:
        pod = self.pick(number, bound=bound)
        if pod is not None and way == "delete":
            self.world.delete_pod(pod.uid)
        elif pod is not None:
            self.world.put_pod(replace(pod, ended=way == "end", deleting=way == "mark"))

    @rule(name=claim_names)
    def ask_for_eviction(self, name: str) -> None:
        claim = self.world.facts.claim_named("default", name)
        assert claim is not None
        self.put_claim(replace(claim, evict_foreign=not claim.evict_foreign))

    # Schedulers, and the controller.

    @rule(number=numbers, steps=st.sampled_from([1, 2, 3, *[4] * 8]))
    def schedule(self, number: int, steps: int) -> None:
        """Filter, PreBind, owner, binding; killed after some of these steps."""
        pod = self.pick(number, bound=False)
        if pod is None or (pod.scheduling_group and self.group is None):
            return
        self.world.assumptions.forget(pod.uid)
        self.world.assumptions.expire(self.now)
        found = judge(pod, self.world.facts.claims_of(pod), self.world)
        if not isinstance(found, Admitted):
            return
        assert "stolen" not in pod.claim_names, "its label names a queue that admits nobody"
        assume(pod, found, self.world, self.now)
        if steps > 1:
            self.reserve(pod)
        self.world.assumptions.expire(self.now)
        found = judge(pod, self.world.facts.claims_of(pod), self.world, at_bind=True)
        if isinstance(found, Refused):
            # The reservation of the group says that the owner's pod, which waits, is one of it.
            assert found.reason is Reason.POD_GROUP_QUEUE_MISMATCH
            return
        assert isinstance(found, Admitted)
        for use in found.claims if steps > 2 else ():
            if use.owner_pod is not None:
                self.write_owner(use.claim, use.owner, use.owner_pod)
        if steps > 3:
            self.world.put_pod(replace(self.bound(pod), queue=found.queue))

    @rule(number=numbers)
    def schedule_elsewhere(self, number: int) -> None:
        """Another scheduler, from before Moorage was there: no owner is written."""
        pod = self.pick(number, bound=False)
        if pod is not None and not (pod.scheduling_group and self.group is None):
            self.reserve(pod)
            self.world.put_pod(self.bound(pod))

    def bound(self, pod: PodView) -> PodView:
        return replace(pod, node="node-a", bound_at=f"{self.now:%Y-%m-%dT%H:%M:%SZ}")

    def reserve(self, pod: PodView) -> None:
        for claim in self.world.facts.claims_of(pod):
            if pod.scheduling_group and self.group is not None:
                entry = GroupConsumer("train", self.group.uid)
                groups = tuple(dict.fromkeys((*claim.groups, entry)))
                self.put_claim(replace(claim, results=RESULTS, groups=groups))
                continue
            others = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
            self.put_claim(replace(claim, results=RESULTS, reserved_for=(*others, pod.uid)))

    def write_owner(self, claim: ClaimView, queue: QueueName, pod: PodUid) -> None:
        """Never while another queue is charged."""
        entry = self.world.ledger.claim(claim.uid)
        assert entry is not None
        assert entry.owner in (NO_QUEUE, queue)
        self.put_claim(replace(claim, label=queue, owner_pod=pod, owner_left_at=""))

    @rule(number=numbers)
    def give_up_binding(self, number: int) -> None:
        """kube-scheduler takes the reservation back and leaves the allocation behind."""
        pod = self.pick(number, bound=False)
        for claim in self.claims() if pod is not None else ():
            if pod is not None and pod.uid in claim.reserved_for:
                left = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
                self.put_claim(replace(claim, reserved_for=left))

    @rule()
    def control_claims(self) -> None:
        """Consumers that ended or are gone are taken out; with the last one the allocation goes."""
        pods = {pod.uid for pod in self.world.facts.pods() if not pod.ended} | self.late.keys()
        uid = self.group.uid if self.group is not None else ""
        for claim in self.claims():
            left = tuple(uid for uid in claim.reserved_for if uid in pods)
            entries = (*claim.groups, *claim.unknown_groups)
            groups = tuple(each for each in entries if each.uid == uid)
            if (left, groups) != (claim.reserved_for, entries):
                self.put_claim(self.with_entries(claim, left, groups))

    def with_entries(
        self, claim: ClaimView, pods: tuple[PodUid, ...], groups: tuple[GroupConsumer, ...]
    ) -> ClaimView:
        """The claim as the API server has it, with these consumers only."""
        own = tuple(uid for uid in pods if uid not in claim.group_users)
        results = claim.results if own or groups else None
        bare = replace(claim, group_users=(), unknown_groups=(), other_consumers=0)
        return replace(bare, reserved_for=own, groups=groups, results=results)

    # Moorage.

    @rule(seconds=st.sampled_from([1, 30, 200, 400]))
    def wait(self, seconds: int) -> None:
        self.note_owners()
        self.now += timedelta(seconds=seconds)
        self.world.assumptions.expire(self.now)

    @rule()
    def restart(self) -> None:
        """Everything that was not written is forgotten."""
        world = new_world()
        for pod in self.world.facts.pods():
            world.put_pod(pod)
        if self.group is not None:
            world.put_group(self.group)
        for claim in self.world.facts.claims():
            world.put_claim(claim)
        self.world, self.stale_parts, self.cleanup = world, StaleClaims(world), ClaimCleanup(world)
        self.decisions.clear()

    @rule(number=numbers)
    def start_without(self, number: int) -> None:
        """One pod's event comes later than the others; of a group's pods no entry tells it."""
        pod = self.pick(number, bound=True)
        if pod is not None and not pod.scheduling_group:
            self.late[pod.uid] = pod
            self.world.delete_pod(pod.uid)
            self.restart()

    @rule()
    def catch_up(self) -> None:
        for pod in self.late.values():
            self.world.put_pod(pod)
        self.late.clear()

    @rule()
    def decide(self) -> None:
        for claim in self.claims():
            found = [
                ended_owner(claim.uid, self.world),
                attribution(claim.uid, self.world),
                owner_exit(claim.uid, self.world, self.now),
                self.stale_parts.look(claim.uid, self.now),
            ]
            self.decisions += [decision for decision in found if isinstance(decision, Decision)]

    @rule()
    def keep(self) -> None:
        """The keeper as it is: what each claim needs next, at once."""
        for claim in self.claims():
            step = self.cleanup.next_step(claim.uid, self.now)
            # No queue counts more than devices of a class, so nothing is noted.
            assert not isinstance(step, ChargeNote)
            if step is not None and not isinstance(step, RequeueAt):
                self.apply(step)

    @rule(number=numbers)
    def carry_out(self, number: int) -> None:
        if self.decisions:
            self.apply(self.decisions.pop(number % len(self.decisions)))

    def apply(self, decision: Decision) -> None:
        if isinstance(decision, EvictForeign):
            self.evict(decision)
            return
        judged = decision.owner if isinstance(decision, Attribution) else decision
        claim = self.unchanged(judged.uid, judged.resource_version)
        if claim is not None:
            self.write(claim, decision)

    def write(self, claim: ClaimView, decision: Decision) -> None:
        match decision:
            case EvictForeign():
                raise AssertionError(decision)
            case EndedOwner():
                assert claim.owner_pod not in claim.reserved_for
                assert not self.running(claim)
                unowned = replace(claim, label=NO_QUEUE, owner_pod=NO_POD, owner_left_at="")
                self.put_claim(unowned)
            case OwnerExitTime(value=value):
                self.put_claim(replace(claim, owner_left_at=value or ""))
            case Attribution(owner):
                self.attribute(claim, owner.queue, owner.owner_pod or NO_POD)
            case ClaimCleared():
                self.clear(claim, decision)

    def unchanged(self, uid: ClaimUid, version: str) -> ClaimView | None:
        claim = self.world.facts.claim(uid)
        return claim if claim is not None and claim.resource_version == version else None

    def attribute(self, claim: ClaimView, queue: QueueName, pod: PodUid) -> None:
        """Only what was allocated in use without an owner: never between PreBind and Bind."""
        assert claim.is_allocated
        assert not claim.label
        decided = self.world.facts.pod(pod)
        # A pod that ended since the decision leaves the claim's version as it was.
        if decided is not None and not decided.ended:
            with_queue = [p for p in self.running(claim) if self.world.facts.queue_of(p)]
            waiting = [p for p in self.world.facts.consumers(claim) if not p.is_bound and p.queue]
            assert pod == oldest([*with_queue, *(p for p in waiting if not p.ended)])[0].uid
        self.write_owner(claim, queue, pod)

    def clear(self, claim: ClaimView, decision: ClaimCleared) -> None:
        left = tuple(uid for uid in claim.reserved_for if uid not in decision.gone)
        entries = (*claim.groups, *claim.unknown_groups)
        groups = tuple(each for each in entries if each not in decision.groups)
        assert decision.deallocate == (not (left or groups))
        assert not any(pod.uid in decision.gone for pod in self.running(claim))
        if decision.groups:
            assert not any(pod.scheduling_group for pod in self.running(claim))
        self.put_claim(self.with_entries(claim, left, groups))

    def running(self, claim: ClaimView) -> list[PodView]:
        """The consumers that run, whether the world knows them or not."""
        late = [self.late[uid] for uid in claim.reserved_for if uid in self.late]
        known = self.world.facts.consumers(claim)
        return [p for p in (*known, *late) if p.is_bound and not p.ended]

    def evict(self, decision: EvictForeign) -> None:
        """Nobody of the owner, and not before the grace is over."""
        seen = self.owner_seen_at.get(decision.uid, NOW - timedelta(days=1))
        assert self.now >= seen + GRACE
        for evicted in decision.pods:
            pod = self.world.facts.pod(evicted.uid)
            if pod is not None:
                assert self.world.facts.queue_of(pod) != decision.owner
                self.world.delete_pod(pod.uid)

    @invariant()
    def evictions_are_one_whole_set(self) -> None:
        self.note_owners()
        for claim in self.claims():
            found = owner_exit(claim.uid, self.world, self.now)
            if isinstance(found, EvictForeign):
                there = {pod.uid for pod in self.running(claim) if not pod.deleting}
                assert {pod.uid for pod in found.pods} == there

    def note_owners(self) -> None:
        """When an owner's pod was last seen on a claim, or any foreign one was not."""
        for claim in self.claims():
            owner = self.owner(claim)
            queues = [self.world.facts.queue_of(pod) for pod in self.running(claim)]
            if not owner or owner in queues or not queues:
                self.owner_seen_at[claim.uid] = self.now
                self.decisions = [
                    d
                    for d in self.decisions
                    if not isinstance(d, EvictForeign) or d.uid != claim.uid
                ]

    def owner(self, claim: ClaimView) -> QueueName:
        """Who owns a claim, also where the world takes a label for stale that it cannot judge."""
        entry = self.world.ledger.claim(claim.uid)
        assert entry is not None
        late = any(uid in self.late for uid in claim.reserved_for)
        return claim.label if claim.label and late else entry.owner

    @invariant()
    def each_claim_is_charged_once_at_most(self) -> None:
        charged = [c for c in self.claims() if self.world.ledger.claim(c.uid).is_charged]  # type: ignore[union-attr]  # all are accounted
        assert self.world.ledger.usage.amount(ROOT, ONVIF) == len(charged)
        used = {claim.uid for claim in self.claims() if runs(claim, self.world.facts)}
        orphans = set(self.world.ledger.orphans())
        assert used <= {claim.uid for claim in charged} | orphans

    def teardown(self) -> None:
        """Left to the keeper for long enough, everything comes to rest in the right state."""
        self.catch_up()
        for _ in range(16):
            self.control_claims()
            self.keep()
            self.note_owners()
            self.now += timedelta(minutes=2)
            self.world.assumptions.expire(self.now)
        for claim in self.claims():
            self.check_at_rest(claim)

    def check_at_rest(self, claim: ClaimView) -> None:
        facts = self.world.facts
        consumers = list(facts.consumers(claim))
        queues = {facts.queue_of(pod) for pod in consumers}
        owner = labelled_owner(claim, facts)
        assert claim.is_allocated == bool(claim.reserved_for)
        assert not any(pod.ended for pod in consumers)
        if claim.owner_pod:
            assert owner is not None
            assert claim.is_allocated
        if self.running(claim) and queues != {NO_QUEUE}:
            assert owner is not None
        if owner in queues or not self.running(claim):
            assert not claim.owner_left_at
        elif owner == EVICTS or (owner is not None and claim.evict_foreign):
            assert all(pod.deleting for pod in self.running(claim))


TestOwners = Owners.TestCase
TestOwners.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)

"""However pods are decided about, reserved and bound: no limit is passed, no claim charged twice.

The machine plays kube-scheduler and the binder: Filter, PreBind, Bind of several pods at a time in
any order, deletions, restarts that forget every assumption, and pods that drop out in between.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.amounts import ResourceKey
from scheduler_plugin.bindings import BindRequest
from scheduler_plugin.claims import ClaimView, Result
from scheduler_plugin.names import PodUid, QueueName
from scheduler_plugin.pods import NamespaceView, PodGroupView, PodView
from scheduler_plugin.verdicts import Admitted, assume, bind_request, judge
from scheduler_plugin.world import World
from tests.scheduler_plugin.builders import NOW, a_claim, a_pod, a_queue, a_request, a_world

ONVIF = ResourceKey("onvif")
CEILINGS = {"root": (1, 2), "left": (1, 2), "right": (1, 2), "leaf": (0, 1)}
PARENTS = {"left": "root", "right": "root", "leaf": "left"}

numbers = st.integers(0, 11)
pods = st.sampled_from([f"p{number}" for number in range(6)])
claims = st.sampled_from(["c0", "c1", "c2", "c3"])


GROUP = PodGroupView("default", "g", QueueName("right"))
"""What says the queue of pods that name none; their namespace says another, wrongly for them."""

NAMESPACE = NamespaceView("default", {"moorage.dev/queue": "left"})


def new_world() -> World:
    """Of the namespace and the PodGroup nothing is known yet."""
    world = a_world(namespaces=())
    for name, ceilings in CEILINGS.items():
        parent = {"parent": PARENTS[name]} if name in PARENTS else {}
        world.put_queue(a_queue(name, **parent, onvif=ceilings))
    return world


class Scheduling(RuleBasedStateMachine):
    """A cluster in which everything goes through the verdict."""

    def __init__(self) -> None:
        super().__init__()
        self.world = new_world()
        self.now = NOW
        self.births = 0
        self.decided: dict[str, tuple[BindRequest, tuple[ClaimView, ...]]] = {}
        self.deleted: list[PodView] = []
        # Pods that are bound, and of which the watch has not told.
        self.unseen: dict[PodUid, PodView] = {}

    def pod(self, name: str) -> PodView | None:
        return self.world.facts.pod_named("default", name)

    def unbound(self, number: int) -> PodView | None:
        """One of the pods that may be bound yet."""
        known = [pod for pod in self.world.facts.pods() if pod.may_be_bound]
        found = [pod for pod in known if pod.uid not in self.unseen]
        return found[number % len(found)] if found else None

    @initialize(group=st.booleans())
    def begin(self, group: bool) -> None:
        self.hear(namespace=True, group=group)
        self.add_pod("p4", "", ["c1"], non_preemptible=False)
        self.add_pod("p5", "leaf", [], non_preemptible=False, own=1)
        for number, queue in enumerate(("left", "right", "leaf", "left")):
            named = [f"c{number}"]
            self.add_pod(f"p{number}", queue, named, non_preemptible=number != 2)

    @rule(
        name=pods,
        queue=st.sampled_from(["left", "left", "right", "leaf", ""]),
        named=st.lists(claims, unique=True, min_size=1, max_size=2),
        non_preemptible=st.booleans(),
        own=st.sampled_from([0, 0, 1]),
    )
    def create_pod(
        self, name: str, queue: str, named: list[str], non_preemptible: bool, own: int
    ) -> None:
        if self.pod(name) is None:
            self.add_pod(name, queue, named, non_preemptible=non_preemptible, own=own)

    def add_pod(
        self, name: str, queue: str, named: list[str], *, non_preemptible: bool, own: int = 0
    ) -> None:
        self.births += 1
        requests = {"akri.sh/onvif": own}
        pod = a_pod(
            name,
            uid=f"{name}-{self.births}",
            queue=queue,
            claims=named,
            requests=requests,
            non_preemptible=non_preemptible,
            annotations={} if queue else {"pod-group-name": "g"},
        )
        self.world.put_pod(pod)
        for claim in named:
            if self.world.facts.claim_named("default", claim) is None:
                self.births += 1
                requests_of_it = [a_request(slots="2" if claim == "c3" else "1")]
                made = a_claim(claim, requests=requests_of_it, uid=f"{claim}-{self.births}")
                self.world.put_claim(made)

    @rule(number=numbers, seconds=st.sampled_from([0, 0, 0, 0, 30, 90]))
    def filter_pod(self, number: int, seconds: int) -> None:
        if seconds:
            self.decided.clear()
            self.now += timedelta(seconds=seconds)
        pod = self.unbound(number)
        if pod is None:
            return
        self.world.assumptions.forget(pod.uid)
        found = judge(pod, self.world.facts.claims_of(pod), self.world, self.now)
        if isinstance(found, Admitted):
            assume(pod, found, self.world, self.now)
            self.reserve(pod)

    @rule(number=numbers)
    def filter_pod_as_it_was(self, number: int) -> None:
        """kube-scheduler has not heard that it was bound, or marked as deleted, or is gone."""
        changed = [pod for pod in self.world.facts.pods() if not pod.may_be_bound]
        past = [*self.deleted, *(replace(pod, node="", deleting=False) for pod in changed)]
        if past:
            pod = past[number % len(past)]
            found = judge(pod, self.world.facts.claims_of(pod), self.world, self.now)
            if isinstance(found, Admitted):
                assume(pod, found, self.world, self.now)

    @rule(number=numbers)
    def mark_as_deleted(self, number: int) -> None:
        """A finalizer keeps it for some time."""
        pod = self.unbound(number)
        if pod is not None:
            self.world.put_pod(replace(pod, deleting=True))

    def reserve(self, pod: PodView) -> None:
        for claim in self.world.facts.claims_of(pod):
            slots = claim.requests[0].alternatives[0].slots
            results = claim.results or (Result("req", "moorage.dev", slots),)
            others = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
            reserved = replace(claim, results=results, reserved_for=(*others, pod.uid))
            self.world.put_claim(reserved)

    @rule(number=numbers)
    def decide_binding(self, number: int) -> None:
        """The part of Bind that is done under the lock; the writes come later."""
        pod = self.unbound(number)
        if pod is None or not self.is_reserved(pod):
            return
        found_claims = self.world.facts.claims_of(pod)
        found = judge(pod, found_claims, self.world, self.now, at_bind=True)
        if not isinstance(found, Admitted):
            self.world.assumptions.forget(pod.uid)
            return
        assume(pod, found, self.world, self.now)
        self.decided[pod.name] = (bind_request(pod, "node-a", found), found_claims)

    @rule(
        number=numbers,
        then=st.sampled_from(["", "", "", "the watch is silent", "killed", "killed"]),
    )
    def write_binding(self, number: int, then: str) -> None:
        """Labels with the resourceVersion as precondition, then the binding; killed in between."""
        if not self.decided:
            return
        name = sorted(self.decided)[number % len(self.decided)]
        pod, (request, judged) = self.pod(name), self.decided.pop(name)
        if pod is None or not pod.may_be_bound or pod.uid != request.uid:
            return
        if not self.is_reserved(pod) or self.world.facts.claims_of(pod) != judged:
            return
        for owner in request.claims:
            claim = self.world.facts.claim(owner.uid)
            assert claim is not None
            if owner.owner_pod is not None:
                self.write_label(claim, owner.queue, owner.owner_pod)
        if then == "killed":
            return
        self.world.assumptions.binding_asked(pod.uid)
        self.unseen[pod.uid] = replace(pod, node="node-a", queue=request.queue)
        if not then:
            self.watch_pods()

    @rule(number=numbers, then=st.sampled_from(["", "the watch is silent"]))
    def schedule(self, number: int, then: str) -> None:
        """All of it at once, a moment after whatever was before."""
        pod = self.unbound(number)
        self.filter_pod(number, 90)
        self.decide_binding(number)
        if pod is not None and pod.name in self.decided:
            self.write_binding(sorted(self.decided).index(pod.name), then)

    @rule(back=st.booleans())
    def watch_pods(self, back: bool = False) -> None:
        """The watch speaks again; the clock may have been set back meanwhile."""
        self.now -= timedelta(minutes=back)
        for pod in self.unseen.values():
            self.world.put_pod(pod)
        self.unseen.clear()

    def is_reserved(self, pod: PodView) -> bool:
        found = self.world.facts.claims_of(pod)
        return all(pod.uid in claim.reserved_for for claim in found)

    def write_label(self, claim: ClaimView, queue: QueueName, pod: PodUid) -> None:
        """As the API would let the binder: a label is never changed while it counts."""
        entry = self.world.ledger.claim(claim.uid)
        assert entry is None or not entry.is_charged
        self.world.put_claim(replace(claim, label=queue, owner_pod=pod))

    @rule(name=claims, label=st.sampled_from(["", "left", "right", "leaf"]))
    def edit_label(self, name: str, label: str) -> None:
        """An administrator writes what no policy lets anybody write, beside a pod that shows it."""
        claim = self.world.facts.claim_named("default", name)
        if claim is not None and self.world.facts.pod(claim.owner_pod) is not None:
            self.world.put_claim(replace(claim, label=QueueName(label)))

    def mend_labels(self, pod: PodView) -> None:
        """He puts them right: when the pod is gone, its claims' labels count as they stand."""
        for claim in list(self.world.facts.claims()):
            if claim.owner_pod == pod.uid:
                self.world.put_claim(replace(claim, label=pod.queue))

    @rule(name=pods, claim=claims, what=st.sampled_from(["pod", "reservation", "claim", "restart"]))
    def disturb(self, name: str, claim: str, what: str) -> None:
        if what == "restart":
            self.restart()
        elif what == "claim":
            self.delete_unused_claim(claim)
        else:
            self.drop_pod(name, whole=what == "pod")

    def drop_pod(self, name: str, *, whole: bool) -> None:
        """Its reservation is taken back, or all of it goes."""
        pod = self.pod(name)
        if pod is not None and pod.uid in self.unseen:
            # It is bound already: nobody takes its reservation back.
            whole = whole and self.unseen.pop(pod.uid) is not None
            if not whole:
                return
        if pod is not None and whole:
            self.mend_labels(pod)
            self.world.delete_pod(pod.uid)
            self.deleted.append(replace(pod, node=""))
        if pod is not None and (whole or not pod.is_bound):
            self.release(pod.uid)

    def release(self, uid: PodUid) -> None:
        """What the resource claim controller does; the label of the last one stays, stale."""
        for claim in list(self.world.facts.claims()):
            if uid in claim.reserved_for:
                left = tuple(other for other in claim.reserved_for if other != uid)
                results = claim.results if left else None
                self.world.put_claim(replace(claim, reserved_for=left, results=results))

    def delete_unused_claim(self, name: str) -> None:
        claim = self.world.facts.claim_named("default", name)
        if claim is not None and not claim.reserved_for:
            self.world.delete_claim(claim.uid)

    @rule(namespace=st.booleans(), group=st.booleans())
    def hear(self, namespace: bool, group: bool) -> None:
        """Watches of their own, later than those of pods and claims by any time."""
        if namespace:
            self.world.put_namespace(NAMESPACE)
        if group:
            self.world.put_group(GROUP)

    @rule()
    def lose_the_group(self) -> None:
        self.world.delete_group("default", "g")

    @invariant()
    def nobody_is_bound_to_a_queue_that_others_say(self) -> None:
        for pod in self.world.facts.pods():
            if pod.group and pod.is_bound:
                assert pod.queue in ("", GROUP.queue)

    def restart(self) -> None:
        """Everything that was not written is forgotten."""
        world = new_world()
        self.watch_pods()
        for pod in self.world.facts.pods():
            world.put_pod(pod)
        for claim in self.world.facts.claims():
            world.put_claim(claim)
        # kube-scheduler beside it starts anew, too.
        self.world, self.decided, self.deleted = world, {}, []

    @invariant()
    def no_ceiling_is_passed(self) -> None:
        for name, (quota, limit) in CEILINGS.items():
            found = self.world.ledger.of(QueueName(name))
            hidden = [
                p for p in self.unseen.values() if name in self.world.facts.tree.path(p.queue)
            ]
            of_pods = sum(n for pod in hidden for _, n in pod.requests)
            safe = sum(n for pod in hidden if not pod.non_preemptible for _, n in pod.requests)
            assert found.usage[ONVIF] + of_pods <= limit, name
            assert found.non_preemptible[ONVIF] + of_pods - safe <= quota, name

    @invariant()
    def nothing_is_assumed_of_pods_that_are_gone(self) -> None:
        facts, assumptions = self.world.facts, self.world.assumptions
        assumed = {uid for claim in facts.claims() for uid in assumptions.pods(claim.uid)}
        assert {uid for uid in assumed if facts.pod(uid) is None} == set()
        assert all((pod := facts.pod(uid)) and pod.may_be_bound for uid in self.admitted())
        assert assumptions.usage.amount(QueueName("root"), ONVIF) == 0 or len(assumptions)

    def admitted(self) -> list[PodUid]:
        """Those of whom something is assumed, but for those that only decided an owner."""
        held = self.world.assumptions._held
        return [uid for uid, found in held.items() if found.requests is not None]

    @invariant()
    def everything_that_runs_is_charged_once(self) -> None:
        facts = self.world.facts
        running = [claim for claim in facts.claims() if any(p.node for p in facts.consumers(claim))]
        of_claims = sum(result.slots or 1 for c in running for result in c.results or ())
        of_pods = sum(n for pod in facts.pods() if pod.node for _, n in pod.requests)
        labelled = [c for c in facts.claims() if c not in running and self.charged(c)]
        unbound = sum(result.slots or 1 for c in labelled for result in c.results or ())

        assert self.world.ledger.usage.amount(QueueName("root"), ONVIF) == (
            of_claims + of_pods + unbound
        )
        assert self.world.ledger.orphans() == ()

    def charged(self, claim: ClaimView) -> bool:
        entry = self.world.ledger.claim(claim.uid)
        return entry is not None and entry.is_charged


TestScheduling = Scheduling.TestCase
TestScheduling.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)

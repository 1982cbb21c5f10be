"""However pods are decided about, reserved and bound: no limit is passed, no claim charged twice.

The machine plays kube-scheduler and the binder: Filter, PreBind, Bind of several pods at a time in
any order, deletions, restarts that forget every assumption, and pods that drop out in between; and
users, who label claims with any queue, and administrators, who lower limits. Watches of claims and
slices are late.

A claim that a user labelled counts as soon as it is allocated, before anybody was asked. So what
is held against the ceilings is what runs, and what a Bind has admitted and is about to write.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from scheduler_plugin.accounting.world import World
from scheduler_plugin.cleanup.charged_queues import ChargedQueues, without_finalizer
from scheduler_plugin.judging.verdicts import Admitted, assume, bind_request, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.bindings import BindRequest
from scheduler_plugin.objects.claims import ClaimView, Result
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from tests.scheduler_plugin.builders import (
    NOW,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_slice,
    a_world,
)

ONVIF = ResourceKey("onvif")
CEILINGS = {"root": (1, 2), "left": (1, 2), "right": (1, 2), "leaf": (0, 1)}
PARENTS = {"left": "root", "right": "root", "leaf": "left"}

numbers = st.integers(0, 11)
pods = st.sampled_from([f"p{number}" for number in range(6)])
claims = st.sampled_from(["c0", "c1", "c2", "c3", "all"])
queues = st.sampled_from(list(CEILINGS))
labels = st.sampled_from(["", "", "left", "right", "leaf", "closed"])


GROUP = PodGroupView("default", "g", QueueName("right"))
"""What says the queue of pods that name none; their namespace says another, wrongly for them."""

NAMESPACE = NamespaceView("default", {"moorage.dev/queue": "left"})


def new_world() -> World:
    """Of the namespace and the PodGroup nothing is known yet."""
    world = a_world(namespaces=())
    for name, ceilings in CEILINGS.items():
        put_ceilings(world, name, ceilings)
    world.put_queue(a_queue("closed", parent="root", namespaceSelector=None))
    return world


def put_ceilings(world: World, name: str, ceilings: tuple[int, int]) -> None:
    parent = {"parent": PARENTS[name]} if name in PARENTS else {}
    queue, before = a_queue(name, **parent, onvif=ceilings), world.facts.tree.get(QueueName(name))
    if before is not None:
        queue = replace(queue, has_finalizer=before.has_finalizer, is_deleting=before.is_deleting)
    world.put_queue(queue)


@dataclass
class Use:
    """What runs, or is about to: of each claim and each pod once.

    Attributes:
        usage: Queue and amount, by claim or pod.
        non_preemptible: The same of non-preemptible use.
    """

    usage: dict[str, tuple[QueueName, int]] = field(default_factory=dict)
    non_preemptible: dict[str, tuple[QueueName, int]] = field(default_factory=dict)

    def add(self, uid: str, queue: QueueName, amount: int, *, non_preemptible: bool) -> None:
        self.usage[uid] = (queue, amount)
        if non_preemptible:
            self.non_preemptible[uid] = (queue, amount)

    def of(self, place: str, world: World) -> tuple[int, int]:
        """Non-preemptible use and usage of a queue, as quota and limit stand in `CEILINGS`."""
        tables, path = (self.non_preemptible, self.usage), world.facts.tree.path
        return tuple(sum(n for q, n in table.values() if place in path(q)) for table in tables)  # type: ignore[return-value]  # there are two


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
        self.ceilings = dict(CEILINGS)
        self.allowed = dict(CEILINGS)
        # Claims that are there and of which the world does not know yet.
        self.late: dict[str, ClaimView] = {}
        self.devices = 1
        self.publish(told=True)
        self.keeper = ChargedQueues(self.world)
        self.monotonic = 0.0

    def pod(self, name: str) -> PodView | None:
        return self.world.facts.pod_named("default", name)

    def unbound(self, number: int) -> PodView | None:
        """One of the pods that may be bound yet."""
        known = [pod for pod in self.world.facts.pods() if pod.may_be_bound]
        found = [pod for pod in known if pod.uid not in self.unseen]
        return found[number % len(found)] if found else None

    @initialize(
        group=st.booleans(),
        labels=st.lists(st.sampled_from(["", "", "own", "own", "closed"]), min_size=5, max_size=5),
    )
    def begin(self, group: bool, labels: list[str]) -> None:
        """Users name their own queue on claims, or one that they may not use."""
        self.hear(namespace=True, group=group)
        queues = {"c0": "left", "c1": "right", "c2": "leaf", "c3": "left", "all": "left"}
        for label, (claim, queue) in zip(labels, queues.items(), strict=True):
            self.create_claim(claim, queue if label == "own" else label, late=claim == "c1")
        for number, (claim, queue) in enumerate(queues.items()):
            self.add_pod(f"p{number}", queue, [claim], non_preemptible=number in (0, 3))
        self.add_pod("p5", "leaf", [], non_preemptible=False, own=1)
        self.add_pod("p6", "", ["c1"], non_preemptible=False)
        self.add_pod("p7", "left", ["c0"], non_preemptible=False)
        self.add_pod("p8", "right", ["c0", "c2"], non_preemptible=False)
        self.add_pod("p9", "right", ["c0"], non_preemptible=False)
        if group and (first := self.pod("p7")):
            # Another of its queue joins it, non-preemptibly.
            self.filter_one(first)
            self.decide_one(first)
            self.write_binding(0, "")

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
            self.create_claim(claim, "", late=False)

    @rule(name=claims, label=labels, late=st.booleans())
    def create_claim(self, name: str, label: str, late: bool) -> None:
        """A user makes a claim, perhaps for a queue that he names; the watch may be late."""
        if name in self.late or self.world.facts.claim_named("default", name) is not None:
            return
        self.births += 1
        request = a_request(slots="2" if name == "c3" else "1")
        if name == "all":
            request = a_request(allocationMode="All")
        made = a_claim(name, queue=label, requests=[request], uid=f"{name}-{self.births}")
        if late:
            self.late[name] = made
        else:
            self.world.put_claim(made)

    @rule(name=claims)
    def tell(self, name: str) -> None:
        """The watch brings a claim."""
        if name in self.late:
            self.world.put_claim(self.late.pop(name))

    @rule(more=st.sampled_from([-1, 1]), told=st.booleans())
    def plug(self, more: int, told: bool) -> None:
        """A device comes or goes; the plugin's watch may be late."""
        self.devices = max(1, min(3, self.devices + more))
        self.publish(told=told)

    def publish(self, *, told: bool) -> None:
        if told:
            devices = (("onvif", f"onvif-{number}") for number in range(self.devices))
            self.world.put_slice(a_slice("slice", *devices))

    @rule(number=numbers, above=st.booleans())
    def delete_what_was_just_charged(self, number: int, above: bool) -> None:
        pod = self.unbound(number)
        if pod is not None:
            queue = self.world.facts.queue_of(pod)
            self.schedule(number, "")
            self.delete_queue(PARENTS.get(queue, "") if above else queue)

    @rule(name=queues, limit=st.sampled_from([0, 1, 2]), quota=st.sampled_from([0, 1, 2]))
    def change_ceilings(self, name: str, limit: int, quota: int) -> None:
        """What runs stays, and what was admitted may still be written."""
        found = self.world.facts.tree.get(QueueName(name))
        if found is None:
            return
        self.ceilings[name] = (min(quota, limit), limit)
        shares = a_queue(name, onvif=self.ceilings[name]).shares
        self.world.put_queue(replace(found, shares=shares))
        self.note_allowed()

    def note_allowed(self) -> None:
        use = self.used(*self.writable())
        for name, ceilings in self.ceilings.items():
            now = use.of(name, self.world)
            pairs = zip(ceilings, now, strict=True)
            self.allowed[name] = tuple(max(pair) for pair in pairs)  # type: ignore[assignment]  # there are two

    def writable(self) -> list[BindRequest]:
        """The bindings that were admitted and whose writes would not conflict."""
        found = []
        for name, (request, judged) in self.decided.items():
            pod = self.pod(name)
            if pod is None or not pod.may_be_bound or pod.uid != request.uid:
                continue
            if self.is_reserved(pod) and self.world.facts.claims_of(pod) == judged:
                found.append(request)
        return found

    def used(self, *admitted: BindRequest) -> Use:
        """What runs, and what these bindings add."""
        use, facts = Use(), self.world.facts
        queues = {pod.uid: facts.queue_of(pod) for pod in facts.pods() if pod.is_bound}
        queues |= {pod.uid: pod.queue for pod in self.unseen.values()}
        queues |= {request.uid: request.queue for request in admitted}
        owners = {owner.uid: owner.queue for request in admitted for owner in request.claims}
        for claim in facts.claims():
            users = [pod for pod in facts.consumers(claim) if pod.uid in queues]
            entry = self.world.ledger.claim(claim.uid)
            owner = owners.get(claim.uid) or (entry.owner if entry else QueueName(""))
            cost = sum(result.slots or 1 for result in claim.results or ())
            locked = any(pod.non_preemptible and queues[pod.uid] == owner for pod in users)
            if users:
                use.add(claim.uid, owner, cost, non_preemptible=locked)
        for uid, queue in queues.items():
            pod = facts.pod(uid)
            assert pod is not None
            for _, amount in pod.requests:
                use.add(uid, queue, amount, non_preemptible=pod.non_preemptible)
        return use

    @rule(number=numbers, seconds=st.sampled_from([0, 0, 0, 0, 30, 90]))
    def filter_pod(self, number: int, seconds: int) -> None:
        if seconds:
            self.decided.clear()
            self.now += timedelta(seconds=seconds)
        pod = self.unbound(number)
        if pod is not None:
            self.filter_one(pod)

    def filter_one(self, pod: PodView) -> None:
        """kube-scheduler asks when its last Bind of the pod is over: none of its writes is left."""
        self.decided.pop(pod.name, None)
        self.world.assumptions.forget(pod.uid)
        self.world.assumptions.expire(self.now)
        undecided = self.undecided(pod)
        found = judge(pod, self.world.facts.claims_of(pod), self.world)
        if isinstance(found, Admitted):
            self.check_owners(bind_request(pod, "", found), undecided)
            assert self.late.keys().isdisjoint(pod.claim_names), "nobody knows what they cost"
            assume(pod, found, self.world, self.now)
            self.reserve(pod)

    @rule(
        number=numbers,
        others=st.integers(0, 2),
        name=st.sampled_from([*CEILINGS, "", ""]),
        lowered=st.sampled_from([None, (0, 0), (0, 1), (0, 0)]),
        killed=st.booleans(),
    )
    def schedule_some(
        self,
        number: int,
        others: int,
        name: str,
        lowered: tuple[int, int] | None,
        killed: bool,
    ) -> None:
        """Some pods go all the way, side by side; a ceiling may fall between Filter and Bind.

        It is that of the first pod's own queue where none is named.
        """
        known = [pod for pod in self.world.facts.pods() if pod.may_be_bound]
        found = [pod for pod in known if pod.uid not in self.unseen]
        going = [found[(number + other) % len(found)] for other in range(others + 1) if found]
        for pod in going:
            self.filter_one(pod)
        own = [queue for pod in going if (queue := self.world.facts.queue_of(pod)) in CEILINGS]
        name = name or next(iter(own), QueueName("root"))
        if lowered is not None:
            self.change_ceilings(name, lowered[1], lowered[0])
        for pod in going:
            self.decide_one(pod)
        while not killed and self.decided:
            self.write_binding(0, "")
        quota, limit = CEILINGS[name]
        self.change_ceilings(name, limit, quota)

    @rule(number=numbers)
    def filter_pod_as_it_was(self, number: int) -> None:
        """kube-scheduler has not heard that it was bound, or marked as deleted, or is gone."""
        changed = [pod for pod in self.world.facts.pods() if not pod.may_be_bound]
        past = [*self.deleted, *(replace(pod, node="", deleting=False) for pod in changed)]
        if past:
            pod = past[number % len(past)]
            self.world.assumptions.expire(self.now)
            found = judge(pod, self.world.facts.claims_of(pod), self.world)
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
            self.world.put_claim(self.reserved(claim, pod))
        for name in self.late.keys() & {*pod.claim_names}:
            self.late[name] = self.reserved(self.late[name], pod)

    def reserved(self, claim: ClaimView, pod: PodView) -> ClaimView:
        wanted = claim.requests[0].alternatives[0]
        count = self.devices if wanted.count is None else 1
        results = claim.results or (Result("req", "moorage.dev", wanted.slots),) * count
        others = tuple(uid for uid in claim.reserved_for if uid != pod.uid)
        return replace(claim, results=results, reserved_for=(*others, pod.uid))

    @rule(number=numbers)
    def decide_binding(self, number: int) -> None:
        """The part of Bind that is done under the lock; the writes come later."""
        pod = self.unbound(number)
        if pod is not None:
            self.decide_one(pod)

    def decide_one(self, pod: PodView) -> None:
        for name in pod.claim_names:
            self.tell(name)  # What is not known by then is read.
        if not self.is_reserved(pod):
            return
        found_claims = self.world.facts.claims_of(pod)
        self.world.assumptions.expire(self.now)
        undecided = self.undecided(pod)
        found = judge(pod, found_claims, self.world, at_bind=True)
        if not isinstance(found, Admitted):
            self.world.assumptions.forget(pod.uid)
            return
        assume(pod, found, self.world, self.now)
        request = bind_request(pod, "node-a", found)
        if not self.keep(request):
            self.world.assumptions.forget(pod.uid)
            return
        self.check_admitted(request)
        self.check_owners(request, undecided)
        self.decided[pod.name] = (request, found_claims)

    def undecided(self, pod: PodView) -> set[ClaimUid]:
        uids = {claim.uid for claim in self.world.facts.claims_of(pod)}
        return {uid for uid in uids if self.world.assumptions.owner(uid) is None}

    def check_owners(self, request: BindRequest, undecided: set[ClaimUid]) -> None:
        """What no decision in flight says, is judged now: the queue admits who is charged to it."""
        for owner in request.claims:
            if owner.owner_pod is not None and owner.uid in undecided:
                queue = self.world.facts.tree.get(owner.queue)
                assert queue is not None
                assert queue.admits(NAMESPACE.labels), owner

    def keep(self, request: BindRequest) -> bool:
        """Have the finalizer on all queues that a binding charges; False where one goes."""
        charged = {owner.queue for owner in request.claims} | {request.queue}
        for queue in without_finalizer(sorted(charged), self.world):
            if queue.is_deleting:
                return False
            self.world.put_queue(replace(queue, has_finalizer=True))
        return all(name in self.world.facts.tree for name in charged if name)

    @rule(name=st.sampled_from(["leaf", "leaf", "right", "left"]))
    def delete_queue(self, name: str) -> None:
        """What the API server does. The webhook was asked before somebody was bound."""
        found = self.world.facts.tree.get(QueueName(name))
        if found is None:
            return
        # Of a parent the webhook may have been asked before its child came.
        if not found.has_finalizer:
            assert self.used().of(name, self.world) == (0, 0), "those above it would be relieved"
        if self.world.facts.tree.children(found.name):
            return
        if found.has_finalizer:
            self.world.put_queue(replace(found, is_deleting=True))
        else:
            self.world.delete_queue(found.name)

    @rule(name=st.sampled_from(["leaf", "leaf", "right"]), is_open=st.booleans())
    def open_or_close(self, name: str, is_open: bool) -> None:
        """Who may use a queue is an administrator's word, and holds from then on."""
        found = self.world.facts.tree.get(QueueName(name))
        if found is not None:
            selector = a_queue(name).namespaces if is_open else None
            self.world.put_queue(replace(found, namespaces=selector))

    @rule(number=numbers)
    def start_anew_after_closing(self, number: int) -> None:
        """Of a pod that was on its way only the reservation is left, and its queue is closed."""
        pod = self.unbound(number)
        if pod is None:
            return
        self.filter_one(pod)
        queue = self.world.facts.queue_of(pod)
        if queue:
            self.open_or_close(queue, False)
        self.restart()
        self.hear(namespace=True, group=True)
        for other in list(self.world.facts.pods()):
            if other.may_be_bound and other.uid != pod.uid:
                self.filter_one(other)
        if queue:
            self.open_or_close(queue, True)

    @rule()
    def make_queues_anew(self) -> None:
        for name, ceilings in self.ceilings.items():
            if QueueName(name) not in self.world.facts.tree:
                put_ceilings(self.world, name, ceilings)
        self.note_allowed()

    @rule(seconds=st.sampled_from([0.0, 1.0, 60.0]))
    def keep_queues(self, seconds: float) -> None:
        """The keeper of Queues takes its look."""
        self.monotonic += seconds
        for queue in list(self.world.facts.tree):
            found = self.keeper.look(queue.name, self.monotonic)
            if found is not None and queue.is_deleting:
                self.world.delete_queue(queue.name)
            elif found is not None:
                self.world.put_queue(replace(queue, has_finalizer=found.present))

    def check_admitted(self, request: BindRequest) -> None:
        """What the pod adds to, it fits, with all that was admitted before."""
        others = [other for other in self.writable() if other.uid != request.uid]
        before, after = self.used(*others), self.used(*others, request)
        running, with_it = self.used(), self.used(request)
        for name, ceilings in self.ceilings.items():
            alone = zip(running.of(name, self.world), with_it.of(name, self.world), strict=True)
            grown = [now > was for was, now in alone]
            is_over = [
                n > most for n, most in zip(after.of(name, self.world), ceilings, strict=True)
            ]
            assert not any(map(all, zip(grown, is_over, strict=True))), (name, before, after)

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
        if not self.keep(request):
            self.world.assumptions.forget(pod.uid)
            return
        self.write_labels(request)
        if then == "killed":
            return
        self.world.assumptions.binding_requested(pod.uid)
        self.unseen[pod.uid] = replace(pod, node="node-a", queue=request.queue, queue_is_bound=True)
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

    @rule(
        claim=claims,
        first=numbers,
        then=st.sampled_from(["", "the watch is silent", "the watch is silent"]),
        drops=st.booleans(),
        has_room=st.booleans(),
    )
    def share(self, claim: str, first: int, then: str, drops: bool, has_room: bool) -> None:
        """Whose queue became the owner is killed before its binding; the others go all the way."""
        if has_room:
            self.make_room()
        for name, queue in (("p8", "right"), ("p9", "left")):
            self.create_pod(name, queue, [claim], False, 0)
        known = [pod for pod in self.world.facts.pods() if claim in pod.claim_names]
        found = [pod for pod in known if pod.may_be_bound and pod.uid not in self.unseen]
        going = [found[(first + other) % len(found)] for other in range(len(found))]
        for pod in going:
            self.filter_one(pod)
        for pod in going:
            self.decide_one(pod)
            if pod.name in self.decided:
                at = sorted(self.decided).index(pod.name)
                self.write_binding(at, "killed" if pod == going[0] else then)
        if drops and going:
            self.drop_pod(going[0].name, whole=True)

    def make_room(self) -> None:
        """All pods go, and ceilings are what they were: else most pods wait mostly."""
        for pod in list(self.world.facts.pods()):
            self.drop_pod(pod.name, whole=True)
        self.make_queues_anew()
        for name, (quota, limit) in CEILINGS.items():
            self.change_ceilings(name, limit, quota)

    @rule(back=st.booleans())
    def watch_pods(self, back: bool = False) -> None:
        """The watch speaks again; the clock may have been set back meanwhile."""
        self.now -= timedelta(minutes=back)
        for pod in self.unseen.values():
            self.world.put_pod(pod)
        self.unseen.clear()

    def write_labels(self, request: BindRequest) -> None:
        for owner in request.claims:
            claim = self.world.facts.claim(owner.uid)
            assert claim is not None
            if owner.owner_pod is not None:
                self.write_label(claim, owner.queue, owner.owner_pod)

    def is_reserved(self, pod: PodView) -> bool:
        found = self.world.facts.claims_of(pod)
        is_known = len(found) == len(pod.claim_names)
        return is_known and all(pod.uid in claim.reserved_for for claim in found)

    def write_label(self, claim: ClaimView, queue: QueueName, pod: PodUid) -> None:
        """As the API would let the binder: a label is never changed while it counts."""
        entry = self.world.ledger.claim(claim.uid)
        assert entry is None or not entry.is_charged
        self.world.put_claim(replace(claim, label=queue, owner_pod=pod))

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
        for name, claim in self.late.items():
            left = tuple(other for other in claim.reserved_for if other != uid)
            self.late[name] = replace(
                claim, reserved_for=left, results=claim.results if left else None
            )

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
        self.watch_pods()
        world = self.anew()
        for claim in self.late.values():
            world.put_claim(claim)
        self.late.clear()
        # kube-scheduler beside it starts anew, too.
        self.world, self.decided, self.deleted = world, {}, []
        self.keeper = ChargedQueues(world)

    def anew(self) -> World:
        """What follows from the objects alone, those of the silent watch among them."""
        world = new_world()
        for name in CEILINGS:
            world.delete_queue(QueueName(name))
        for queue in self.world.facts.tree:
            world.put_queue(queue)
        for pod in self.world.facts.pods():
            world.put_pod(self.unseen.get(pod.uid, pod))
        for claim in self.world.facts.claims():
            world.put_claim(claim)
        return world

    @invariant()
    def a_silent_watch_hides_no_use(self) -> None:
        """What will count once the watch speaks counts now, for the same queues."""
        if not self.unseen:
            return
        told = self.anew().ledger.usage
        for name in CEILINGS:
            usage = (self.world.ledger.usage, self.world.assumptions.usage)
            known = sum(totals.amount(QueueName(name), ONVIF) for totals in usage)
            assert known >= told.amount(QueueName(name), ONVIF), name

    @invariant()
    def no_ceiling_is_passed(self) -> None:
        """But for what ran, or was about to, when a ceiling was lowered."""
        use = self.used()
        for name, (quota, limit) in self.allowed.items():
            non_preemptible, usage = use.of(name, self.world)
            assert usage <= limit, name
            assert non_preemptible <= quota, name
        self.note_allowed()

    @invariant()
    def a_queue_that_is_closed_pays_for_nobody(self) -> None:
        assert self.used(*self.writable()).of("closed", self.world) == (0, 0)

    @invariant()
    def nothing_is_assumed_of_pods_that_are_gone(self) -> None:
        facts, assumptions = self.world.facts, self.world.assumptions
        assumed = {uid for claim in facts.claims() for uid in assumptions.pods(claim.uid)}
        assert {uid for uid in assumed if facts.pod(uid) is None} == set()
        assert all(
            (pod := facts.pod(uid)) and pod.may_be_bound
            for uid in self.world.assumptions.admitted()
        )
        assert assumptions.usage.amount(QueueName("root"), ONVIF) == 0 or len(assumptions)

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
        """To a queue that is there: a label may name one that went while nothing was in use."""
        entry = self.world.ledger.claim(claim.uid)
        return entry is not None and entry.owner in self.world.facts.tree


def test_a_queue_stays_while_one_that_joined_its_claim_is_bound_unseen() -> None:
    """Who wrote the owner was killed before its binding, and is gone; the other's is not seen."""
    history = Scheduling()
    history.hear(namespace=True, group=False)
    history.add_pod("p0", "right", ["c0"], non_preemptible=False)
    history.add_pod("p1", "left", ["c0"], non_preemptible=False)
    for name, then in (("p0", "killed"), ("p1", "the watch is silent")):
        pod = history.pod(name)
        assert pod is not None
        history.filter_one(pod)
        history.decide_one(pod)
        history.write_binding(0, then)
    history.drop_pod("p0", whole=True)

    history.delete_queue("right")
    history.keep_queues(0.0)
    history.watch_pods()

    history.everything_that_runs_is_charged_once()


TestScheduling = Scheduling.TestCase
TestScheduling.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)

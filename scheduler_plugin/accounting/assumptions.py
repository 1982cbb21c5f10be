"""Decisions in flight: pods that were admitted and whose binding the API does not show yet.

Beside the ledger, never in it: assumptions may be lost at any moment without harm. There is one
entry per claim; its pods stand in the order of their decisions. The first of them pays: the claim
counts for its queue (or for the label's, where there is one), the others have joined. When the
first drops out, the next remaining pod's queue takes its place.

A claim that the ledger charges counts there. An assumption then adds no more than the claim's
first non-preemptible use by its owner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler_plugin.accounting.charges.ledger import ClaimEntry
from scheduler_plugin.accounting.charges.owners import Owner
from scheduler_plugin.accounting.holds import Hold, Holds
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName

LAPSE = timedelta(seconds=60)
"""How long a decision is believed without a sign of it in the API.

A binding that was asked for is believed until the API shows what became of it, however long its
watch is silent: the pod may be using its devices.
"""


@dataclass(frozen=True, slots=True)
class AssumedPod:
    """A pod whose binding was admitted, or that decided an owner before this process started."""

    uid: PodUid
    queue: QueueName
    non_preemptible: bool = False


@dataclass(frozen=True, slots=True)
class AssumedClaim:
    """A claim as a verdict left it.

    Attributes:
        label: The queue of the claim's label; "" where the first pod decides.
        cost: What the claim will cost.
        decided_by: The pod whose queue became owner where that is not the admitted one.
    """

    uid: ClaimUid
    label: QueueName
    cost: Charges
    decided_by: AssumedPod | None = None


@dataclass(slots=True)
class _Entry:
    label: QueueName
    cost: Charges
    pods: dict[PodUid, AssumedPod] = field(default_factory=dict)

    @property
    def first(self) -> AssumedPod:
        return next(iter(self.pods.values()))

    def queue(self) -> QueueName:
        return self.label or self.first.queue

    def is_non_preemptible(self, queue: QueueName, *, apart_from: PodUid | None = None) -> bool:
        pods = self.pods.values()
        return any(p.non_preemptible and p.queue == queue and p.uid != apart_from for p in pods)


@dataclass(frozen=True, slots=True)
class _Part:
    """What something adds to the sums of one queue."""

    queue: QueueName
    usage: Charges
    non_preemptible: Charges


@dataclass(slots=True)
class _Held:
    """What is assumed of one pod."""

    claims: dict[ClaimUid, None] = field(default_factory=dict)
    requests: _Part | None = None


Subscriber = Callable[[Iterable[ClaimUid]], None]
"""Told of the claims that a pod uses, when the pod came or went."""


class Assumptions:
    """The table of decisions in flight, and what they add to each queue and its ancestors."""

    def __init__(
        self,
        path: Callable[[QueueName], tuple[QueueName, ...]],
        charged: Callable[[ClaimUid], ClaimEntry | None],
        ended: Subscriber,
    ) -> None:
        """Begin without any.

        Args:
            path: A queue and those above it.
            charged: The ledger's entry of a claim.
            ended: Told of the claims of a pod that may be bound no more: what stood for its sake
                may stand no longer.
        """
        self._path = path
        self._charged = charged
        self._ended = ended
        self._subscribers: list[Subscriber] = []
        self.usage = Totals(path)
        self.non_preemptible = Totals(path)
        self.holds = Holds(self.usage, self.non_preemptible)
        self._entries: dict[ClaimUid, _Entry] = {}
        self._parts: dict[ClaimUid, _Part] = {}
        self._held: dict[PodUid, _Held] = {}
        # In the order in which they lapse, since each is believed for the same time. Those whose
        # binding was asked for are not among them.
        self._until: dict[PodUid, datetime] = {}

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell somebody else, too; returns what ends that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is assumed meanwhile is tried only: nobody is told, and it ends with the trial."""
        subscribers, self._subscribers = self._subscribers, []
        until, known = dict(self._until), set(self._held)
        yield
        for pod in [pod for pod in self._held if pod not in known]:
            self.forget(pod)
        self._until = until
        self._subscribers = subscribers

    def is_assumed(self, pod: PodUid) -> bool:
        """Whether a decision about the pod is in flight."""
        return pod in self._held

    def admitted(self) -> list[PodUid]:
        """Those of whom something is assumed, but for those that only decided an owner."""
        return [uid for uid, held in self._held.items() if held.requests is not None]

    def _tell(self, claims: Iterable[ClaimUid]) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(claims)

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, claim: ClaimUid) -> bool:
        """Whether a pod is about to use the claim."""
        return claim in self._entries

    def owner(self, claim: ClaimUid) -> Owner | None:
        """The owner that was decided for a claim without a label."""
        entry = self._entries.get(claim)
        return Owner(entry.queue(), entry.first.uid) if entry is not None else None

    def pods(self, claim: ClaimUid) -> tuple[PodUid, ...]:
        """The pods that are about to use a claim, in the order of their decisions."""
        entry = self._entries.get(claim)
        return tuple(entry.pods) if entry else ()

    def is_paid_by_another(self, claim: ClaimUid, pod: PodUid) -> bool:
        """Whether the claim counts already, whatever becomes of this pod."""
        entry = self._entries.get(claim)
        return entry is not None and entry.first.uid != pod

    def is_non_preemptible(self, claim: ClaimUid, queue: QueueName, *, apart_from: PodUid) -> bool:
        """Whether another pod of the queue is about to use the claim non-preemptibly."""
        entry = self._entries.get(claim)
        return entry is not None and entry.is_non_preemptible(queue, apart_from=apart_from)

    def assume(
        self, pod: AssumedPod, claims: Iterable[AssumedClaim], requests: Charges, now: datetime
    ) -> None:
        """Believe in a pod's binding for `LAPSE`. The second time it keeps its place in the order.

        Args:
            pod: The pod that was admitted.
            claims: Its accounted claims. One without a UID does not exist yet and is left out.
            requests: What its own requests cost.
            now: The time of the decision.
        """
        until = now + LAPSE
        held = self._held.setdefault(pod.uid, _Held())
        self.holds.rest(pod.uid)
        self._lapse_at(pod.uid, until)
        self._set_requests(
            held, _Part(pod.queue, requests, requests if pod.non_preemptible else NO_CHARGES)
        )
        for claim in claims:
            if not claim.uid:
                continue
            entry = self._entries.setdefault(claim.uid, _Entry(claim.label, claim.cost))
            entry.label, entry.cost = claim.label, claim.cost
            if claim.decided_by is not None and claim.decided_by.uid not in entry.pods:
                self._hold_decider(claim.decided_by.uid, until).claims[claim.uid] = None
                entry.pods = {claim.decided_by.uid: claim.decided_by, **entry.pods}
            entry.pods[pod.uid] = pod
            held.claims[claim.uid] = None
            self.recount(claim.uid)
        self._tell(held.claims)

    def _hold_decider(self, pod: PodUid, until: datetime) -> _Held:
        """Its own binding may be under way."""
        if pod not in self._held or pod in self._until:
            self._lapse_at(pod, until)
        return self._held.setdefault(pod, _Held())

    def _lapse_at(self, pod: PodUid, until: datetime) -> None:
        self._until.pop(pod, None)
        self._until[pod] = until

    def binding_asked(self, pod: PodUid) -> None:
        """The API server was asked to bind a pod: it is believed until something is seen of it."""
        self._until.pop(pod, None)

    def awaits_binding(self, pod: PodUid) -> bool:
        """Whether the pod's binding was asked for, and its outcome is not seen yet."""
        return pod in self._held and pod not in self._until

    def _set_requests(self, held: _Held, part: _Part | None) -> None:
        self._add(held.requests, -1)
        held.requests = part
        self._add(part, 1)

    def forget(self, pod: PodUid) -> None:
        """Drop a pod: it is bound, deleted, refused, or asked about anew. A hold stays."""
        self.holds.resume(pod)
        was_asked = self.awaits_binding(pod)
        held = self._held.pop(pod, None)
        if held is None:
            return
        self._until.pop(pod, None)
        self._set_requests(held, None)
        for claim in held.claims:
            entry = self._entries[claim]
            del entry.pods[pod]
            if not entry.pods:
                del self._entries[claim]
            self.recount(claim)
        if was_asked:
            self._ended(held.claims)
        self._tell(held.claims)

    def hold(self, hold: Hold) -> None:
        """Hold room for a pod until it is bound, is gone, or the hold is ended."""
        self.holds.put(hold, rests=hold.pod in self._held)

    def forget_for_good(self, pod: PodUid) -> None:
        """Drop a pod that is bound or gone, with what is held for it."""
        self.holds.end(pod)
        self.forget(pod)

    def forget_claim(self, claim: ClaimUid) -> None:
        """Drop a claim that was deleted; what else is assumed of its pods stays."""
        entry = self._entries.pop(claim, None)
        for pod in entry.pods if entry else ():
            del self._held[pod].claims[claim]
        self.recount(claim)

    def expire(self, now: datetime) -> tuple[PodUid, ...]:
        """Drop the pods whose time is over, and name them.

        Those that would stay for long were decided about before the clock was set back.
        """
        lapsed = []
        for pod, until in self._until.items():
            if now < until <= now + 2 * LAPSE:
                break
            lapsed.append(pod)
        for pod in lapsed:
            self.forget(pod)
        return tuple(lapsed)

    def relabel(self, claim: ClaimUid, label: QueueName) -> None:
        """Take what the claim's label says now, "" for nothing, into account."""
        entry = self._entries.get(claim)
        if entry is not None and entry.label != label:
            entry.label = label
            self.recount(claim)

    def recount(self, claim: ClaimUid) -> None:
        """Take what the ledger says of a claim now into account."""
        before = self._parts.pop(claim, None)
        self._add(before, -1)
        entry = self._entries.get(claim)
        if entry is not None:
            part = self._parts[claim] = self._part(claim, entry)
            self._add(part, 1)

    def _part(self, claim: ClaimUid, entry: _Entry) -> _Part:
        charged = self._charged(claim)
        if charged is None or not charged.is_charged:
            queue = entry.queue()
            non_preemptible = entry.is_non_preemptible(queue)
            return _Part(queue, entry.cost, entry.cost if non_preemptible else NO_CHARGES)
        adds = not charged.non_preemptible and entry.is_non_preemptible(charged.owner)
        return _Part(charged.owner, NO_CHARGES, charged.cost if adds else NO_CHARGES)

    def _add(self, part: _Part | None, sign: int) -> None:
        if part is not None:
            self.usage.add(part.queue, part.usage, sign)
            self.non_preemptible.add(part.queue, part.non_preemptible, sign)

    def counted_for(
        self,
        pod: PodUid,
        paying: Collection[ClaimUid] = (),
        non_preemptibly: Collection[ClaimUid] = (),
    ) -> tuple[Totals, Totals]:
        """What is counted for this very pod: usage and non-preemptible use.

        A verdict on the pod sets it aside, since the verdict counts the same anew. So it does
        with the usage of the claims that the pod pays for, whoever pays for them by now, and with
        the non-preemptible use of those for which it is asked about the quota.
        """
        usage, non_preemptible = Totals(self._path), Totals(self._path)
        held = self._held.get(pod)
        if held is not None and held.requests is not None:
            usage.add(held.requests.queue, held.requests.usage)
            non_preemptible.add(held.requests.queue, held.requests.non_preemptible)
        hold = self.holds.counted_for(pod)
        if hold is not None:
            usage.add(hold.queue, hold.usage)
            non_preemptible.add(hold.queue, hold.non_preemptible)
        claims = held.claims if held is not None else {}
        only = (claim for claim in claims if not self._is_other_non_preemptible(claim, pod))
        for claim in {*only, *non_preemptibly} & self._entries.keys():
            part = self._parts[claim]
            non_preemptible.add(part.queue, part.non_preemptible)
        first = (claim for claim in claims if self._entries[claim].first.uid == pod)
        for claim in {*first, *paying} & self._entries.keys():
            usage.add(self._parts[claim].queue, self._parts[claim].usage)
        return usage, non_preemptible

    def _is_other_non_preemptible(self, claim: ClaimUid, pod: PodUid) -> bool:
        return self._entries[claim].is_non_preemptible(self._parts[claim].queue, apart_from=pod)

    def lift(self, queues: Iterable[QueueName]) -> None:
        self.usage.lift(queues)
        self.non_preemptible.lift(queues)

    def lay(self, queues: Iterable[QueueName]) -> None:
        self.usage.lay(queues)
        self.non_preemptible.lay(queues)

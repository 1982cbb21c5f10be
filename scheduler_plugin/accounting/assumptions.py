"""Decisions in flight: pods that were admitted and whose binding the API does not show yet.

Beside the ledger, never in it: assumptions may be lost at any moment without harm. When the pod
that pays for a claim drops out, the next remaining pod's queue takes its place.

A claim that the ledger charges counts there. An assumption then adds no more than the claim's
first non-preemptible use by its owner.

A *trial* is the same table with decisions of its own, which nobody is told of and which are gone
with it: what it is made of is never changed by it, whatever happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler_plugin.accounting.assumed import (
    AssumedClaim,
    AssumedPod,
    AssumptionsView,
    Entry,
    Held,
    Part,
    Tables,
)
from scheduler_plugin.accounting.backoffs import Backoffs
from scheduler_plugin.accounting.charges.entries import ClaimEntry
from scheduler_plugin.accounting.holds import Hold, Holds
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName

LAPSE = timedelta(seconds=60)
"""How long a decision is believed without a sign of it in the API.

A binding that was asked for is believed until the API shows what became of it, however long its
watch is silent: the pod may be using its devices.
"""

Subscriber = Callable[[Iterable[ClaimUid]], None]
"""Told of the claims that a pod uses, when the pod came or went."""


class Assumptions(AssumptionsView):
    """The table, and its changes."""

    def __init__(
        self,
        path: Callable[[QueueName], tuple[QueueName, ...]],
        charged: Callable[[ClaimUid], ClaimEntry | None],
        ended: Subscriber,
        under: Assumptions | None = None,
    ) -> None:
        """Begin without any, or with those of another table, which is not changed.

        Args:
            path: A queue and those above it.
            charged: The ledger's entry of a claim.
            ended: Told of the claims of a pod that may be bound no more: what stood for its sake
                may stand no longer.
            under: The other table, for a trial.
        """
        self._charged = charged
        self._ended = ended
        self.backoffs = Backoffs() if under is None else under.backoffs
        self.group_backoffs = Backoffs() if under is None else under.group_backoffs
        self._subscribers: list[Subscriber] = []
        if under is None:
            usage, non_preemptible = Totals(path), Totals(path)
            super().__init__(
                path, Tables(), (usage, non_preemptible), Holds(usage, non_preemptible)
            )
        else:
            super().__init__(path, *under.tried())

    def trial(self) -> Assumptions:
        """These assumptions, and others that are the result's alone; nobody is told of those."""
        return Assumptions(self._path, self._charged, lambda _: None, self)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell somebody else, too; returns what ends that."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def _tell(self, claims: Iterable[ClaimUid]) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(claims)

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
        known = [claim for claim in claims if claim.uid]
        self.holds.rest(pod.uid)
        self._lapse_at(pod.uid, now + LAPSE)
        self._hold(pod.uid, (claim.uid for claim in known))
        preemptible = NO_CHARGES if not pod.non_preemptible else requests
        self._set_requests(pod.uid, Part(pod.queue, requests, preemptible))
        for claim in known:
            self._enter(pod, claim, now + LAPSE)
        self._tell(self._tables.held[pod.uid].claims)

    def _enter(self, pod: AssumedPod, claim: AssumedClaim, until: datetime) -> None:
        before, decider = self._tables.entries.get(claim.uid), claim.decided_by
        pods = before.pods if before is not None else {}
        if decider is not None and decider.uid not in pods:
            # Its own binding may be under way.
            if not self.awaits_binding(decider.uid):
                self._lapse_at(decider.uid, until)
            self._hold(decider.uid, (claim.uid,))
            pods = {decider.uid: decider, **pods}
        self._tables.entries[claim.uid] = Entry(claim.label, claim.cost, {**pods, pod.uid: pod})
        self.recount(claim.uid)

    def _hold(self, pod: PodUid, claims: Iterable[ClaimUid]) -> None:
        held = self._tables.held.get(pod, Held())
        both = dict.fromkeys((*held.claims, *claims))
        self._tables.held[pod] = replace(held, claims=tuple(both))

    def _lapse_at(self, pod: PodUid, until: datetime) -> None:
        self._tables.until.pop(pod, None)
        self._tables.until[pod] = until

    def binding_asked(self, pod: PodUid) -> None:
        """The API server was asked to bind a pod: it is believed until something is seen of it."""
        self._tables.until.pop(pod, None)

    def _set_requests(self, pod: PodUid, part: Part) -> None:
        held = self._tables.held[pod]
        self._tables.held[pod] = replace(held, requests=part)
        self._add(held.requests, -1)
        self._add(part, 1)

    def forget(self, pod: PodUid) -> None:
        """Drop a pod: it is bound, deleted, refused, or asked about anew. A hold stays."""
        self.holds.resume(pod)
        was_asked = self.awaits_binding(pod)
        held = self._tables.held.pop(pod, None)
        if held is None:
            return
        self._tables.until.pop(pod, None)
        self._add(held.requests, -1)
        for claim in held.claims:
            self._take_out(pod, claim)
        if was_asked:
            self._ended(held.claims)
        self._tell(held.claims)

    def _take_out(self, pod: PodUid, claim: ClaimUid) -> None:
        entry = self._tables.entries[claim]
        left = {uid: other for uid, other in entry.pods.items() if uid != pod}
        if left:
            self._tables.entries[claim] = replace(entry, pods=left)
        else:
            del self._tables.entries[claim]
        self.recount(claim)

    def hold(self, hold: Hold) -> None:
        """Hold room for a pod until it is bound, is gone, or the hold is ended."""
        self.holds.put(hold, rests=self.is_assumed(hold.pod))

    def forget_for_good(self, pod: PodUid) -> None:
        """Drop a pod that is bound or gone, with what is held for it."""
        self.holds.end(pod)
        self.forget(pod)

    def forget_claim(self, claim: ClaimUid) -> None:
        """Drop a claim that was deleted; what else is assumed of its pods stays."""
        entry = self._tables.entries.pop(claim, None)
        for pod in entry.pods if entry else ():
            held = self._tables.held[pod]
            left = tuple(uid for uid in held.claims if uid != claim)
            self._tables.held[pod] = replace(held, claims=left)
        self.recount(claim)

    def expire(self, now: datetime) -> tuple[PodUid, ...]:
        """Drop the pods whose time is over, and name them.

        Those that would stay for long were decided about before the clock was set back.
        """
        lapsed = []
        self.backoffs.expire(now)
        self.group_backoffs.expire(now)
        for pod, until in self._tables.until.items():
            if now < until <= now + 2 * LAPSE:
                break
            lapsed.append(pod)
        for pod in lapsed:
            self.forget(pod)
        return tuple(lapsed)

    def relabel(self, claim: ClaimUid, label: QueueName) -> None:
        """Take what the claim's label says now, "" for nothing, into account."""
        entry = self._tables.entries.get(claim)
        if entry is not None and entry.label != label:
            self._tables.entries[claim] = replace(entry, label=label)
            self.recount(claim)

    def recount(self, claim: ClaimUid) -> None:
        """Take what the ledger says of a claim now into account."""
        before = self._tables.parts.pop(claim, None)
        self._add(before, -1)
        entry = self._tables.entries.get(claim)
        if entry is not None:
            part = self._tables.parts[claim] = self._part(claim, entry)
            self._add(part, 1)

    def _part(self, claim: ClaimUid, entry: Entry) -> Part:
        charged = self._charged(claim)
        if charged is None or not charged.is_charged:
            queue = entry.queue()
            non_preemptible = entry.is_non_preemptible(queue)
            return Part(queue, entry.cost, entry.cost if non_preemptible else NO_CHARGES)
        adds = not charged.non_preemptible and entry.is_non_preemptible(charged.owner)
        return Part(charged.owner, NO_CHARGES, charged.cost if adds else NO_CHARGES)

    def _add(self, part: Part | None, sign: int) -> None:
        if part is not None:
            self.usage.add(part.queue, part.usage, sign)
            self.non_preemptible.add(part.queue, part.non_preemptible, sign)

    def follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        """Move what queues are charged from these paths, the old ones, to those of now."""
        self.usage.follow(paths)
        self.non_preemptible.follow(paths)

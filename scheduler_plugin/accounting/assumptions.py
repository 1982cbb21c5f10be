"""Decisions in flight: admitted pods whose binding the API does not show yet.

They are kept beside the ledger, so that losing them (at a restart) does no harm. When the pod that
pays for a claim is forgotten, the queue of the next remaining pod pays.

A claim that the ledger charges counts there. An assumption then adds at most the claim's first
non-preemptible use by its owner.

A *trial* is an overlay of these tables with decisions of its own. Subscribers are not called for
them, and the tables below are never changed by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from scheduler_plugin.accounting.assumed import (
    AssumedClaim,
    AssumedPod,
    AssumptionsView,
    Entry,
    Part,
    PodAssumption,
    Tables,
)
from scheduler_plugin.accounting.backoffs import Backoffs
from scheduler_plugin.accounting.charges.entries import ClaimEntry
from scheduler_plugin.accounting.holds import Hold, Holds
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName

ASSUMED_TTL = timedelta(seconds=60)
"""How long a decision is assumed without a sign of it in the API.

Once the binding was requested, it is assumed until the API shows its outcome, however long the
watch is interrupted: the pod may be using its devices.
"""

RETRIED_TTL = timedelta(seconds=5)
"""How long a pod is assumed that kube-scheduler tries once more with its PodGroup: longer than the
calls for one group are apart.

kube-scheduler asks for each pod of a group, and then gives all of them up if one fits nowhere. No
event tells of that once their conditions say it: a group that is tried with each event of a busy
cluster would keep its room for ever, and use none of it.
"""

Subscriber = Callable[[Iterable[ClaimUid]], None]
"""Called with the claims of a pod that began or ceased to be assumed."""


class Assumptions(AssumptionsView):
    """The tables, and their changes."""

    def __init__(
        self,
        path: Callable[[QueueName], tuple[QueueName, ...]],
        charged: Callable[[ClaimUid], ClaimEntry | None],
        ended: Subscriber,
        under: Assumptions | None = None,
    ) -> None:
        """Begin without assumptions, or with an overlay of others.

        Args:
            path: Returns a queue and its ancestors.
            charged: Returns the ledger's entry of a claim.
            ended: Called with the claims of a pod whose requested binding ended, so that their
                entries are posted again.
            under: The assumptions below a trial; they are not changed.
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
        """An overlay of these assumptions; subscribers are not called for its changes."""
        return Assumptions(self._path, self._charged, lambda _: None, self)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; returns a function that removes it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def _notify(self, claims: Iterable[ClaimUid]) -> None:
        for subscriber in tuple(self._subscribers):
            subscriber(claims)

    def assume(
        self, pod: AssumedPod, claims: Iterable[AssumedClaim], requests: Charges, now: datetime
    ) -> None:
        """Assume for `ASSUMED_TTL` that the pod is bound; a repetition keeps its place in order.

        Args:
            pod: The admitted pod.
            claims: Its accounted claims. A claim without a UID does not exist yet and is omitted.
            requests: What its own requests cost.
            now: The time of the decision.
        """
        known = [claim for claim in claims if claim.uid]
        self.holds.suspend(pod.uid)
        self._expire_at(pod.uid, now + ASSUMED_TTL)
        self._hold(pod.uid, (claim.uid for claim in known))
        preemptible = NO_CHARGES if not pod.non_preemptible else requests
        self._set_requests(pod.uid, Part(pod.queue, requests, preemptible))
        for claim in known:
            self._enter(pod, claim, now + ASSUMED_TTL)
        self._notify(self._tables.assumed[pod.uid].claims)

    def _enter(self, pod: AssumedPod, claim: AssumedClaim, until: datetime) -> None:
        before, decider = self._tables.entries.get(claim.uid), claim.decided_by
        pods = before.pods if before is not None else {}
        if decider is not None and decider.uid not in pods:
            # Its own binding may have been requested, and must not expire then.
            if not self.awaits_binding(decider.uid):
                self._expire_at(decider.uid, until)
            self._hold(decider.uid, (claim.uid,))
            pods = {decider.uid: decider, **pods}
        self._tables.entries[claim.uid] = Entry(claim.label, claim.cost, {**pods, pod.uid: pod})
        self.recount(claim.uid)

    def _hold(self, pod: PodUid, claims: Iterable[ClaimUid]) -> None:
        assumed = self._tables.assumed.get(pod, PodAssumption())
        both = dict.fromkeys((*assumed.claims, *claims))
        self._tables.assumed[pod] = replace(assumed, claims=tuple(both))

    def _expire_at(self, pod: PodUid, until: datetime) -> None:
        self._forget_expiry(pod)
        self._tables.until[pod] = until

    def _forget_expiry(self, pod: PodUid) -> None:
        self._tables.until.pop(pod, None)
        self._tables.soon.pop(pod, None)

    def expire_soon(self, pod: PodUid, now: datetime) -> None:
        """Assume a pod for `RETRIED_TTL` only, unless `found_node` or its Bind comes before."""
        if pod in self._tables.until:
            self._tables.soon.pop(pod, None)
            self._tables.soon[pod] = now + RETRIED_TTL

    def found_node(self, pod: PodUid) -> None:
        """Note that kube-scheduler is about to bind the pod."""
        self._tables.soon.pop(pod, None)

    def binding_requested(self, pod: PodUid) -> None:
        """Note that the pod's binding was requested: it is assumed until its outcome is known."""
        self._forget_expiry(pod)

    def _set_requests(self, pod: PodUid, part: Part) -> None:
        assumed = self._tables.assumed[pod]
        self._tables.assumed[pod] = replace(assumed, requests=part)
        self._add(assumed.requests, -1)
        self._add(part, 1)

    def forget(self, pod: PodUid) -> None:
        """Forget a pod: it is bound, deleted, refused, or judged again. A hold for it stays."""
        self.holds.resume(pod)
        was_requested = self.awaits_binding(pod)
        assumed = self._tables.assumed.pop(pod, None)
        if assumed is None:
            return
        self._forget_expiry(pod)
        self._add(assumed.requests, -1)
        for claim in assumed.claims:
            self._remove(pod, claim)
        if was_requested:
            self._ended(assumed.claims)
        self._notify(assumed.claims)

    def _remove(self, pod: PodUid, claim: ClaimUid) -> None:
        entry = self._tables.entries[claim]
        remaining = {uid: other for uid, other in entry.pods.items() if uid != pod}
        if remaining:
            self._tables.entries[claim] = replace(entry, pods=remaining)
        else:
            del self._tables.entries[claim]
        self.recount(claim)

    def hold(self, hold: Hold) -> None:
        """Hold room for a pod until it is bound or deleted, or the hold is ended."""
        self.holds.put(hold, is_suspended=self.is_assumed(hold.pod))

    def forget_with_hold(self, pod: PodUid) -> None:
        """Forget a pod that is bound or deleted, and end the hold for it."""
        self.holds.end(pod)
        self.forget(pod)

    def forget_claim(self, claim: ClaimUid) -> None:
        """Forget a deleted claim; its pods stay assumed."""
        entry = self._tables.entries.pop(claim, None)
        for pod in entry.pods if entry else ():
            assumed = self._tables.assumed[pod]
            remaining = tuple(uid for uid in assumed.claims if uid != claim)
            self._tables.assumed[pod] = replace(assumed, claims=remaining)
        self.recount(claim)

    def expire(self, now: datetime) -> tuple[PodUid, ...]:
        """Forget the pods that expired, and return them.

        A pod that would expire much later was assumed before the clock was set back, and is
        forgotten, too.
        """
        self.backoffs.expire(now)
        self.group_backoffs.expire(now)
        tables = (self._tables.until, ASSUMED_TTL), (self._tables.soon, RETRIED_TTL)
        expired = dict.fromkeys(pod for until, ttl in tables for pod in _expired(until, ttl, now))
        for pod in expired:
            self.forget(pod)
        return tuple(expired)

    def relabel(self, claim: ClaimUid, label: QueueName) -> None:
        """Set the queue of the claim's label; "" for no label."""
        entry = self._tables.entries.get(claim)
        if entry is not None and entry.label != label:
            self._tables.entries[claim] = replace(entry, label=label)
            self.recount(claim)

    def recount(self, claim: ClaimUid) -> None:
        """Add up a claim again after its ledger entry changed."""
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
        """Move the sums of these queues from their old paths, the values, to their current ones."""
        self.usage.follow(paths)
        self.non_preemptible.follow(paths)


def _expired(until: Mapping[PodUid, datetime], ttl: timedelta, now: datetime) -> Iterator[PodUid]:
    """The pods that expired; all were entered for `ttl`, so the first of them expires first."""
    for pod, end in until.items():
        if now < end <= now + 2 * ttl:
            return
        yield pod

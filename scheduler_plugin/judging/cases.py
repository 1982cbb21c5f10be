"""The input of a verdict: how a pod uses each of its claims, and what that adds to queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler_plugin.accounting.charges.alternatives import has_alternatives, least_cost
from scheduler_plugin.accounting.charges.costs import (
    asked_cost,
    claim_cost,
    granted_cost,
    is_accounted,
)
from scheduler_plugin.accounting.charges.entries import ClaimEntry
from scheduler_plugin.accounting.charges.owners import Owner, awaited_pod, owner_of
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.shared_counters import paid_by_others
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.missing_claims import terminating_claims, unknown_entries
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, PodUid, QueueName
from scheduler_plugin.objects.pods import PodClaim, PodView

NO_COSTS: Mapping[str, Charges] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimUse:
    """The use of an accounted claim by a pod.

    Attributes:
        owner: The queue that is charged, or would be.
        owner_pod: The pod whose queue it is; None if the claim's label says it.
        cost: Exact if the claim is allocated, else the maximum of the assumed alternatives.
        adds: What the pod adds to the owner's usage; nothing if the claim is charged for another
            pod.
        adds_non_preemptible: What it adds to the owner's non-preemptible usage.
        counted: The part of `adds` that the ledger contains already, since the claim is labelled
            and reserved for the pod. The verdict subtracts it.
        counted_non_preemptible: The same part of `adds_non_preemptible`.
        awaited: The pod whose queue will own the claim, if that queue is not known yet.
    """

    claim: ClaimView
    owner: QueueName
    owner_pod: PodUid | None
    cost: Charges
    adds: Charges
    adds_non_preemptible: Charges
    counted: Charges = NO_CHARGES
    counted_non_preemptible: Charges = NO_CHARGES
    awaited: PodView | None = None

    @property
    def is_users(self) -> bool:
        """Whether a user, and not the binder, wrote the owner on the claim."""
        return self.owner_pod is None and bool(self.claim.label) and not self.claim.owner_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pod, and all that a verdict on it depends on.

    Attributes:
        queue: The pod's queue; "" for none.
        claims: Its accounted claims, in the order of its spec.
        unknown: Entries of its spec for which there is no claim.
        terminating: Its claims that are terminating.
        requests: What its own requests cost, charged to its queue.
        counted_usage: What the sums contain for this pod already; the verdict subtracts it.
        counted_non_preemptible: The same of non-preemptible use.
        at_bind: Whether allocations are final.
    """

    pod: PodView
    queue: QueueName
    claims: tuple[ClaimUse, ...]
    unknown: tuple[PodClaim, ...]
    terminating: tuple[ClaimView, ...]
    requests: Charges
    counted_usage: Totals
    counted_non_preemptible: Totals
    world: WorldView
    at_bind: bool = False

    @property
    def may_be_charged(self) -> bool:
        """Whether the pod asks for accounted devices, or may: a missing claim may ask for them."""
        return bool(self.claims or self.requests or self.unknown or self.terminating)

    @property
    def what(self) -> str:
        """The reason why the pod needs a queue, as the subject of a sentence."""
        return str(self.claims[0].claim) if self.claims else f"A request of {self.pod}"


def case_of(
    pod: PodView,
    claims: Sequence[ClaimView],
    world: WorldView,
    *,
    at_bind: bool,
    costs: Mapping[str, Charges] = NO_COSTS,
) -> Case:
    """The case of a pod; see `verdicts.judge` for the arguments.

    `costs` are what claims with alternatives cost, by name; others cost the least that they can.
    """
    unknown = tuple(unknown_entries(pod, {claim.name for claim in claims}))
    terminating = tuple(terminating_claims(pod, claims))
    pod = world.facts.without_lost_claim(pod)
    queue = _queue_of(pod, claims, world)
    catalog = world.facts.catalog
    accounted = [claim for claim in claims if is_accounted(claim, catalog)]
    pod_uses = _ClaimUses(pod, queue, world, at_bind, costs)
    uses = tuple(pod_uses.use_of(claim) for claim in accounted)
    counted_usage, counted_non_preemptible = _counted(pod, uses, world)
    return Case(
        pod=pod,
        queue=queue,
        claims=uses,
        unknown=unknown,
        terminating=terminating,
        requests=(granted_cost if at_bind else asked_cost)(pod, catalog),
        counted_usage=counted_usage,
        counted_non_preemptible=counted_non_preemptible,
        world=world,
        at_bind=at_bind,
    )


def _counted(pod: PodView, uses: Sequence[ClaimUse], world: WorldView) -> tuple[Totals, Totals]:
    """What the sums contain for the pod already: usage and non-preemptible use."""
    usage, non_preemptible = world.assumptions.counted_for(
        pod.uid,
        [use.claim.uid for use in uses if use.adds],
        [use.claim.uid for use in uses if use.adds_non_preemptible],
    )
    for use in uses:
        usage.add(use.owner, use.counted)
        non_preemptible.add(use.owner, use.counted_non_preemptible)
    return usage, non_preemptible


def _queue_of(pod: PodView, claims: Sequence[ClaimView], world: WorldView) -> QueueName:
    """The pod's queue; if an owner was written for this pod, that queue.

    The claim's label and the binding must name the same queue. If the process was killed between
    the two, the queue of the pod's PodGroup or namespace may have changed meanwhile.
    """
    facts = world.facts
    own = (c for c in claims if c.owner_pod == pod.uid and facts.is_reserved_for(c, pod))
    written = (claim.label for claim in own)
    return pod.queue or next(written, NO_QUEUE) or facts.queue_of(pod)


@dataclass(frozen=True, slots=True)
class _ClaimUses:
    """Determines how one pod uses its claims."""

    pod: PodView
    queue: QueueName
    world: WorldView
    at_bind: bool
    costs: Mapping[str, Charges]

    def use_of(self, claim: ClaimView) -> ClaimUse:
        entry = self.world.ledger.claim(claim.uid)
        if entry is not None and entry.is_charged:
            return self._charged(claim, entry)
        return self._uncharged(claim)

    def _uncharged(self, claim: ClaimView) -> ClaimUse:
        """The use of a claim that is not charged yet.

        At Bind no other assumed pod pays for it: the pod that is bound first decides the owner, and
        that may be another pod than the assumed one.
        """
        assumptions = self.world.assumptions
        assumed = self._assumed_owner(claim)
        found = owner_of(claim, self.world.facts, assumed)
        owner = found.queue if found else self.queue
        cost = self._cost(claim)
        # An orphan is in use whatever the verdict is; its owner is charged with the next write.
        counts_anyway = found is not None and found.is_orphans
        joins = not self.at_bind and assumptions.is_paid_by_another(claim.uid, self.pod.uid)
        return ClaimUse(
            claim=claim,
            owner=owner,
            owner_pod=found.pod if found else self.pod.uid,
            cost=cost,
            adds=NO_CHARGES if counts_anyway or joins else cost,
            adds_non_preemptible=cost if self._is_first(claim, owner) else NO_CHARGES,
            awaited=None if assumed is not None else awaited_pod(claim, self.world.facts),
        )

    def _cost(self, claim: ClaimView) -> Charges:
        if not has_alternatives(claim):
            facts = self.world.facts
            return claim_cost(claim, facts.catalog, paid_by_others(claim, facts))
        if (chosen := self.costs.get(claim.name)) is not None:
            return chosen
        assumed = self.world.assumptions.cost_for_another(claim.uid, self.pod.uid)
        return least_cost(claim, self.world.facts.catalog) if assumed is None else assumed

    def _assumed_owner(self, claim: ClaimView) -> Owner | None:
        """The owner that a decision in flight decides; None if there is none.

        At Bind only pods that the claim is reserved for can decide it. An owner that is written for
        any other pod is stale at once, and two pods could undo each other's owner without end.
        """
        assumed = self.world.assumptions.owner(claim.uid)
        if assumed is None or not self.at_bind or assumed.pod == self.pod.uid:
            return assumed
        is_reserved = assumed.pod and self.world.facts.is_reserved_for_uid(claim, assumed.pod)
        return assumed if is_reserved else None

    def _charged(self, claim: ClaimView, entry: ClaimEntry) -> ClaimUse:
        """The use of a claim that is charged already: for running pods, or only for pending ones.

        Only running pods have certainly passed the ceilings. Pending pods that the claim is
        reserved for may be in flight as this one is, and each would take another for the one that
        pays.
        """
        adds = not claim.other_consumers and not any(self._others_that_run(claim))
        first = self._is_first(claim, entry.owner) and not self._joins(claim, entry.owner)
        return ClaimUse(
            claim=claim,
            owner=entry.owner,
            owner_pod=None,
            cost=entry.cost,
            adds=entry.cost if adds else NO_CHARGES,
            adds_non_preemptible=entry.cost if first else NO_CHARGES,
            counted=entry.cost if adds else NO_CHARGES,
            counted_non_preemptible=entry.cost if first and entry.non_preemptible else NO_CHARGES,
        )

    def _others_that_run(self, claim: ClaimView) -> Iterator[PodView]:
        consumers = self.world.facts.consumers(claim)
        return (p for p in consumers if p.uid != self.pod.uid and p.is_bound and not p.ended)

    def _joins(self, claim: ClaimView, owner: QueueName) -> bool:
        """Whether a running pod of the owner uses the claim non-preemptibly."""
        others = (pod for pod in self._others_that_run(claim) if pod.non_preemptible)
        return any(self.world.facts.queue_of(pod) == owner for pod in others)

    def _is_first(self, claim: ClaimView, owner: QueueName) -> bool:
        """Whether this pod is the first non-preemptible use by the owner, assumed ones included."""
        pod = self.pod
        if not pod.non_preemptible or self.queue != owner:
            return False
        assumed = self.world.assumptions
        return self.at_bind or not assumed.is_non_preemptible(claim.uid, owner, apart_from=pod.uid)

"""A pod before its verdict: how each of its claims stands towards it, and what it would add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_plugin.amounts import NO_CHARGES, Charges
from scheduler_plugin.claims import ClaimView
from scheduler_plugin.costs import asked_cost, claim_cost, granted_cost, is_accounted
from scheduler_plugin.names import NO_QUEUE, PodUid, QueueName
from scheduler_plugin.owners import Source, owner_of
from scheduler_plugin.pods import PodView
from scheduler_plugin.totals import Totals
from scheduler_plugin.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an accounted claim stands towards a pod.

    Attributes:
        owner: The queue that is charged, or would be.
        owner_pod: The pod whose queue it is; None where the claim's label says it.
        cost: Exact where the claim is allocated, else the most that it can be.
        adds: What the pod adds to the owner's usage; nothing where it joins what is charged.
        adds_non_preemptible: What it adds to the owner's non-preemptible usage.
    """

    claim: ClaimView
    owner: QueueName
    owner_pod: PodUid | None
    cost: Charges
    adds: Charges
    adds_non_preemptible: Charges


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pod and all that a verdict on it looks at.

    Attributes:
        queue: The pod's queue; "" for none.
        claims: Its accounted claims, in the order of its spec.
        requests: What its own requests cost, charged to its queue.
        usage_alone: What is assumed of this very pod; the verdict counts the same anew.
        non_preemptible_alone: The same of non-preemptible use.
    """

    pod: PodView
    queue: QueueName
    claims: tuple[Standing, ...]
    requests: Charges
    usage_alone: Totals
    non_preemptible_alone: Totals
    world: World

    @property
    def what(self) -> str:
        """What makes the pod need a queue, for a sentence."""
        return str(self.claims[0].claim) if self.claims else f"A request of {self.pod}"


def case_of(pod: PodView, claims: Sequence[ClaimView], world: World, *, at_bind: bool) -> Case:
    """Prepare the verdict on a pod; see `verdicts.judge` for the arguments."""
    pod = world.facts.without_lost_claim(pod)
    queue = _queue_of(pod, claims, world)
    catalog = world.facts.catalog
    accounted = [claim for claim in claims if is_accounted(claim, catalog)]
    standings = tuple(_standing(pod, queue, c, world, at_bind=at_bind) for c in accounted)
    paying = [standing.claim.uid for standing in standings if standing.adds]
    usage_alone, non_preemptible_alone = world.assumptions.alone(pod.uid, paying)
    return Case(
        pod=pod,
        queue=queue,
        claims=standings,
        requests=(granted_cost if at_bind else asked_cost)(pod, catalog),
        usage_alone=usage_alone,
        non_preemptible_alone=non_preemptible_alone,
        world=world,
    )


def _queue_of(pod: PodView, claims: Sequence[ClaimView], world: World) -> QueueName:
    """The pod's queue. An owner that was written for this very pod says it.

    Label and binding must name one queue. What a pod gets from its PodGroup or its namespace may
    have changed since its label was written, when the process was killed before the binding.
    """
    written = (c.label for c in claims if c.owner_pod == pod.uid and pod.uid in c.reserved_for)
    return pod.queue or next(written, NO_QUEUE) or world.facts.queue_of(pod)


def _standing(
    pod: PodView, queue: QueueName, claim: ClaimView, world: World, *, at_bind: bool
) -> Standing:
    """At Bind nobody else pays for a claim that is not charged.

    Who is bound first writes the owner: another by now, perhaps, than the one that was joined.
    """
    entry = world.ledger.claim(claim.uid)
    if entry is not None and entry.is_charged:
        first = not entry.non_preemptible and _uses_first(pod, queue, claim, entry.owner, world)
        return Standing(
            claim=claim,
            owner=entry.owner,
            owner_pod=None,
            cost=entry.cost,
            adds=NO_CHARGES,
            adds_non_preemptible=entry.cost if first else NO_CHARGES,
        )
    assumptions = world.assumptions
    found = owner_of(claim, world.facts, assumptions.owner(claim.uid))
    owner = found.queue if found else queue
    cost = claim_cost(claim, world.facts.catalog)
    # An orphan runs whatever the verdict is; its owner is charged with the next write.
    counts_anyway = found is not None and found.source is Source.ORPHAN
    joins = not at_bind and assumptions.is_paid_by_another(claim.uid, pod.uid)
    return Standing(
        claim=claim,
        owner=owner,
        owner_pod=found.pod if found else pod.uid,
        cost=cost,
        adds=NO_CHARGES if counts_anyway or joins else cost,
        adds_non_preemptible=cost if _uses_first(pod, queue, claim, owner, world) else NO_CHARGES,
    )


def _uses_first(
    pod: PodView, queue: QueueName, claim: ClaimView, owner: QueueName, world: World
) -> bool:
    """Whether no other pod in flight is a non-preemptible use of the claim by its owner."""
    if not pod.non_preemptible or queue != owner:
        return False
    return not world.assumptions.is_non_preemptible(claim.uid, owner, apart_from=pod.uid)

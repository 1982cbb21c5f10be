"""The verdict on a pod: whether its claims and requests may be charged, and to which queues.

    pod, claims, world ──judge──► Admitted ──assume──► world, ──bind_request──► binder
                             └──► Refused(reason, sentence)

The first rule of `rules.table` that refuses gives the reason. A verdict does not depend on the
node: kube-scheduler gets the same bytes for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_plugin.accounting.assumed import AssumedClaim, AssumedPod
from scheduler_plugin.accounting.world_views import DecidingWorld, WorldView
from scheduler_plugin.judging.alternatives import cases_of, have_alternatives
from scheduler_plugin.judging.cases import Case, ClaimUse, case_of
from scheduler_plugin.judging.rules.table import RULES
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, most_of, summed
from scheduler_plugin.objects.bindings import BindRequest, claim_owner
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName, Reason
from scheduler_plugin.objects.pods import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The pod may be bound.

    Attributes:
        queue: The pod's queue; "" if it asks for no accounted devices.
        claims: Its accounted claims, each with its owner.
        requests: What its own requests cost, beside its claims.
    """

    queue: QueueName = NO_QUEUE
    claims: tuple[ClaimUse, ...] = ()
    requests: Charges = NO_CHARGES


@dataclass(frozen=True, slots=True)
class Refused:
    """The pod must not be bound.

    Attributes:
        sentence: The cause, for users.
    """

    reason: Reason
    sentence: str


Verdict = Admitted | Refused

NONE_FITS = "None of the other alternatives of its requests fits either."


def judge(
    pod: PodView,
    claims: Sequence[ClaimView],
    world: WorldView,
    *,
    at_bind: bool = False,
    at_least: bool = False,
) -> Verdict:
    """Judge a pod; a pod that is bound already is admitted.

    A pod whose claims have alternatives is admitted if any combination of them fits: at Bind it is
    known which one was allocated.

    Args:
        pod: The pod, as kube-scheduler or the API server has it.
        claims: The claims of its spec, in that order; `FactsView.claims_of` returns them.
        world: The current state; it is not changed. Expired assumptions count until the caller
            removes them.
        at_bind: Whether allocations are final. Extended resources without a claim are then those of
            device plugins; only Akri's names are charged for them.
        at_least: Whether claims with alternatives count as the least that these may cost.
    """
    if pod.is_bound:
        return Admitted(queue=world.facts.queue_of(pod))
    case = case_of(pod, claims, world, at_bind=at_bind)
    if not case.may_be_charged:
        return Admitted()
    refused = _refusal(case)
    if refused is None and not at_least:
        case, refused = _first_that_fits(case, pod, claims)
    if refused is not None:
        return refused
    return Admitted(queue=case.queue, claims=case.claims, requests=case.requests)


def deciding_case(pod: PodView, claims: Sequence[ClaimView], world: WorldView) -> Case:
    """The case that the verdict on a pending pod is about."""
    case = case_of(pod, claims, world, at_bind=False)
    return case if _refusal(case) else _first_that_fits(case, pod, claims)[0]


def expected_case(pod: PodView, claims: Sequence[ClaimView], world: WorldView) -> Case:
    """The case with the most that a pod may be charged by the alternatives that fit.

    It is the case with the least that they may cost if none fits, or if they are too many.
    """
    case = case_of(pod, claims, world, at_bind=False)
    if not have_alternatives(claims):
        return case
    fitting = [each for each in cases_of(pod, claims, world) if _refusal(each) is None]
    names = [use.claim.name for use in case.claims]
    costs = {
        name: most_of(each.claims[number].cost for each in fitting)
        for number, name in enumerate(names if fitting else ())
    }
    return case_of(pod, claims, world, at_bind=False, costs=costs)


def missing_refusal(pod: PodView, claims: Sequence[ClaimView], world: WorldView) -> Refused | None:
    """The refusal of a pod that names a missing or terminating claim; None for any other pod."""
    case = case_of(pod, claims, world, at_bind=True)
    return _refusal(case) if case.unknown or case.terminating else None


def _refusal(case: Case) -> Refused | None:
    """The refusal by the first rule that refuses. Only its first sentence is built."""
    for rule in RULES:
        for sentence in rule.refusals(case):
            return Refused(rule.reason, sentence)
    return None


def _first_that_fits(
    case: Case, pod: PodView, claims: Sequence[ClaimView]
) -> tuple[Case, Refused | None]:
    """The first case that is not refused; without one the last, and why it is refused.

    Where the claims have no alternatives or too many combinations of them, it is the given case.
    """
    refused = None
    for each in cases_of(pod, claims, case.world) if have_alternatives(claims) else ():
        case, refused = each, _refusal(each)
        if refused is None:
            return case, None
    if refused is None or refused.reason is Reason.NOT_KNOWN_YET:
        return case, refused
    return case, replace(refused, sentence=f"{refused.sentence} {NONE_FITS}")


def assume(pod: PodView, admitted: Admitted, world: DecidingWorld, now: datetime) -> None:
    """Assume that an admitted pod is bound, so that the next verdict counts it.

    A claim that does not exist yet counts with the pod's own requests until the pod is judged
    again. A pod that is bound already, or cannot be bound any more, is not assumed, since no event
    would end the assumption.
    """
    if not world.may_be_bound(pod.uid) or not (admitted.claims or admitted.requests):
        return
    claims = [
        AssumedClaim(
            uid=use.claim.uid,
            label=use.owner if use.owner_pod is None else NO_QUEUE,
            cost=use.cost,
            decided_by=_decided_by(use, pod, world),
        )
        for use in admitted.claims
    ]
    assumed = AssumedPod(pod.uid, admitted.queue, pod.non_preemptible)
    future = (s.adds for s in admitted.claims if not s.claim.uid and s.owner == admitted.queue)
    world.assumptions.assume(assumed, claims, summed((admitted.requests, *future)), now)


def _decided_by(use: ClaimUse, pod: PodView, world: WorldView) -> AssumedPod | None:
    """The other pod whose queue owns the claim, as its reservation shows; None for none."""
    if use.owner_pod is None or use.owner_pod == pod.uid:
        return None
    other = world.facts.pod(use.owner_pod)
    non_preemptible = other is not None and other.non_preemptible
    return AssumedPod(use.owner_pod, use.owner, non_preemptible)


def bind_request(pod: PodView, node: str, admitted: Admitted) -> BindRequest:
    """The request to the binder. All requests that name a claim name the same owner."""
    return BindRequest(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=node,
        queue=admitted.queue,
        claims=tuple(claim_owner(u.claim, u.owner, u.owner_pod) for u in admitted.claims),
    )

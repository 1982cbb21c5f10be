"""The verdict on a pod: whether its claims and requests may be charged, and to whom.

    pod, claims, world ──judge──► Admitted ──assume──► world, ──bind_request──► binder
                             └──► Refused(reason, sentence)

The rules stand in `RULES`, in this order: rule by rule, and within a rule claim by claim. The
first that fails is the reason. A verdict does not look at nodes, so that it is the same for all of
them, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from driver.api import timestamp
from scheduler_plugin.accounting.assumed import AssumedClaim, AssumedPod
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.queues.queues import why_not_admitted
from scheduler_plugin.accounting.world_views import DecidingWorld, WorldView
from scheduler_plugin.judging.awaited import claims_given_up, devices_held
from scheduler_plugin.judging.cases import Case, ClaimUse, case_of, slots_problems
from scheduler_plugin.judging.ceilings import non_preemptible_added, overruns, usage_added
from scheduler_plugin.judging.equivalence_classes import equivalence_class
from scheduler_plugin.judging.missing_claims import going_claims, unknown_entries
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, summed
from scheduler_plugin.objects.bindings import BindRequest, claim_owner
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import (
    NO_QUEUE,
    PodUid,
    QueueName,
    Reason,
    SharingPolicy,
)
from scheduler_plugin.objects.pods import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The pod may be bound.

    Attributes:
        queue: The pod's queue; "" where it asks for nothing that queues count.
        claims: Its accounted claims, each with its owner.
        requests: What its own requests cost, beside its claims.
    """

    queue: QueueName = NO_QUEUE
    claims: tuple[ClaimUse, ...] = ()
    requests: Charges = NO_CHARGES


@dataclass(frozen=True, slots=True)
class Refused:
    """The pod must not be bound: why, for machines and for people."""

    reason: Reason
    sentence: str


Verdict = Admitted | Refused


def judge(
    pod: PodView,
    claims: Sequence[ClaimView],
    world: WorldView,
    *,
    at_bind: bool = False,
) -> Verdict:
    """Judge a pod that is not bound yet; one that is bound already is admitted as it stands.

    Args:
        pod: The pod, as kube-scheduler or the API has it now.
        claims: The claims of its spec, in that order; `FactsView.claims_of` finds them.
        world: What is known. Nothing of it changes; what lapsed of its assumptions counts until
            whoever asks drops it.
        at_bind: Whether allocations are final. Extended resources that no claim stands for are
            then the device plugins', and of those only Akri's names are charged.
    """
    if pod.is_bound:
        return Admitted(queue=world.facts.queue_of(pod))
    for refusal in missing_refusals(pod, claims, world.facts):
        return refusal
    case = case_of(pod, claims, world, at_bind=at_bind)
    if not case.claims and not case.requests:
        return Admitted()
    for refusal in queue_refusals(case):
        return refusal
    for reason, rule in RULES:
        for sentence in rule(case):
            return Refused(reason, sentence)
    return Admitted(queue=case.queue, claims=case.claims, requests=case.requests)


def missing_refusals(
    pod: PodView, claims: Sequence[ClaimView], facts: FactsView
) -> Iterator[Refused]:
    """What the pod names and is not among its claims: nothing can be said of what that costs."""
    for entry in unknown_entries(pod, {claim.name for claim in claims}):
        claim = f"ResourceClaim {pod.namespace}/{entry.claim}"
        if not entry.claim:
            template = f"ResourceClaimTemplate {pod.namespace}/{entry.template}"
            sentence = f"{pod} has no claim yet that is made of {template}."
            yield Refused(Reason.NOT_KNOWN_YET, sentence)
        elif facts.is_gone_claim((pod.namespace, entry.claim)):
            sentence = f"{claim}, which {pod} names, does not exist."
            yield Refused(Reason.CLAIM_NOT_FOUND, sentence)
        else:
            yield Refused(Reason.NOT_KNOWN_YET, f"{claim}, which {pod} names, is not known yet.")
    for going in going_claims(pod, claims):
        sentence = f"{going}, which {pod} names, is being deleted."
        yield Refused(Reason.CLAIM_NOT_FOUND, sentence)


def queue_refusals(case: Case) -> Iterator[Refused]:
    """What is not known is not judged: another queue could be charged, or one that is closed."""
    missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
    if missing is not None and missing.gone:
        sentence = f"{case.what} needs a queue, and {missing}, which would say it, is gone."
        yield Refused(Reason.GONE, sentence)
    elif missing is not None:
        sentence = f"{case.what} needs a queue, and waits for {missing}, which is not known yet."
        yield Refused(Reason.NOT_KNOWN_YET, sentence)


def _owners_are_known(case: Case) -> Iterator[str]:
    for use in case.claims:
        pod = use.awaited
        missing = case.world.facts.pod_queues.missing(pod) if pod is not None else None
        if missing is not None:
            yield (
                f"{use.claim} belongs to the queue of {pod}, and waits for {missing}, which is"
                " not known yet."
            )


def _slots_are_numbers(case: Case) -> Iterator[str]:
    for claim, problem in slots_problems(case):
        yield f"{claim} asks for no number of slots: {problem}"


def _has_queue(case: Case) -> Iterator[str]:
    if not case.queue:
        yield (
            f"{case.what} needs a queue, and {case.pod} has none: no label"
            f' "{case.world.facts.settings.queue_label}" of its own, of its PodGroup or of its'
            " namespace, and there is no default."
        )


def _queues_exist(case: Case) -> Iterator[str]:
    tree = case.world.facts.tree
    if case.queue not in tree:
        yield f'{case.what} needs a queue, and queue "{case.queue}" does not exist.'
    for use in case.claims:
        if (use.adds or use.is_users) and use.owner not in tree:
            yield f'{use.claim} belongs to queue "{use.owner}", which does not exist.'


def _queues_stay(case: Case) -> Iterator[str]:
    """A queue that is on its way out stays until its charges end: nothing is added to them."""
    if going := _going(case, case.queue):
        yield f"{case.what} needs a queue, and {going}."
    for use in case.claims:
        if use.adds and (going := _going(case, use.owner)):
            yield f'{use.claim} belongs to queue "{use.owner}", and {going}.'


def _going(case: Case, queue: QueueName) -> str:
    """Which of a queue and those above it is being deleted, for a sentence; "" for none."""
    tree = case.world.facts.tree
    for place in tree.path(queue):
        found = tree.get(place)
        if found is not None and found.is_deleting:
            above = f', which is above queue "{queue}",' if place != queue else ""
            return f'queue "{place}"{above} is being deleted: it takes nothing new'
    return ""


def _queue_is_allowed(case: Case) -> Iterator[str]:
    if not case.world.facts.may_use(case.pod, case.queue):
        namespace = case.pod.namespace
        yield (
            f'{case.what} needs a queue, and namespace "{namespace}" may not use queue'
            f' "{case.queue}". {_why_not_admitted(case, case.queue)}'
        )


def _why_not_admitted(case: Case, name: QueueName) -> str:
    queue = case.world.facts.tree.get(name)
    return why_not_admitted(queue, case.pod.namespace) if queue is not None else ""


def _labels_are_allowed(case: Case) -> Iterator[str]:
    """An owner that the binder did not write is judged anew, whatever admitted the claim.

    What `labelAtCreate` says later takes no claim from those who use it.
    """
    facts = case.world.facts
    for use in case.claims:
        if not use.is_users:
            continue
        claim, owner = use.claim, use.owner
        labelled = f'{claim} is labelled with queue "{owner}"'
        if not facts.may_use(case.pod, owner):
            yield (
                f'{labelled}, which namespace "{claim.namespace}" may not use.'
                f" {_why_not_admitted(case, owner)}"
            )
        if use.adds and facts.tree.sharing(owner).label_at_create is SharingPolicy.DENY:
            yield (
                f"{labelled}, which may not be named on a new claim (labelAtCreate: Deny)."
                " Make the claim without the label."
            )


def _claims_have_room(case: Case) -> Iterator[str]:
    most = case.world.facts.settings.max_consumers
    for use in case.claims:
        claim = use.claim
        pods = {*claim.reserved_for, *case.world.assumptions.pods(claim.uid)} - {case.pod.uid}
        count = len(pods) + claim.other_consumers
        if count >= most and case.pod.uid not in claim.reserved_for:
            yield f"{claim} has {count} consumers, and no claim can have more than {most}."


def _sharers_are_few(case: Case) -> Iterator[str]:
    for use in case.claims:
        claim = use.claim
        for name in sorted(claim.classes):
            most = case.world.facts.catalog.max_pods(name)
            if most is None:
                continue
            count = len(_sharers(case, claim))
            if count >= most:
                yield (
                    f'{claim} is shared by {count} pods, and DeviceClass "{name}" lets no more than'
                    f" {most} share one."
                )


def _sharers(case: Case, claim: ClaimView) -> set[PodUid]:
    """The pods that go before this one: those that run, and those that were admitted earlier.

    Of pods that are reserved and not bound yet the earlier ones go first, so that of too many
    not all are refused.
    """
    facts = case.world.facts
    known = {pod.uid: pod for pod in facts.consumers(claim)}
    sharers: set[PodUid] = set()
    earlier = True
    for uid in claim.reserved_for:
        pod = known.get(uid)
        earlier = earlier and uid != case.pod.uid
        if (pod is None and earlier) or (pod and not pod.ended and (earlier or pod.is_bound)):
            sharers.add(uid)
    if case.pod.uid not in claim.reserved_for:
        sharers.update(case.world.assumptions.pods(claim.uid))
    return sharers - {case.pod.uid}


def _owners_share(case: Case) -> Iterator[str]:
    for use in case.claims:
        if not case.world.facts.tree.shares_with(use.owner, case.queue):
            yield f"{not_shared(use.claim, use.owner, case.queue)}."


def not_shared(claim: ClaimView, owner: QueueName, queue: QueueName) -> str:
    """Why a queue may not use a claim, without the full stop."""
    return (
        f'{claim} belongs to queue "{owner}", which does not share its claims with queue "{queue}"'
    )


def _foreign_pods_are_preemptible(case: Case) -> Iterator[str]:
    for use in case.claims:
        if use.owner != case.queue and case.pod.non_preemptible:
            yield (
                f'{use.claim} belongs to queue "{use.owner}", and {case.pod} of queue'
                f' "{case.queue}" is non-preemptible: it could keep the claim from its owner.'
            )


def _limits_hold(case: Case) -> Iterator[str]:
    """Usage, assumptions and what the pod adds, its earlier claims included, are in the limit.

    A queue with an overQuotaWeight of 0 has its quota for one.
    """
    world = case.world
    sums = (world.ledger.usage, world.assumptions.usage, case.counted_usage)
    for overrun, share in overruns(case, usage_added(case), sums, lambda share: share.most):
        passed = f"limit of {share.limit}"
        if share.stays_in_quota:
            passed = f"quota of {share.quota}, beyond which it never goes (overQuotaWeight: 0)"
        yield f"{overrun} would pass its {passed}."


def _quotas_hold(case: Case) -> Iterator[str]:
    """The same for non-preemptible use and the quota."""
    world = case.world
    assumed = world.assumptions.non_preemptible
    sums = (world.ledger.non_preemptible, assumed, case.counted_non_preemptible)
    added = non_preemptible_added(case)
    for overrun, share in overruns(case, added, sums, lambda share: share.quota):
        yield f"{overrun} would pass its quota of {share.quota} for non-preemptible pods."


def may_borrow(case: Case) -> Iterator[str]:
    """What was just taken back from pods like it is not lent to it at once."""
    world, kind = case.world, equivalence_class(case.pod, case.world.facts)
    if kind not in world.assumptions.backoffs:
        return
    sums = (world.ledger.usage, world.assumptions.usage, case.counted_usage)
    for overrun, share in overruns(case, usage_added(case), sums, lambda share: share.quota):
        if overrun.place != overrun.owner:
            continue
        until = world.assumptions.backoffs.until(kind)
        yield (
            f"{overrun} would pass its quota of {share.quota}, and a pod like it was evicted: such"
            f" pods borrow again from {timestamp(until)} on."
        )


def _is_not_held(case: Case) -> Iterator[str]:
    yield from devices_held(case)
    yield from claims_given_up(case)


RULES: tuple[tuple[Reason, Callable[[Case], Iterator[str]]], ...] = (
    (Reason.NOT_KNOWN_YET, _owners_are_known),
    (Reason.CLAIM_INVALID, _slots_are_numbers),
    (Reason.NO_QUEUE, _has_queue),
    (Reason.QUEUE_NOT_FOUND, _queues_exist),
    (Reason.QUEUE_NOT_FOUND, _queues_stay),
    (Reason.QUEUE_NOT_ALLOWED, _queue_is_allowed),
    (Reason.QUEUE_NOT_ALLOWED, _labels_are_allowed),
    (Reason.CLAIM_FULL, _claims_have_room),
    (Reason.TOO_MANY_SHARERS, _sharers_are_few),
    (Reason.CLAIM_SHARING_DENIED, _owners_share),
    (Reason.FOREIGN_NON_PREEMPTIBLE, _foreign_pods_are_preemptible),
    (Reason.OVER_LIMIT, _limits_hold),
    (Reason.NON_PREEMPTIBLE_OVER_QUOTA, _quotas_hold),
    (Reason.BORROWING_BACKOFF, may_borrow),
    (Reason.DEVICE_HELD, _is_not_held),
)
"""Each with the reason of its refusals, of which it says the sentences."""


def assume(pod: PodView, admitted: Admitted, world: DecidingWorld, now: datetime) -> None:
    """Believe in an admitted pod's binding, so that the next verdict counts it.

    A claim that does not exist yet counts with the pod's own requests until it is there and the
    pod is asked about anew. Of a pod that is bound, or never will be, nothing is believed: no event
    would end it.
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
    """The pod that became owner before this process knew of it, as its reservation shows."""
    if use.owner_pod is None or use.owner_pod == pod.uid:
        return None
    other = world.facts.pod(use.owner_pod)
    non_preemptible = other is not None and other.non_preemptible
    return AssumedPod(use.owner_pod, use.owner, non_preemptible)


def bind_request(pod: PodView, node: str, admitted: Admitted) -> BindRequest:
    """What the binder is to carry out. Every request that names a claim names the same owner."""
    return BindRequest(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        node=node,
        queue=admitted.queue,
        claims=tuple(claim_owner(u.claim, u.owner, u.owner_pod) for u in admitted.claims),
    )

"""What would have to change for a refused pod to run: for each reason, any one of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from scheduler_plugin.accounting.queues.queues import why_not_admitted
from scheduler_plugin.accounting.queues.totals import TotalsView
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case, slots_problems
from scheduler_plugin.judging.ceilings import (
    Addition,
    Overrun,
    non_preemptible_added,
    overruns,
    usage_added,
)
from scheduler_plugin.judging.missing_claims import going_claims
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.names import (
    MAX_PODS_ANNOTATION,
    PREEMPTIBILITY_LABELS,
    QueueName,
    Reason,
    Share,
)
from scheduler_plugin.objects.words import number_of
from scheduler_plugin.viewing.named_holders import MayName, anyone, named


def remedies(reason: Reason, case: Case, may_name: MayName = anyone) -> tuple[str, ...]:
    """Each on its own would do for this reason; another rule may be in the way then.

    Claims and pods of a namespace that `may_name` does not allow are counted only.
    """
    if reason is Reason.OVER_LIMIT:
        return tuple(_over_limit(case, may_name))
    return tuple(_REMEDIES[reason](case))


def _not_known(case: Case) -> Iterator[str]:
    facts = case.world.facts
    for entry in case.pod.claims:
        if entry.claim and facts.claim_named(case.pod.namespace, entry.claim) is None:
            yield f"ResourceClaim {case.pod.namespace}/{entry.claim} has to be created."
        if entry.is_to_be_made:
            template = f"{case.pod.namespace}/{entry.template}"
            yield (
                f"ResourceClaimTemplate {template} has to exist: kube-controller-manager makes the"
                " claim of it, in a moment."
            )
    missing = facts.pod_queues.missing(case.pod, case.queue)
    if missing is not None:
        yield f"{missing} has to be there, since it says the pod's queue."


def _claim_not_found(case: Case) -> Iterator[str]:
    facts = case.world.facts
    for entry in case.pod.claims:
        key = (case.pod.namespace, entry.claim)
        if entry.claim and facts.is_gone_claim(key):
            yield f"Create ResourceClaim {case.pod.namespace}/{entry.claim}."
    for claim in going_claims(case.pod, facts.claims_of(case.pod)):
        yield f"Create {claim} anew once it is gone: it goes when no pod uses it."
    yield "Or delete the pod and create one that names a claim that exists."


def _gone(case: Case) -> Iterator[str]:
    missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
    if missing is not None:
        yield f"Create {missing} anew, since it says the pod's queue."
    yield "Or delete the pod and create one with a queue of its own."


def _invalid(case: Case) -> Iterator[str]:
    for claim in dict.fromkeys(claim for claim, _ in slots_problems(case)):
        yield f"Create {claim} anew, with a whole number of slots of at least 1: none is changed."


def _no_queue(case: Case) -> Iterator[str]:
    label, namespace = case.world.facts.settings.queue_label, case.pod.namespace
    yield f"Give its namespace a queue: kubectl label namespace {namespace} {label}=QUEUE."
    yield f"Or create the pod anew with the label {label}: a pod's own is never added later."


def _not_found(case: Case) -> Iterator[str]:
    tree = case.world.facts.tree
    named = dict.fromkeys([case.queue, *(use.owner for use in case.claims)])
    for name in named:
        going = [q for q in tree.path(name) if (found := tree.get(q)) and found.is_deleting]
        if name not in tree:
            yield f'Create Queue "{name}", or create the pod (or claim) anew with one that exists.'
        elif going:
            yield (
                f'Queue "{going[0]}" is being deleted: it goes once nothing is charged to it; use'
                " another queue."
            )


def _not_allowed(case: Case) -> Iterator[str]:
    facts, namespace = case.world.facts, case.pod.namespace
    for name in dict.fromkeys([case.queue, *(use.owner for use in case.claims if use.is_users)]):
        queue = facts.tree.get(name)
        if queue is not None and not facts.may_use(case.pod, name):
            yield (
                f'Let namespace "{namespace}" use queue "{name}":'
                f" {why_not_admitted(queue, namespace)}"
            )
    for use in case.claims:
        if use.is_users and use.adds:
            yield f"Or create {use.claim} anew without its label: who is admitted first pays then."
    yield "Or use a queue that this namespace may use."


def _full(case: Case) -> Iterator[str]:
    most = case.world.facts.settings.max_consumers
    yield f"One of its {most} consumers has to end, or the pod needs a claim of its own."


def _too_many(case: Case) -> Iterator[str]:
    catalog = case.world.facts.catalog
    for use in case.claims:
        for name in sorted(use.claim.classes):
            most = catalog.max_pods(name)
            if most is not None:
                yield (
                    f"A pod that uses {use.claim} has to end; or let more share one claim:"
                    f" kubectl annotate --overwrite deviceclass {name}"
                    f" {MAX_PODS_ANNOTATION}={most + 1}."
                )
    yield "Or use a claim of its own."


def _denied(case: Case) -> Iterator[str]:
    tree = case.world.facts.tree
    for use in case.claims:
        if use.owner != case.queue and not tree.shares_with(use.owner, case.queue):
            yield (
                f'Queue "{use.owner}" (or whoever it inherits from) has to share:'
                f' spec.claimSharing.policy: Allow, or "{case.queue}" among'
                " spec.claimSharing.queues."
            )
    yield f'Or use a claim of its own, which queue "{case.queue}" pays for.'


def _non_preemptible(case: Case) -> Iterator[str]:
    least = case.world.facts.settings.non_preemptible_priority
    yield (
        f"Create the pod anew with the label {PREEMPTIBILITY_LABELS[0]}: preemptible, or with a"
        f" priority below {least}."
    )
    yield f'Or use a claim of its own, which queue "{case.queue}" pays for.'


def _over_limit(case: Case, may_name: MayName = anyone) -> Iterator[str]:
    world = case.world
    sums = (world.ledger.usage, world.assumptions.usage, case.counted_usage)
    for overrun, share in _worst(case, usage_added(case), sums, lambda share: share.most):
        most, ceiling = share.most.most or 0, "limit"
        if share.stays_in_quota:
            ceiling = "quota or overQuotaWeight"
        release = ""
        if overrun.more <= most:
            missing = overrun.used + overrun.more - most
            devices = f"{number_of(missing, 'device')} of {overrun.key}"
            holders = _holders(overrun.place, overrun.key, world, may_name)
            release = (
                f'{devices} that queue "{overrun.place}" uses {_has(missing)} to be'
                f" released{holders}; or "
            )
        yield _sentence(
            f'{release}raise the {ceiling} of queue "{overrun.place}" for {overrun.key} from'
            f" {share.most} to at least {overrun.used + overrun.more}."
        )


def _over_quota(case: Case) -> Iterator[str]:
    world = case.world
    assumed = world.assumptions.non_preemptible
    sums = (world.ledger.non_preemptible, assumed, case.counted_non_preemptible)
    added = non_preemptible_added(case)
    for overrun, share in _worst(case, added, sums, lambda share: share.quota):
        yield (
            f'Raise the quota of queue "{overrun.place}" for {overrun.key} from {share.quota} to'
            f" {overrun.used + overrun.more}, or end non-preemptible pods of it."
        )
    yield f"Or create the pod anew with the label {PREEMPTIBILITY_LABELS[0]}: preemptible."


def _worst(
    case: Case,
    additions: Iterable[Addition],
    sums: tuple[TotalsView, TotalsView, TotalsView],
    ceiling: Callable[[Share], Ceiling],
) -> Iterable[tuple[Overrun, Share]]:
    """Of each ceiling the last overrun, which counts all that the pod adds."""
    found = overruns(case, additions, sums, ceiling)
    return {(overrun.place, overrun.key): (overrun, share) for overrun, share in found}.values()


def _holders(place: QueueName, key: ResourceKey, world: WorldView, may_name: MayName) -> str:
    """What is charged there, in brackets; "" while it is only assumed of pods on their way."""
    found = []
    for queue in world.facts.tree.below(place):
        for uid in world.ledger.owned_by(queue):
            claim, entry = world.facts.claim(uid), world.ledger.claim(uid)
            if claim is not None and entry is not None and entry.cost[key]:
                found.append((claim.namespace, f"{claim}: {entry.cost[key]}"))
        for pod_uid in world.ledger.bound_of(queue):
            pod, own = world.facts.pod(pod_uid), world.ledger.pod(pod_uid)
            if pod is not None and own is not None and own.cost[key]:
                found.append((pod.namespace, f"{pod}: {own.cost[key]}"))
    return f" (held by {named(found, may_name)})" if found else ""


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _group(_: Case) -> Iterator[str]:
    yield "Its PodGroup goes as a whole: as many of its pods have to be there as its minMember."


def _borrow(_: Case) -> Iterator[str]:
    yield "Wait: it borrows again after that. Or raise its queue's quota."


def _held(_: Case) -> Iterator[str]:
    yield "Wait: the other pod is bound soon, or what is held for it is given up after a minute."


_REMEDIES: Mapping[Reason, Callable[[Case], Iterator[str]]] = {
    Reason.NOT_KNOWN_YET: _not_known,
    Reason.CLAIM_NOT_FOUND: _claim_not_found,
    Reason.GONE: _gone,
    Reason.POD_GROUP_INCOMPLETE: _group,
    Reason.CLAIM_INVALID: _invalid,
    Reason.NO_QUEUE: _no_queue,
    Reason.QUEUE_NOT_FOUND: _not_found,
    Reason.QUEUE_NOT_ALLOWED: _not_allowed,
    Reason.CLAIM_FULL: _full,
    Reason.TOO_MANY_SHARERS: _too_many,
    Reason.CLAIM_SHARING_DENIED: _denied,
    Reason.FOREIGN_NON_PREEMPTIBLE: _non_preemptible,
    Reason.OVER_LIMIT: _over_limit,
    Reason.NON_PREEMPTIBLE_OVER_QUOTA: _over_quota,
    Reason.BORROWING_BACKOFF: _borrow,
    Reason.DEVICE_HELD: _held,
}

"""Rules on limits and quotas of the charged queue and its ancestors."""

from __future__ import annotations

from collections.abc import Iterator

from kube.shapes.times import timestamp
from kube.words import number_of
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.ceilings import (
    Overrun,
    added_at,
    limit_overruns,
    non_preemptible_added,
    non_preemptible_overruns,
    quota_overruns,
    usage_added,
    worst,
)
from scheduler_plugin.judging.equivalence_classes import equivalence_class
from scheduler_plugin.judging.named_holders import MayName, named
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.measures import (
    amount_text,
    ceiling_text,
    is_class,
    is_measured,
)
from scheduler_plugin.objects.names import PREEMPTIBILITY_LABELS, QueueName, Reason, Share


class OverLimit(Rule):
    """Usage, assumptions and what the pod adds stay within the limit.

    For a queue with an overQuotaWeight of 0 the quota is the limit.
    """

    reason = Reason.OVER_LIMIT
    meaning = (
        "The pod adds a charge that exceeds a limit of the owner or of one of its ancestors, or the"
        " quota of a queue with `overQuotaWeight: 0`."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        for overrun, share in limit_overruns(case):
            passed = f"limit of {overrun.text(share.limit)}"
            if share.stays_in_quota:
                quota = overrun.text(share.quota)
                passed = f"quota of {quota}, beyond which it never goes (overQuotaWeight: 0)"
            yield f"{overrun} would pass its {passed}.{_counted(overrun, share)}"

    def why_satisfied(self, case: Case) -> str:
        return (
            "; ".join(_figures(case)) or "It adds nothing to any queue: what it uses is paid for."
        )

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for overrun, share in worst(limit_overruns(case)):
            ceiling = "quota or overQuotaWeight" if share.stays_in_quota else "limit"
            text = (
                f"{_release(overrun, share, case.world, may_name)}raise the {ceiling} of queue"
                f' "{overrun.place}" for {overrun.key} from {overrun.text(share.most)} to at least'
                f" {overrun.text(overrun.used + overrun.more)}."
            )
            yield text[:1].upper() + text[1:]


class NonPreemptibleOverQuota(Rule):
    """Non-preemptible use stays within quotas, even if devices are free."""

    reason = Reason.NON_PREEMPTIBLE_OVER_QUOTA
    meaning = (
        "The pod adds non-preemptible use that exceeds a quota of the owner or of one of its"
        " ancestors."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        for overrun, share in non_preemptible_overruns(case):
            quota = overrun.text(share.quota)
            counted = _counted(overrun, share)
            yield f"{overrun} would pass its quota of {quota} for non-preemptible pods.{counted}"

    def why_satisfied(self, case: Case) -> str:
        world = case.world
        said = []
        for place, key, more in added_at(case, non_preemptible_added(case)):
            share = world.facts.tree.share(place, key)
            if share is None and not is_class(key):
                continue
            used = world.ledger.non_preemptible.amount(place, key)
            said.append(
                f'queue "{place}" uses {amount_text(key, used)} {key} so, {amount_text(key, more)}'
                f" more, {_listed('quota', key, share.quota if share else None)}"
            )
        return "; ".join(said) or "It adds no non-preemptible use."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for overrun, share in worst(non_preemptible_overruns(case)):
            yield (
                f'Raise the quota of queue "{overrun.place}" for {overrun.key} from'
                f" {overrun.text(share.quota)} to {overrun.text(overrun.used + overrun.more)}, or"
                " end non-preemptible pods of it."
            )
        yield f"Or create the pod anew with the label {PREEMPTIBILITY_LABELS[0]}: preemptible."


class BorrowingBackoff(Rule):
    """Pods of an equivalence class that was just evicted do not borrow again at once."""

    reason = Reason.BORROWING_BACKOFF
    meaning = (
        "The queue would be over its quota with the pod, and a pod with the same requests was just"
        " evicted for another queue's quota or another pod's priority. Such pods may borrow again"
        " after 1 minute, after each further eviction twice as long, at most 60 minutes."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        world, kind = case.world, equivalence_class(case.pod, case.world.facts)
        if kind not in world.assumptions.backoffs:
            return
        for overrun, share in quota_overruns(case):
            if overrun.place == overrun.owner:
                until = timestamp(world.assumptions.backoffs.until(kind))
                quota = overrun.text(share.quota)
                yield (
                    f"{overrun} would pass its quota of {quota}, and a pod like it was evicted:"
                    f" such pods borrow again from {until} on."
                )

    def why_satisfied(self, case: Case) -> str:
        return "No pod like it was evicted lately, or it fits its quota."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield "Wait: it borrows again after that. Or raise its queue's quota."


def _counted(overrun: Overrun, share: Share) -> str:
    """What an entry counts, as a sentence after a blank; "" for a class."""
    if share.definition is None:
        return ""
    return f" Entry {overrun.key} counts {share.definition}."


def _figures(case: Case) -> Iterator[str]:
    world = case.world
    for place, key, more in added_at(case, usage_added(case)):
        share = world.facts.tree.share(place, key)
        if share is None and not is_class(key):
            continue
        used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
        used -= case.counted_usage.amount(place, key)
        said = _listed("limit", key, share.most if share else None)
        amounts = f"{amount_text(key, used)} {key}, {amount_text(key, more)} more"
        yield f'queue "{place}" uses {amounts}, {said}'


def _listed(what: str, key: ResourceKey, ceiling: Ceiling | None) -> str:
    return "which does not list it" if ceiling is None else f"{what} {ceiling_text(key, ceiling)}"


def _release(overrun: Overrun, share: Share, world: WorldView, may_name: MayName) -> str:
    """What must be released, as the begin of a sentence; "" if no release is enough."""
    most = share.most.most or 0
    if overrun.more > most:
        return ""
    missing = overrun.used + overrun.more - most
    return (
        f'{_of_devices(missing, overrun)} of {overrun.key} that queue "{overrun.place}" uses'
        f" {'has' if missing == 1 else 'have'} to be released"
        f"{_holders(overrun.place, overrun.key, world, may_name)}; or "
    )


def _of_devices(missing: int, overrun: Overrun) -> str:
    if is_measured(overrun.key):
        return overrun.text(missing)
    return number_of(missing, "device")


def _holders(place: QueueName, key: ResourceKey, world: WorldView, may_name: MayName) -> str:
    """The claims and pods that are charged there, in brackets; "" if all of it is assumed."""
    found = []
    for queue in world.facts.tree.below(place):
        for uid in world.ledger.owned_by(queue):
            claim, entry = world.facts.claim(uid), world.ledger.claim(uid)
            if claim is not None and entry is not None and entry.cost[key]:
                found.append((claim.namespace, f"{claim}: {amount_text(key, entry.cost[key])}"))
        for pod_uid in world.ledger.bound_of(queue):
            pod, own = world.facts.pod(pod_uid), world.ledger.pod(pod_uid)
            if pod is not None and own is not None and own.cost[key]:
                found.append((pod.namespace, f"{pod}: {amount_text(key, own.cost[key])}"))
    return f" (held by {named(found, may_name)})" if found else ""

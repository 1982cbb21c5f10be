"""Every rule of a verdict, whether it holds or not, with the figures that it looks at.

A verdict names the first rule that fails; whoever asks why is shown the others as well. Rules that
need the pod's queue are not looked at where that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.ceilings import Addition, non_preemptible_added, usage_added
from scheduler_plugin.judging.verdicts import RULES, Refused, missing_refusals, queue_refusals
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.viewing.named_holders import MayName, anyone
from scheduler_plugin.viewing.remedies import remedies

IN_ORDER = tuple(reason for reason in Reason if reason is not Reason.POD_GROUP_INCOMPLETE)
"""A group is more than one verdict; see `why`."""

_LEAVE_NOTHING = frozenset(
    {
        *(Reason.NOT_KNOWN_YET, Reason.CLAIM_NOT_FOUND, Reason.GONE),
        *(Reason.NO_QUEUE, Reason.QUEUE_NOT_FOUND),
    }
)
"""Refusals after which no other rule has anything to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One rule, by the reason that a refusal of it has.

    Attributes:
        holds: None where it was not looked at, since an earlier one leaves nothing to look at.
        remedies: What would have to change where it does not hold; any one of these does.
    """

    reason: str
    holds: bool | None
    sentence: str
    remedies: tuple[str, ...] = ()


def rule_rows(
    case: Case, claims: tuple[ClaimView, ...], may_name: MayName = anyone
) -> tuple[RuleRow, ...]:
    """All rules in the order in which they are asked. For `may_name` see `remedies`."""
    refused = _refusals(case, claims)
    ends = next((r for r in IN_ORDER if r in refused and r in _LEAVE_NOTHING), None)
    found = []
    for reason in IN_ORDER:
        if reason in refused:
            sentence, ways = refused[reason].sentence, remedies(reason, case, may_name)
            found.append(RuleRow(reason=reason, holds=False, sentence=sentence, remedies=ways))
        elif ends is not None and IN_ORDER.index(reason) > IN_ORDER.index(ends):
            sentence = f"Not looked at: {ends} comes first."
            found.append(RuleRow(reason=reason, holds=None, sentence=sentence))
        else:
            found.append(RuleRow(reason=reason, holds=True, sentence=_HOLDS[reason](case)))
    return tuple(found)


def _refusals(case: Case, claims: tuple[ClaimView, ...]) -> Mapping[Reason, Refused]:
    """The first refusal of each reason."""
    found: dict[Reason, Refused] = {}
    missing = missing_refusals(case.pod, claims, case.world.facts)
    for refused in chain(missing, queue_refusals(case)):
        found.setdefault(refused.reason, refused)
    for reason, rule in RULES:
        if found.keys() & _LEAVE_NOTHING:
            break
        for sentence in rule(case):
            found.setdefault(reason, Refused(reason, sentence))
    return found


def _known(case: Case) -> str:
    names = [str(use.claim) for use in case.claims]
    return f"All that it names is known: {', '.join(names) or 'no accounted claims'}."


def _has_queue(case: Case) -> str:
    return f'Its queue is "{case.queue}".'


def _exists(case: Case) -> str:
    above = case.world.facts.tree.path(case.queue)[1:]
    return f'Queue "{case.queue}" exists{", below " + " and ".join(above) if above else ""}.'


def _allowed(case: Case) -> str:
    return f'Namespace "{case.pod.namespace}" may use queue "{case.queue}".'


def _consumers(case: Case) -> str:
    most = case.world.facts.settings.max_consumers
    return _of_claims(
        case, lambda c: f"{c} has {len(c.reserved_for) + c.other_consumers} of {most} consumers"
    )


def _sharers(case: Case) -> str:
    catalog = case.world.facts.catalog

    def told(claim: ClaimView) -> str:
        limits = [catalog.max_pods(name) for name in claim.classes]
        least = min((most for most in limits if most is not None), default=None)
        return f"{claim} may be shared by {'any number of' if least is None else least} pods"

    return _of_claims(case, told)


def _of_claims(case: Case, told: Callable[[ClaimView], str]) -> str:
    return "; ".join(told(use.claim) for use in case.claims) + "." if case.claims else "No claims."


def _shared(case: Case) -> str:
    foreign = [use for use in case.claims if use.owner != case.queue]
    if not foreign:
        return "It uses no claim of another queue."
    said = (f'{use.claim} of queue "{use.owner}" is shared with it' for use in foreign)
    return "; ".join(said) + "."


def _preemptible(case: Case) -> str:
    kind = "non-preemptible" if case.pod.non_preemptible else "preemptible"
    foreign = any(use.owner != case.queue for use in case.claims)
    return f"It is {kind}{'' if foreign else ', and uses no claim of another queue'}."


def _limits(case: Case) -> str:
    return "; ".join(_figures(case)) or "It adds nothing to any queue: what it uses is paid for."


def _figures(case: Case) -> Iterator[str]:
    world = case.world
    for place, key, more in added_at(case, usage_added(case)):
        share = world.facts.tree.share(place, key)
        used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
        used -= case.counted_usage.amount(place, key)
        limit = share.most if share is not None else None
        said = f"limit {limit}" if limit is not None else "which does not list it"
        yield f'queue "{place}" uses {used} {key}, {more} more, {said}'


def _quotas(case: Case) -> str:
    world = case.world
    said = []
    for place, key, more in added_at(case, non_preemptible_added(case)):
        share = world.facts.tree.share(place, key)
        used = world.ledger.non_preemptible.amount(place, key)
        quota = f"quota {share.quota}" if share is not None else "which does not list it"
        said.append(f'queue "{place}" uses {used} {key} so, {more} more, {quota}')
    return "; ".join(said) or "It adds no non-preemptible use."


def added_at(
    case: Case, additions: Iterator[Addition]
) -> Iterator[tuple[QueueName, ResourceKey, int]]:
    """What would be added in which queue, those above who pays included."""
    found: dict[tuple[QueueName, ResourceKey], int] = {}
    for _, owner, adds in additions:
        for key, amount in adds:
            for place in case.world.facts.tree.path(owner):
                found[place, key] = found.get((place, key), 0) + amount
    for (place, key), amount in found.items():
        yield place, key, amount


_HOLDS: Mapping[Reason, Callable[[Case], str]] = {
    Reason.NOT_KNOWN_YET: _known,
    Reason.CLAIM_NOT_FOUND: lambda _: "Each claim that it names exists and is not being deleted.",
    Reason.GONE: lambda _: "What says its queue was not deleted.",
    Reason.CLAIM_INVALID: lambda _: "Its claims ask for whole numbers of slots.",
    Reason.NO_QUEUE: _has_queue,
    Reason.QUEUE_NOT_FOUND: _exists,
    Reason.QUEUE_NOT_ALLOWED: _allowed,
    Reason.CLAIM_FULL: _consumers,
    Reason.TOO_MANY_SHARERS: _sharers,
    Reason.CLAIM_SHARING_DENIED: _shared,
    Reason.FOREIGN_NON_PREEMPTIBLE: _preemptible,
    Reason.OVER_LIMIT: _limits,
    Reason.NON_PREEMPTIBLE_OVER_QUOTA: _quotas,
    Reason.BORROWING_BACKOFF: lambda _: "No pod like it was evicted lately, or it fits its quota.",
    Reason.DEVICE_HELD: lambda _: "Nothing that it may get was taken back for another pod.",
}

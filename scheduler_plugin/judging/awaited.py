"""What others may not have since it was taken back for a pod, and whether that is free by now."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.ceilings import usage_added
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import PodUid


def users_left(hold: Hold, facts: FactsView) -> set[PodUid]:
    """Who uses what was taken, and has not ended yet: until then nobody else can get it."""
    pods = [facts.pod(uid) for uid in hold.awaits_pods]
    for claim in map(facts.claim, hold.awaits):
        if claim is not None and claim.is_allocated:
            pods += facts.consumers(claim)
    return {pod.uid for pod in pods if pod is not None and pod.is_bound and not pod.ended}


def devices_held(case: Case) -> Iterator[str]:
    """Where nobody knows which device was taken back, others get none of its kind meanwhile.

    That is so of what an earlier version held. At Bind others have their devices already.
    """
    holds = case.world.assumptions.holds.of_devices()
    if not holds or case.at_bind or any(hold.pod == case.pod.uid for hold in holds):
        return
    asked = {key: what for what, _, adds in usage_added(case) for key, _ in adds}
    for hold in (each for each in holds if each.is_of_any):
        for key, _ in hold.usage:
            if key in asked:
                yield (
                    f"{asked[key]} has to wait: {key} was taken back for {hold.name}, and until"
                    " that has it nobody else is given any."
                )


def claims_given_up(case: Case) -> Iterator[str]:
    """Whoever joined a claim that its users leave for somebody would keep it from him."""
    for hold in case.world.assumptions.holds:
        for use in case.claims if hold.pod != case.pod.uid else ():
            is_of_kind = any(use.cost[key] for key, _ in hold.usage)
            if is_of_kind and _is_given_up(use.claim, case.pod.uid, case.world.facts):
                yield f"{use.claim} is given up for {hold.name}: nobody else is to use it now."


def _is_given_up(claim: ClaimView, joiner: PodUid, facts: FactsView) -> bool:
    """Whether all users of an allocated claim are on their way out, but for one that would join."""
    users = [facts.pod(uid) for uid in claim.reserved_for if uid != joiner]
    return bool(users) and all(pod is not None and (pod.ended or pod.deleting) for pod in users)

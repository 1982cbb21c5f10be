"""The rule on devices that were taken back for one pod: no other pod gets them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.ceilings import usage_added
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import PodUid, Reason


class DeviceHeld(Rule):
    """What was taken back for a pod is kept for it until it is bound."""

    reason = Reason.DEVICE_HELD
    meaning = (
        "On the nodes where the pod could go a device was taken back for another pod, and what is"
        " free beside it is not enough; or kube-scheduler gave it that device, and its Bind was"
        " refused. Or it would join a claim whose users all leave it for another pod."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        yield from _devices_held(case)
        yield from _claims_given_up(case)

    def passes(self, case: Case) -> str:
        return "Nothing that it may get was taken back for another pod."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield (
            "Wait: the other pod is bound soon, or what is held for it is given up after a minute."
        )


def _devices_held(case: Case) -> Iterator[str]:
    """Where it is not known which device was taken back, others get none of its kind meanwhile.

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
                    f"{asked[key]} has to wait: {key} was taken back for {hold.name}, and no other"
                    " pod gets any before that pod has it."
                )


def _claims_given_up(case: Case) -> Iterator[str]:
    """A pod that joined a claim that its users leave for another pod would keep it from that."""
    for hold in case.world.assumptions.holds:
        for use in case.claims if hold.pod != case.pod.uid else ():
            is_of_kind = any(use.cost[key] for key, _ in hold.usage)
            if is_of_kind and _is_given_up(use.claim, case.pod.uid, case.world.facts):
                yield f"{use.claim} is given up for {hold.name}: no other pod may use it now."


def _is_given_up(claim: ClaimView, joiner: PodUid, facts: FactsView) -> bool:
    """Whether all users of an allocated claim are terminating, but for one that would join."""
    users = [facts.pod(uid) for uid in claim.reserved_for if uid != joiner]
    return bool(users) and all(pod is not None and (pod.ended or pod.deleting) for pod in users)

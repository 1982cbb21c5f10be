"""The rule on devices that are held for a preemptor: no other pod gets them meanwhile."""

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
    """What was reclaimed for a pod is held for it until it is bound."""

    reason = Reason.DEVICE_HELD
    meaning = (
        "On the nodes that suit the pod, a device is held for another pod, and the free devices"
        " beside it are not enough; or kube-scheduler allocated that device to the pod, and its"
        " Bind was refused. Or the pod names a claim whose users are all evicted for another pod."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        yield from _devices_held(case)
        yield from _claims_given_up(case)

    def why_satisfied(self, case: Case) -> str:
        return "No device that it may get is held for another pod."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield ("Wait: the other pod is bound soon, or the hold for it ends after a minute.")


def _devices_held(case: Case) -> Iterator[str]:
    """While a held device is unknown, other pods get none of its class.

    Holds of earlier versions have unknown devices. At Bind the devices are allocated already.
    """
    holds = case.world.assumptions.holds.of_devices()
    if not holds or case.at_bind or any(hold.pod == case.pod.uid for hold in holds):
        return
    asked = {key: what for what, _, adds in usage_added(case) for key, _ in adds}
    for hold in (each for each in holds if each.is_of_any):
        for key, _ in hold.usage:
            if key in asked:
                yield (
                    f"{asked[key]} must wait: a device of {key} is held for {hold.name}, and no"
                    " other pod gets one before that pod is bound."
                )


def _claims_given_up(case: Case) -> Iterator[str]:
    """A pod must not join a claim whose users are all evicted for another pod."""
    for hold in case.world.assumptions.holds:
        for use in case.claims if hold.pod != case.pod.uid else ():
            is_of_kind = any(use.cost[key] for key, _ in hold.usage)
            if is_of_kind and _is_given_up(use.claim, case.pod.uid, case.world.facts):
                yield f"{use.claim} is reclaimed for {hold.name}: no other pod may use it now."


def _is_given_up(claim: ClaimView, joiner: PodUid, facts: FactsView) -> bool:
    """Whether all users of an allocated claim, except the joiner, are terminating or ended."""
    users = [facts.pod(uid) for uid in claim.reserved_for if uid != joiner]
    return bool(users) and all(pod is not None and (pod.ended or pod.deleting) for pod in users)

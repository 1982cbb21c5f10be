"""What a pod lacks that accounting admits, and that kube-scheduler finds no node for: a device.

kube-scheduler never asks about such a pod, since its own filter comes first. So the pod itself
tells: that it was tried, and that a claim of it is not allocated. Why it was refused only a text
says, which is not looked at: whether a device is lacking is seen from the devices.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.costs import is_accounted
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.cases import case_of
from scheduler_plugin.judging.gangs import is_of_gang
from scheduler_plugin.judging.verdicts import Admitted, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import Alternative, ClaimView, Request
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.wants import NoWant, hold_of_case, served_with_another


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWant:
    """A pod that waits for one device.

    Attributes:
        hold: What is to be held for it, but for the device.
        claim: The claim that is to get it.
    """

    pod: PodView
    hold: Hold
    claim: ClaimView
    alternative: Alternative
    key: ResourceKey


def may_want_device(pod: PodView) -> bool:
    """Whether a pod was tried, and waits with a claim: whoever else does is asked no more."""
    return pod.unschedulable and pod.may_be_bound and not pod.gates and bool(pod.claims)


def device_want_of(pod: PodView, world: World) -> DeviceWant | NoWant:
    """What device a pod lacks, if it lacks any; in doubt it lacks none."""
    claims = world.facts.claims_of(pod)
    verdict = judge(pod, claims, world)
    if not isinstance(verdict, Admitted):
        return NoWant(verdict.sentence)
    open_claims = [claim for claim in claims if not claim.is_allocated]
    if not any(is_accounted(claim, world.facts.catalog) for claim in open_claims):
        return NoWant(f"{pod} waits for no device that queues count.")
    if served := served_with_another([pod], world):
        return NoWant(served)
    hold = hold_of_case(case_of(pod, claims, world, at_bind=False))
    if doubt := _doubt(pod, open_claims, world):
        return NoWant(f"{pod} waits for a device, and {doubt}", hold.queue if hold else None)
    if hold is None:
        return NoWant(f"{pod} waits for a device that nobody, or more than one, would pay for.")
    (claim,) = open_claims
    (request,) = claim.requests
    (alternative,) = request.alternatives
    ((key, _),) = hold.usage
    return DeviceWant(pod=pod, hold=hold, claim=claim, alternative=alternative, key=key)


def _doubt(pod: PodView, open_claims: list[ClaimView], world: World) -> str:
    """Why it cannot be said which device would do, for the end of a sentence; "" where it can."""
    if is_of_gang(pod, world.facts):
        return f'goes with others of PodGroup "{pod.group}" only: for these no devices are taken.'
    if len(open_claims) > 1:
        return "more than one of its claims is not allocated: what serves both is not looked at."
    if pod.requests:
        return "asks for extended resources beside it: what serves both is not looked at."
    (claim,) = open_claims
    if len(claim.requests) != 1 or not _is_for_one(claim.requests[0]):
        return f"{claim} asks for more than one device of one class: that is not looked at."
    return ""


def _is_for_one(request: Request) -> bool:
    (first, *others) = request.alternatives
    is_exact = "/" not in first.name and not others
    return is_exact and first.count == 1 and not first.admin_access

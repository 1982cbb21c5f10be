"""What waiting pods would be charged, each alone or with its gang."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case, case_of
from scheduler_plugin.judging.ceilings import non_preemptible_added, usage_added
from scheduler_plugin.judging.gangs import (
    TRIAL_TIME,
    active_members,
    gang_candidates,
    is_of_gang,
    is_schedulable,
    waiting_candidate,
)
from scheduler_plugin.judging.rules.table import MAY_BORROW, NON_PREEMPTIBLE_FITS
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, expected_case, judge
from scheduler_plugin.objects.amounts import ResourceKey, summed
from scheduler_plugin.objects.names import PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView, why_not_ours


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The shortfall at a limit.

    Attributes:
        place: The queue that has the limit.
    """

    place: QueueName
    key: ResourceKey
    amount: int


@dataclass(frozen=True, slots=True)
class NoCandidates:
    """No candidates: nothing is evicted for a pod.

    Attributes:
        sentence: Why.
        unmet: The queue whose quota is unmet for this reason; None where it is met.
    """

    sentence: str
    unmet: QueueName | None = None


def hold_of_case(case: Case) -> Hold | None:
    """What a pod would be charged, as a hold; None where not exactly one queue is charged."""
    payers = {owner: None for _, owner, adds in usage_added(case) if adds}
    if len(payers) != 1:
        return None
    (payer,) = payers
    added = summed(adds for _, _, adds in usage_added(case))
    non_preemptible = summed(adds for _, _, adds in non_preemptible_added(case))
    return Hold(case.pod.uid, str(case.pod), payer, added, non_preemptible)


def gang_of(
    pod: PodView, world: WorldView, served: Collection[PodUid] = ()
) -> list[PodView] | NoCandidates:
    """The pod and its gang; nothing is evicted for a pod of another scheduler.

    `served` are pods that have what they need, in addition to those with holds.
    """
    if why := why_not_ours(pod, world.facts.settings):
        return NoCandidates(why)
    if not is_of_gang(pod, world.facts):
        return [pod]
    if pod.unschedulable and not pod.gates:
        return _tried_together(pod, world, served)
    pods = gang_candidates(pod, world, partial(waiting_candidate, world=world))
    return NoCandidates(pods.sentence) if isinstance(pods, Refused) else pods


def _tried_together(
    pod: PodView, world: WorldView, served: Collection[PodUid]
) -> list[PodView] | NoCandidates:
    """The pod, and as many pods of its PodGroup as still need devices.

    Assumed pods count among these: they were admitted, and found no device.
    """
    facts = world.facts
    group = facts.group(pod.namespace, pod.group)
    if group is None:
        return NoCandidates(
            f"{pod} waits for its PodGroup {pod.namespace}/{pod.group} to be created."
        )
    members, holds = list(active_members(pod, facts)), world.assumptions.holds
    have = {m.uid for m in members if m.is_bound or m.uid in served or m.uid in holds} - {pod.uid}
    least = (group.min_member or len(members)) - len(have)
    others = [m for m in members if m.uid not in {pod.uid, *have} and is_schedulable(m, world)]
    if len(others) + 1 < least:
        goes = f"PodGroup {pod.namespace}/{pod.group} is bound as a whole"
        return NoCandidates(
            f"{goes}: it needs {least} more pods, and {len(others) + 1} are waiting."
        )
    turns = sorted(others, key=lambda m: (not m.unschedulable, -m.priority, m.created, m.name))
    return [pod, *turns[: max(0, least - 1)]]


def tried_cases(
    pods: Sequence[PodView], world: WorldView
) -> list[tuple[Case, bool]] | NoCandidates:
    """The case of each pod with the pods before it bound, and whether it lacks room.

    A pod with alternatives counts with the most that those which fit may cost, so that its share
    has room for whichever it gets. The pods of a gang count with the least, as in their verdict.
    `NoCandidates` where one of them waits for another reason.
    """
    found, trial = [], world.trial()
    for pod in pods:
        claims = trial.facts.claims_of(pod)
        verdict = judge(pod, claims, trial, at_least=len(pods) > 1)
        if isinstance(verdict, Refused) and verdict.reason is not Reason.OVER_LIMIT:
            return NoCandidates(verdict.sentence)
        case = case_of(pod, claims, trial, at_bind=False)
        if len(pods) == 1:
            case = expected_case(pod, claims, trial)
        refusals = chain(NON_PREEMPTIBLE_FITS.refusals(case), MAY_BORROW.refusals(case))
        if why := next(refusals, ""):  # More room would not help.
            return NoCandidates(why)
        found.append((case, isinstance(verdict, Refused)))
        admitted = Admitted(queue=case.queue, claims=case.claims, requests=case.requests)
        assume(pod, admitted, trial, TRIAL_TIME)
    return found


def served_with_another(pods: Sequence[PodView], world: WorldView) -> str:
    """Why nothing is evicted for pods that share a claim with a pod that has a hold; "" else."""
    facts, uids = world.facts, {pod.uid for pod in pods}
    for pod in pods:
        for claim in (found for found in facts.claims_of(pod) if not found.is_allocated):
            for other in facts.pods_naming(claim):
                if other.uid not in uids and other.uid in world.assumptions.holds:
                    return f"{pod} waits for {claim}, which is about to be allocated for {other}."
    return ""


def holds_of(cases: Sequence[Case]) -> tuple[Hold, ...]:
    """The hold of each pod that is charged; empty where several queues would be charged."""
    if len({owner for case in cases for _, owner, adds in usage_added(case) if adds}) != 1:
        return ()
    return tuple(hold for case in cases if (hold := hold_of_case(case)) is not None)


def names_of(pods: Sequence[PodView]) -> str:
    """The name of the pod or gang, for a sentence."""
    if len(pods) == 1:
        return str(pods[0])
    return f"PodGroup {pods[0].namespace}/{pods[0].group} ({len(pods)} pods)"

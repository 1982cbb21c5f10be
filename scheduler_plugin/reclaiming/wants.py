"""What pods would be charged that wait: each alone, or with those that it goes together with."""

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
    AT_ONCE,
    could_come,
    is_of_gang,
    living_members,
    waits_with,
    who_goes,
)
from scheduler_plugin.judging.rules.table import MAY_BORROW, NON_PREEMPTIBLE_FITS
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, judge
from scheduler_plugin.objects.amounts import ResourceKey, summed
from scheduler_plugin.objects.names import PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView, why_not_ours


@dataclass(frozen=True, slots=True)
class Shortage:
    """How much is missing at a limit.

    Attributes:
        place: The queue whose limit it is.
    """

    place: QueueName
    key: ResourceKey
    amount: int


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nobody has to go: why, as a sentence.

    Attributes:
        unmet: The queue whose quota is not met by that; None where it has all of it.
    """

    sentence: str
    unmet: QueueName | None = None


def hold_of_case(case: Case) -> Hold | None:
    """What a pod would be charged; None where that is not one queue."""
    payers = {owner: None for _, owner, adds in usage_added(case) if adds}
    if len(payers) != 1:
        return None
    (payer,) = payers
    added = summed(adds for _, _, adds in usage_added(case))
    non_preemptible = summed(adds for _, _, adds in non_preemptible_added(case))
    return Hold(case.pod.uid, str(case.pod), payer, added, non_preemptible)


def together_with(
    pod: PodView, world: WorldView, served: Collection[PodUid] = ()
) -> list[PodView] | Nobody:
    """The pod, and those without which it does not go; nobody goes for another scheduler's.

    `served` are pods that have what they need already, beside those for which something is held.
    """
    if why := why_not_ours(pod, world.facts.settings):
        return Nobody(why)
    if not is_of_gang(pod, world.facts):
        return [pod]
    if pod.unschedulable and not pod.gates:
        return _tried_together(pod, world, served)
    pods = who_goes(pod, world, partial(waits_with, world=world))
    return Nobody(pods.sentence) if isinstance(pods, Refused) else pods


def _tried_together(
    pod: PodView, world: WorldView, served: Collection[PodUid]
) -> list[PodView] | Nobody:
    """The pod, and as many of its group as have to find devices with it: others have theirs.

    What is assumed of the others is not enough here: they were let go, and found nothing.
    """
    facts = world.facts
    group = facts.group(pod.namespace, pod.group)
    if group is None:
        return Nobody(f"{pod} goes with its PodGroup {pod.namespace}/{pod.group}, not there yet.")
    members, holds = list(living_members(pod, facts)), world.assumptions.holds
    have = {m.uid for m in members if m.is_bound or m.uid in served or m.uid in holds} - {pod.uid}
    least = (group.min_member or len(members)) - len(have)
    others = [m for m in members if m.uid not in {pod.uid, *have} and could_come(m, world)]
    if len(others) + 1 < least:
        goes = f"PodGroup {pod.namespace}/{pod.group} goes as a whole"
        return Nobody(f"{goes}: {least} pods more, and {len(others) + 1} wait for devices.")
    turns = sorted(others, key=lambda m: (not m.unschedulable, -m.priority, m.created, m.name))
    return [pod, *turns[: max(0, least - 1)]]


def tried_cases(pods: Sequence[PodView], world: WorldView) -> list[tuple[Case, bool]] | Nobody:
    """Each as if those before it were bound, and whether it lacks room.

    Nobody wants anything where one of them waits for something else.
    """
    found, trial = [], world.trial()
    for pod in pods:
        claims = trial.facts.claims_of(pod)
        verdict = judge(pod, claims, trial)
        if isinstance(verdict, Refused) and verdict.reason is not Reason.OVER_LIMIT:
            return Nobody(verdict.sentence)
        case = case_of(pod, claims, trial, at_bind=False)
        refusals = chain(NON_PREEMPTIBLE_FITS.refusals(case), MAY_BORROW.refusals(case))
        if why := next(refusals, ""):  # However much room there is.
            return Nobody(why)
        found.append((case, isinstance(verdict, Refused)))
        admitted = Admitted(queue=case.queue, claims=case.claims, requests=case.requests)
        assume(pod, admitted, trial, AT_ONCE)
    return found


def served_with_another(pods: Sequence[PodView], world: WorldView) -> str:
    """Why nothing is taken for pods whose claim another gets: they will share it; "" else."""
    facts, uids = world.facts, {pod.uid for pod in pods}
    for pod in pods:
        for claim in (found for found in facts.claims_of(pod) if not found.is_allocated):
            for other in facts.pods_naming(claim):
                if other.uid not in uids and other.uid in world.assumptions.holds:
                    return f"{pod} waits for {claim}, which is on its way to {other}."
    return ""


def holds_of(cases: Sequence[Case]) -> tuple[Hold, ...]:
    """What is to be held for each that pays; none where several queues would."""
    if len({owner for case in cases for _, owner, adds in usage_added(case) if adds}) != 1:
        return ()
    return tuple(hold for case in cases if (hold := hold_of_case(case)) is not None)


def names_of(pods: Sequence[PodView]) -> str:
    """Who waits, for a sentence."""
    if len(pods) == 1:
        return str(pods[0])
    return f"PodGroup {pods[0].namespace}/{pods[0].group} ({len(pods)} pods)"

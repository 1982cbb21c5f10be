"""Gangs: the pods of one PodGroup are admitted together or not at all.

A PodGroup says how many of its pods must run together (`minMember`; by default all that name it).
Bound and assumed pods count. While there are too few, the missing ones are judged one after the
other, each as if those before it were admitted: a claim that they share counts once, and their sum
is compared with each ceiling. If one is refused, all are. Once enough pods are bound or assumed,
further pods of the group are judged like pods without a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from kube.shapes.times import timestamp
from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.accounting.world_views import Trial, WorldView
from scheduler_plugin.judging.alternatives import have_alternatives
from scheduler_plugin.judging.missing_claims import missing_claims
from scheduler_plugin.judging.rules.pod_groups import as_a_whole
from scheduler_plugin.judging.rules.table import POD_GROUP_INCOMPLETE
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, judge
from scheduler_plugin.objects.names import QUOTA_GATE
from scheduler_plugin.objects.pods import PodView, why_not_ours

TRIAL_TIME = datetime.min.replace(tzinfo=UTC)
"""The time of decisions in a trial; they never expire, since the trial is discarded."""

AsCandidate = Callable[[PodView], PodView | None]
"""Returns a pod as it is to be judged; None if it cannot be admitted now."""


@dataclass(frozen=True, slots=True)
class GangAdmitted:
    """Pods that are all admitted; each verdict includes those before it."""

    admitted: tuple[tuple[PodView, Admitted], ...]


@dataclass(frozen=True, slots=True)
class GangRefused:
    """Pods that are refused together.

    Attributes:
        refused: The refusal of the group.
        pod: The first pod that is refused; None if the group has too few pods.
        alone: The refusal of that pod.
        pods: All pods that would have been admitted.
    """

    refused: Refused
    pod: PodView | None = None
    alone: Refused | None = None
    pods: tuple[PodView, ...] = ()


def is_of_gang(pod: PodView, facts: FactsView) -> bool:
    """Whether a pod is admitted only with others. An unknown PodGroup may require it."""
    if not pod.group or not facts.pod_queues.has_groups:
        return False
    group = facts.group(pod.namespace, pod.group)
    return group is None or group.min_member != 1


def counts_for_gang(pod: PodView, world: WorldView) -> bool:
    """Whether a pod counts for its group: it is bound or assumed, or asks for no devices."""
    return pod.is_bound or not pod.may_use_devices or world.assumptions.is_assumed(pod.uid)


def is_schedulable(pod: PodView, world: WorldView, gates: frozenset[str] = frozenset()) -> bool:
    """Whether a pod lacks only a verdict: its claims exist, and it has no gates but these."""
    is_ours = not why_not_ours(pod, world.facts.settings)
    is_free = is_ours and pod.may_be_bound and set(pod.gates) <= gates
    return is_free and not missing_claims(pod, world.facts)


def waiting_candidate(pod: PodView, world: WorldView) -> PodView | None:
    """For readers: each pending pod counts, at Moorage's gate or without one."""
    return pod if is_schedulable(pod, world, frozenset({QUOTA_GATE})) else None


def try_gang(pod: PodView, trial: Trial, as_candidate: AsCandidate) -> GangAdmitted | GangRefused:
    """The verdict on a pod and the pods that must be admitted with it.

    The admitted pods are assumed in the trial.
    """
    found = gang_candidates(pod, trial, as_candidate)
    return GangRefused(found) if isinstance(found, Refused) else _try_pods(found, trial)


def judge_waiting(
    pod: PodView, world: WorldView, as_candidate: AsCandidate | None = None
) -> GangAdmitted | Refused:
    """The verdict on a pending pod; a pod of a gang is admitted with its gang or not at all.

    Readers omit `as_candidate`, see `waiting_candidate`.
    """
    as_candidate = as_candidate or partial(waiting_candidate, world=world)
    if not is_of_gang(pod, world.facts):
        verdict = judge(pod, world.facts.claims_of(pod), world)
        return verdict if isinstance(verdict, Refused) else GangAdmitted(((pod, verdict),))
    found = try_gang(pod, world.trial(), as_candidate)
    return found.refused if isinstance(found, GangRefused) else found


def waiting_refusal(pod: PodView, world: WorldView) -> Refused | None:
    """Why a pending pod is refused, for readers; None if it is admitted."""
    found = judge_waiting(pod, world)
    return found if isinstance(found, Refused) else None


def _try_pods(pods: list[PodView], trial: Trial) -> GangAdmitted | GangRefused:
    """The verdict on these pods together.

    Each pod with alternatives is tried with the first that fits, and if some pod does not fit then,
    all with the least that their alternatives may cost: a gang that could fit is never refused.
    """
    if not any(have_alternatives(trial.facts.claims_of(pod)) for pod in pods):
        return _try_each(pods, trial)
    found = _try_each(pods, trial.trial())
    if isinstance(found, GangRefused):
        return _try_each(pods, trial, at_least=True)
    for pod, verdict in found.admitted:
        assume(pod, verdict, trial, TRIAL_TIME)
    return found


def _try_each(
    pods: list[PodView], trial: Trial, *, at_least: bool = False
) -> GangAdmitted | GangRefused:
    admitted = []
    for pod in pods:
        verdict = judge(pod, trial.facts.claims_of(pod), trial, at_least=at_least)
        if isinstance(verdict, Refused):
            return GangRefused(_of_group(verdict, pods), pod, verdict, tuple(pods))
        assume(pod, verdict, trial, TRIAL_TIME)
        admitted.append((pod, verdict))
    return GangAdmitted(tuple(admitted))


def _of_group(refused: Refused, pods: list[PodView]) -> Refused:
    if len(pods) == 1:
        return refused
    return Refused(refused.reason, f"{as_a_whole(pods[0], len(pods))}: {refused.sentence}")


def gang_candidates(
    pod: PodView, world: WorldView, as_candidate: AsCandidate
) -> list[PodView] | Refused:
    """The pod, and as many other members as must be admitted with it, in their order."""
    facts = world.facts
    group = facts.group(pod.namespace, pod.group)
    if group is None:
        verdict = judge(pod, facts.claims_of(pod), world)
        lone = _incomplete(POD_GROUP_INCOMPLETE.not_there(pod))
        return verdict if isinstance(verdict, Refused) else lone
    members = [p for p in active_members(pod, facts) if p.uid != pod.uid]
    least = group.min_member or len(members) + 1
    others = [p for p in members if counts_for_gang(p, world)]
    missing_pods = max(0, least - len(others) - 1)
    waiting = [p for p in members if not counts_for_gang(p, world)] if missing_pods else []
    coming = [
        found for p in sorted(waiting, key=_sort_key) if (found := as_candidate(p)) is not None
    ]
    if missing_pods and (refused := _backed_off(pod, world)):
        return refused
    if len(coming) < missing_pods:
        there = len(others) + len(coming) + 1
        return _incomplete(POD_GROUP_INCOMPLETE.too_few(pod, least, there))
    return [pod, *coming[:missing_pods]]


def _backed_off(pod: PodView, world: WorldView) -> Refused | None:
    """The refusal of an evicted group during its back-off; None if there is none."""
    key, backoffs = (pod.namespace, pod.group), world.assumptions.group_backoffs
    if key not in backoffs:
        return None
    return _incomplete(POD_GROUP_INCOMPLETE.given_up(pod, timestamp(backoffs.until(key))))


def _incomplete(sentence: str) -> Refused:
    return Refused(POD_GROUP_INCOMPLETE.reason, sentence)


def active_members(pod: PodView, facts: FactsView) -> Iterator[PodView]:
    """The active pods of a pod's group: neither ended nor terminating."""
    for uid in facts.pods_in_group((pod.namespace, pod.group)):
        member = facts.pod(uid)
        if member is not None and not member.ended and not member.deleting:
            yield member


def _sort_key(pod: PodView) -> tuple[int, str, str]:
    return (-pod.priority, pod.created, pod.name)

"""What a pod lacks that is guaranteed to its queue: room below a limit.

Of pods that go together or not at all it is what all of them lack, as one.

What is on its way out counts as free, and what is held for others as used: so each want is for what
is still missing, however many of them are met at one time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.awaited import users_left
from scheduler_plugin.judging.cases import Case, case_of
from scheduler_plugin.judging.ceilings import non_preemptible_added, overruns, usage_added
from scheduler_plugin.judging.gangs import AT_ONCE, is_of_gang, waits_with, who_goes
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, judge
from scheduler_plugin.objects.amounts import Charges, ResourceKey, summed
from scheduler_plugin.objects.names import PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.victims.effects import freed_by, kept_by, on_its_way
from scheduler_plugin.reclaiming.victims.victims import Away


@dataclass(frozen=True, slots=True)
class Shortage:
    """How much is missing at a limit.

    Attributes:
        place: The queue whose limit it is.
    """

    place: QueueName
    key: ResourceKey
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A pod that waits for room, or several that go together.

    Attributes:
        pods: Whose turn it is, and those that go with it.
        holds: What is to be held for each of those that pay.
        shortages: Where that does not fit, the nearest limit first; none where what is on its way
            out is enough.
    """

    pods: tuple[PodView, ...]
    holds: tuple[Hold, ...]
    shortages: tuple[Shortage, ...]

    @property
    def payer(self) -> QueueName:
        """The queue that would be charged for all that it adds."""
        return self.holds[0].queue

    @property
    def added(self) -> Charges:
        """What it would be charged."""
        return summed(hold.usage for hold in self.holds)

    def __str__(self) -> str:
        return names_of(self.pods)


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nobody has to go: why, as a sentence.

    Attributes:
        unmet: The queue whose quota is not met by that; None where it has all of it.
    """

    sentence: str
    unmet: QueueName | None = None


def hold_of(pod: PodView, world: WorldView) -> Hold | None:
    """What is to be held for a pod that something was taken for; None where nothing can be.

    Which device it is nobody knows any more: it may be any of those that are on their way out.
    """
    if why_not_ours(pod, world.facts.settings):
        return None
    found = hold_of_case(case_of(pod, world.facts.claims_of(pod), world, at_bind=False))
    if found is None or not pod.reclaiming_device:
        return found
    claims, pods = on_its_way([key for key, _ in found.usage], world)
    return replace(found, is_device=True, awaits=claims, awaits_pods=pods)


def hold_of_case(case: Case) -> Hold | None:
    """What a pod would be charged; None where that is not one queue."""
    payers = {owner: None for _, owner, adds in usage_added(case) if adds}
    if len(payers) != 1:
        return None
    (payer,) = payers
    added = summed(adds for _, _, adds in usage_added(case))
    non_preemptible = summed(adds for _, _, adds in non_preemptible_added(case))
    return Hold(case.pod.uid, str(case.pod), payer, added, non_preemptible)


class Outlook(Enum):
    """What becomes of what is held for a pod."""

    COMES = auto()
    IS_THERE = auto()
    IS_KEPT = auto()
    """By somebody who does not leave."""


def outlook(pod: PodView, world: WorldView, stuck: Collection[PodUid]) -> Outlook:
    """Whether what is held for a pod is there to be taken, or will be."""
    for hold in world.assumptions.holds.of_devices():
        if hold.pod == pod.uid:
            users = users_left(hold, world.facts)
            if not users:
                return Outlook.IS_THERE
            # After a restart it may be any of them.
            ends = not users <= {*stuck} if hold.is_read_back else users.isdisjoint(stuck)
            return Outlook.COMES if ends else Outlook.IS_KEPT
    want = want_of(pod, world, Away(stuck=stuck))
    if isinstance(want, Nobody):
        return Outlook.IS_THERE
    kept, leaving = kept_by(stuck, world), world.ledger.leaving
    comes = (leaving.amount(s.place, s.key) > kept.amount(s.place, s.key) for s in want.shortages)
    return Outlook.COMES if all(comes) else Outlook.IS_KEPT


def want_of(pod: PodView, world: WorldView, away: Away) -> Want | Nobody:
    """What a waiting pod lacks, and those that go with it.

    What those who are away use is on its way out, though not seen as such yet; but for those of
    them that do not end.
    """
    pods = together_with(pod, world)
    if isinstance(pods, Nobody):
        return pods
    cases = tried_cases(pods, world)
    if isinstance(cases, Nobody):
        return cases
    if not any(lacks_room for _, lacks_room in cases):
        return Nobody(f"{names_of(pods)} waits for no room.")
    if served := served_with_another(pods, world):
        return Nobody(served)
    evicted = freed_by(away.evicted, world, away.stuck)
    return _want([case for case, _ in cases], world, evicted, kept_by(away.stuck, world))


def together_with(pod: PodView, world: WorldView) -> list[PodView] | Nobody:
    """The pod, and those without which it does not go; nobody goes for another scheduler's."""
    if why := why_not_ours(pod, world.facts.settings):
        return Nobody(why)
    if not is_of_gang(pod, world.facts):
        return [pod]
    pods = who_goes(pod, world, partial(waits_with, world=world))
    return Nobody(pods.sentence) if isinstance(pods, Refused) else pods


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
        if why := _over_quota(case):
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


def _want(cases: Sequence[Case], world: WorldView, evicted: Totals, kept: Totals) -> Want | Nobody:
    pods, holds = tuple(case.pod for case in cases), holds_of(cases)
    if not holds:
        return Nobody(f"{names_of(pods)} would be charged to several queues.")
    shortages = tuple(_shortages(cases, holds, world, evicted, kept))
    return Want(pods=pods, holds=holds, shortages=shortages)


def names_of(pods: Sequence[PodView]) -> str:
    """Who waits, for a sentence."""
    if len(pods) == 1:
        return str(pods[0])
    return f"PodGroup {pods[0].namespace}/{pods[0].group} ({len(pods)} pods)"


def _over_quota(case: Case) -> str:
    """Why a non-preemptible pod would not be admitted however much room there is."""
    world = case.world
    assumed = world.assumptions.non_preemptible
    sums = (world.ledger.non_preemptible, assumed, case.counted_non_preemptible)
    for overrun, share in overruns(case, non_preemptible_added(case), sums, lambda s: s.quota):
        return f"{overrun} would pass its quota of {share.quota} for non-preemptible pods."
    return ""


def _shortages(
    cases: Sequence[Case], holds: Sequence[Hold], world: WorldView, evicted: Totals, kept: Totals
) -> Iterator[Shortage]:
    for key, amount in summed(hold.usage for hold in holds):
        for place, share in world.facts.tree.checks(holds[0].queue, key):
            if share.most.most is None:
                continue
            used = world.ledger.usage.amount(place, key)
            used += world.assumptions.usage.amount(place, key)
            used -= sum(case.counted_usage.amount(place, key) for case in cases)
            soon_free = world.ledger.leaving.amount(place, key) + evicted.amount(place, key)
            soon_free -= kept.amount(place, key)
            missing = used + amount - soon_free - share.most.most
            if missing > 0:
                yield Shortage(place, key, missing)

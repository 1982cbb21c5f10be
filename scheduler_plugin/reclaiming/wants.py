"""What a pod lacks that is guaranteed to its queue: room below a limit.

What is on its way out counts as free, and what is held for others as used: so each want is for what
is still missing, however many of them are met at one time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.totals import Totals
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.cases import Case, case_of
from scheduler_plugin.judging.ceilings import non_preemptible_added, overruns, usage_added
from scheduler_plugin.judging.verdicts import Admitted, Refused, judge
from scheduler_plugin.objects.amounts import Charges, ResourceKey, summed
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import QueueName, Reason
from scheduler_plugin.objects.pods import PodView


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
    """A pod that waits for room.

    Attributes:
        hold: What is to be held for it.
        shortages: Where that does not fit, the nearest limit first; none where what is on its way
            out is enough.
    """

    pod: PodView
    hold: Hold
    shortages: tuple[Shortage, ...]

    @property
    def payer(self) -> QueueName:
        """The queue that would be charged for all that it adds."""
        return self.hold.queue

    @property
    def added(self) -> Charges:
        """What it would be charged."""
        return self.hold.usage


@dataclass(frozen=True, slots=True)
class NoWant:
    """A pod for which nobody is asked to go: why, as a sentence.

    Attributes:
        unmet: The queue whose quota is not met by that; None for none.
    """

    sentence: str
    unmet: QueueName | None = None


def hold_of(pod: PodView, world: World) -> Hold | None:
    """What is to be held for a pod that something was taken for; None where nothing can be.

    Which device it is, and who has to leave it first, nobody knows any more.
    """
    found = hold_of_case(case_of(pod, world.facts.claims_of(pod), world, at_bind=False))
    return found and replace(found, is_device=pod.reclaiming_device)


def hold_of_case(case: Case) -> Hold | None:
    """What a pod would be charged; None where that is not one queue."""
    payers = {owner: None for _, owner, adds in usage_added(case) if adds}
    if len(payers) != 1:
        return None
    (payer,) = payers
    added = summed(adds for _, _, adds in usage_added(case))
    non_preemptible = summed(adds for _, _, adds in non_preemptible_added(case))
    return Hold(case.pod.uid, str(case.pod), payer, added, non_preemptible)


def want_of(pod: PodView, world: World, evicted: Totals) -> Want | NoWant:
    """What a waiting pod lacks.

    Args:
        pod: One that waits, at its gate or refused without one.
        world: What is known.
        evicted: What is on its way out and is not seen as such yet.
    """
    claims = world.facts.claims_of(pod)
    verdict = judge(pod, claims, world)
    if isinstance(verdict, Admitted):
        return NoWant(f"{pod} waits for no room.")
    if verdict.reason is not Reason.OVER_LIMIT:
        return NoWant(verdict.sentence)
    if served := served_with_another(pod, claims, world):
        return NoWant(served)
    return _want(case_of(pod, claims, world, at_bind=False), verdict, evicted)


def served_with_another(pod: PodView, claims: Collection[ClaimView], world: World) -> str:
    """Why nothing is taken for a pod whose claim another gets: it will share that; "" else."""
    holds = world.assumptions.holds
    for claim in (claim for claim in claims if not claim.is_allocated):
        for other in world.facts.pods_naming(claim):
            if other.uid != pod.uid and other.uid in holds:
                return f"{pod} waits for {claim}, which is on its way to {other}."
    return ""


def _want(case: Case, refused: Refused, evicted: Totals) -> Want | NoWant:
    hold = hold_of_case(case)
    if hold is None:
        return NoWant(f"{case.pod} would be charged to several queues: {refused.sentence}")
    if why := _over_quota(case):
        return NoWant(why)
    shortages = tuple(_shortages(case, hold.queue, hold.usage, evicted))
    return Want(pod=case.pod, hold=hold, shortages=shortages)


def _over_quota(case: Case) -> str:
    """Why a non-preemptible pod would not be admitted however much room there is."""
    world = case.world
    assumed = world.assumptions.non_preemptible
    sums = (world.ledger.non_preemptible, assumed, case.counted_non_preemptible)
    for overrun, share in overruns(case, non_preemptible_added(case), sums, lambda s: s.quota):
        return f"{overrun} would pass its quota of {share.quota} for non-preemptible pods."
    return ""


def _shortages(case: Case, payer: QueueName, added: Charges, evicted: Totals) -> Iterator[Shortage]:
    world = case.world
    for key, amount in added:
        for place, share in world.facts.tree.checks(payer, key):
            if share.most.most is None:
                continue
            used = used_without(case.counted_usage, place, key, world)
            soon_free = world.ledger.leaving.amount(place, key) + evicted.amount(place, key)
            missing = used + amount - soon_free - share.most.most
            if missing > 0:
                yield Shortage(place, key, missing)


def used_without(counted: Totals, place: QueueName, key: ResourceKey, world: World) -> int:
    """What is charged and assumed, apart from what counts for the pod itself."""
    used = world.ledger.usage.amount(place, key) + world.assumptions.usage.amount(place, key)
    return used - counted.amount(place, key)

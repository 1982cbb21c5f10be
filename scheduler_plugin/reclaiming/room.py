"""Who goes for a pod that waits for room which its queue is guaranteed.

    want ──► owners that may be asked, the farthest over their quota first
                 └─► what they hold, claims without foreign users first
                         └─► enough? whoever is not needed stays; would fewer do? ──► Take
                                                                       nobody ────► Nobody, and why

It is decided in small steps, so that kube-scheduler is answered in between; whoever carries it out
asks `is_due` again, since the world may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.victims.candidates import Candidates, given_up, needed_of
from scheduler_plugin.reclaiming.victims.effects import who_does_not_end
from scheduler_plugin.reclaiming.victims.subsets import MOST_CANDIDATES, Effort, subsets
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY, Asker, Away, Protection, Victim
from scheduler_plugin.reclaiming.wants import Nobody, Shortage, Want, want_of


def decide(
    pod: PodView,
    world: WorldView,
    now: datetime,
    away: Away = NOBODY_AWAY,
    first: Sequence[Victim] = (),
) -> Iterator[Decision | None]:
    """Decide about one waiting pod: None while there is more to look at, the decision last.

    Args:
        pod: One that waits, at its gate or refused without one.
        world: What is known.
        now: The time.
        away: Pods that are not to be asked.
        first: These go in any case.
    """
    want = want_of(pod, world, away)
    if isinstance(want, Nobody):
        yield want
    elif not want.shortages:
        yield OnItsWay()
    else:
        yield from _Search(want, away, world, now).run(first)


def is_due(take: Take, world: WorldView, now: datetime, away: Away = NOBODY_AWAY) -> bool:
    """Whether exactly these are still to go: the same users, for the same pod, by the same rules.

    Which of several that serve alike was chosen is not asked again.
    """
    pod = world.facts.pod(take.pod.uid)
    if pod is None or not pod.may_be_bound:
        return False
    want = want_of(pod, world, away)
    if isinstance(want, Nobody) or not want.shortages:
        return False
    return _Search(want, away, world, now).confirms(take.victims)


class _Search:
    """One look for a sufficient set."""

    def __init__(self, want: Want, away: Away, world: WorldView, now: datetime) -> None:
        asker, first = Asker(want.pods, want.payer, away), want.shortages[0]
        keys = dict.fromkeys(shortage.key for shortage in want.shortages)
        self._want = want
        self._all = Candidates(asker, want.added, keys, world, now)
        # Who is being deleted without an end.
        self._endless = partial(who_does_not_end, away.stuck, [first.key], world, first.place)
        self._guarding: set[str] = set()

    def run(self, first: Sequence[Victim]) -> Iterator[Decision | None]:
        """See `decide`. Whom it has to ask last, it mostly does not ask at all."""
        owners = yield from self._all.rank_all(self._owners())
        in_order = self._all.ranked(owners)
        for foreign_too in (False, True):
            self._all.take(first)
            while self._lacks(self._all.freed):
                before = len(self._all.taken)
                yield from self._take_next(owners, foreign_too)
                if len(self._all.taken) == before:
                    break
            found = yield from self._fewest(first, in_order, foreign_too=foreign_too)
            if found is not None:
                yield self._take(found)
                return
        yield self._nobody(bool(owners))

    def _fewest(
        self, first: Sequence[Victim], owners: list[QueueName], *, foreign_too: bool
    ) -> Generator[None, None, list[Victim] | None]:
        """Of those who were taken whoever is needed, or others where fewer or only they serve."""
        taken = self._all.taken
        if not self._lacks(self._all.freed):
            needed = self._needed(first)
            most = len(needed) - len(first) - 1
            return (yield from self._fewer(first, most, owners, foreign_too=foreign_too)) or needed
        if not self._guarding:
            return None
        # Who came first may have been what a queue can spare, and others would have been enough.
        found = yield from self._fewer(first, MOST_CANDIDATES, owners, foreign_too=foreign_too)
        self._all.take(taken)
        return found

    def confirms(self, victims: Collection[Victim]) -> bool:
        """Whether a set still serves, and all of it may go."""
        return self._all.are_as_they_were(victims, self._owners()) and self._serves(victims)

    def _owners(self) -> Iterator[QueueName]:
        highest = max(self._all.path.index(s.place) for s in self._want.shortages)
        return self._all.owners(highest)

    # What to take.

    def _take_next(self, owners: list[QueueName], foreign_too: bool) -> Iterator[None]:
        """Take whoever goes next, if anybody does: of the owner farthest over its share."""
        pods = self._all.gone_with(self._all.taken)
        if self._all.taken:
            self._all.rank_anew(owners)
            yield None
        for owner in self._all.ranked(owners):
            if not self._all.may_be_over(owner):
                continue
            yield from self._all.look_at(owner)
            for victim in self._all.held(owner):
                if victim.has_foreign > foreign_too or victim.pods <= pods:
                    continue
                going = self._all.beside(victim, self._all.taken)
                if going is not None and self._helps(going):
                    self._all.take([*self._all.taken, going])
                    return
            yield None

    def _helps(self, victim: Victim) -> bool:
        """Whether something that lacks is freed, and nobody is left with less than the quota."""
        freed = self._all.freed_with([*self._all.taken, victim])
        if not any(
            freed.amount(s.place, s.key) > self._all.freed.amount(s.place, s.key)
            for s in self._lacks(self._all.freed)
        ):
            return False
        if not self._all.leaves_quotas(freed):
            self._guarding.add(victim.what)
            return False
        return True

    def _lacks(self, freed: Totals) -> list[Shortage]:
        return [s for s in self._want.shortages if self._freed(freed, s) < s.amount]

    def _freed(self, freed: Totals, shortage: Shortage) -> int:
        place, key = shortage.place, shortage.key
        return freed.amount(place, key) - self._all.base.amount(place, key)

    def _needed(self, first: Sequence[Victim]) -> list[Victim]:
        """Those that are needed: whoever was chosen last goes last."""
        return needed_of(self._all.taken, len(first), self._serves)

    def _serves(self, victims: Collection[Victim]) -> bool:
        freed = self._all.freed_with(victims)
        return not self._lacks(freed) and self._all.leaves_quotas(freed)

    def _take(self, victims: list[Victim]) -> Take:
        want = self._want
        return Take(want.pods[0], want.holds, tuple(victims), self._sentence(victims))

    # Fewer.

    def _fewer(
        self, first: Sequence[Victim], most: int, owners: list[QueueName], *, foreign_too: bool
    ) -> Generator[None, None, list[Victim] | None]:
        """No more than `most` that are enough as well, the fewest and the first in order.

        None where there are none, and where it would take too long to find them.
        """
        if most < 1:
            return None
        there: list[Victim] = []
        self._all.take(first)
        for owner in owners:
            if len(there) < MOST_CANDIDATES and self._all.may_be_over(owner):
                yield from self._all.look_at(owner)
                there += [v for v in self._all.held(owner) if v.has_foreign <= foreign_too]
        there = sorted(there, key=lambda victim: victim.has_foreign)[:MOST_CANDIDATES]
        base, effort = self._all.freed_with(first), Effort()
        lacks = {s: s.amount - self._freed(base, s) for s in self._lacks(base)}
        gains: list[tuple[int, ...]] = []
        for victim in there:
            gains.append(self._gains(victim, first, base, lacks))
            yield
        for size in range(1, min(most, len(there)) + 1):
            yield
            for chosen in subsets(size, tuple(lacks.values()), gains, effort):
                yield
                found = self._exactly(first, [there[n] for n in chosen]) if chosen else None
                if found is not None:
                    return found
        return None

    def _gains(
        self, victim: Victim, first: Sequence[Victim], base: Totals, lacks: Mapping[Shortage, int]
    ) -> tuple[int, ...]:
        """The most that it frees; all where more may go or end with it than is its own."""
        if not self._all.is_by_itself(victim):
            return tuple(lacks.values())
        freed = self._all.freed_with([*first, victim])
        return tuple(self._freed(freed, s) - self._freed(base, s) for s in lacks)

    def _exactly(self, first: Sequence[Victim], chosen: Sequence[Victim]) -> list[Victim] | None:
        """All of these, if that serves."""
        victims = self._all.all_of(first, chosen)
        return victims if victims is not None and self._serves(victims) else None

    # What is said.

    def _sentence(self, victims: list[Victim]) -> str:
        want, shortage = self._want, self._want.shortages[0]
        return (
            f'{want} of queue "{want.payer}" {self._all.claim_to(victims)}, and queue'
            f' "{shortage.place}" has no room below its limit for {shortage.amount}'
            f" {shortage.key} more. So {given_up(victims)}."
        )

    def _nobody(self, has_owners: bool) -> Nobody:
        want, shortage = self._want, self._want.shortages[0]
        lacks = (
            f'{want} waits: queue "{shortage.place}" has no room below its limit for'
            f" {shortage.amount} {shortage.key} more"
        )
        if not self._all.stays_within(want.payer):
            return Nobody(f'{lacks}, and queue "{want.payer}" would be over its quota with it.')
        if not has_owners:
            why = f"no other queue below it is over its quota{self._endless()}"
            return Nobody(f"{lacks}, and {why}.", want.payer)
        self._all.protected[Protection.QUOTA] += len(self._guarding)
        found = self._freed(self._all.freed, shortage)
        enough = f", and no more than {found} can be made free" if found else ""
        why = f"nobody {self._all.who_stays()}{self._endless()}"
        return Nobody(f"{lacks}{enough}, and {why}.", want.payer)

"""Who goes for a pod that waits for room which its queue is guaranteed.

    want ──► owners that may be asked, the farthest over their quota first
                 └─► what they hold, claims without foreign users first
                         └─► enough? whoever is not needed stays ──► Take
                                                        nobody ───► Nobody, and why

It is decided in small steps, so that kube-scheduler is answered in between; whoever carries it out
asks `is_due` again, since the world may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from functools import partial

from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Decision, Nobody, OnItsWay, Take
from scheduler_plugin.reclaiming.victims.candidates import Candidates, given_up
from scheduler_plugin.reclaiming.victims.effects import freed_by, who_does_not_end
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY, Asker, Away, Protection, Victim
from scheduler_plugin.reclaiming.wants import NoWant, Shortage, Want, want_of


def decide(
    pod: PodView,
    world: World,
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
    want = want_of(pod, world, freed_by(away.evicted, world, away.stuck), away.stuck)
    if isinstance(want, NoWant):
        yield Nobody(want.sentence)
    elif not want.shortages:
        yield OnItsWay(pod)
    else:
        asker = Asker(want.pod, want.payer, away, want.others)
        yield from _search(want, asker, world, now).run(first)


def is_due(take: Take, world: World, now: datetime, away: Away = NOBODY_AWAY) -> bool:
    """Whether exactly these are still to go: the same users, for the same pod, by the same rules.

    Which of several that serve alike was chosen is not asked again.
    """
    pod = world.facts.pod(take.pod.uid)
    if pod is None or not pod.may_be_bound:
        return False
    want = want_of(pod, world, freed_by(away.evicted, world, away.stuck), away.stuck)
    if isinstance(want, NoWant) or not want.shortages:
        return False
    asker = Asker(want.pod, want.payer, away, want.others)
    return _search(want, asker, world, now).confirms(take.victims)


def _search(want: Want, asker: Asker, world: World, now: datetime) -> _Search:
    keys = dict.fromkeys(shortage.key for shortage in want.shortages)
    first = want.shortages[0]
    endless = partial(who_does_not_end, asker.away.stuck, [first.key], world, first.place)
    return _Search(want, Candidates(asker, want.added, keys, world, now), endless)


class _Search:
    """One look for a sufficient set."""

    def __init__(self, want: Want, candidates: Candidates, endless: Callable[[], str]) -> None:
        """`endless` says who is being deleted without an end."""
        self._want = want
        self._endless = endless
        self._all = candidates
        self._guarding: set[str] = set()

    def run(self, first: Sequence[Victim]) -> Iterator[Decision | None]:
        """See `decide`. Whom it has to ask last, it mostly does not ask at all."""
        owners = yield from self._all.rank_all(self._owners())
        for foreign_too in (False, True):
            self._all.take(first)
            while self._lacks(self._all.freed):
                before = len(self._all.taken)
                yield from self._take_next(owners, foreign_too)
                if len(self._all.taken) == before:
                    break
            if not self._lacks(self._all.freed):
                yield self._take(first)
                return
        yield self._nobody(bool(owners))

    def confirms(self, victims: Collection[Victim]) -> bool:
        """Whether a set still serves, and all of it may go."""
        owners = set(self._owners())
        if any(victim.owner not in owners for victim in victims):
            return False
        if not self._all.are_as_they_were(victims):
            return False
        freed = self._all.freed_with(victims)
        return not self._lacks(freed) and self._all.leaves_quotas(freed)

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
        base = self._all.base
        return [
            s
            for s in self._want.shortages
            if freed.amount(s.place, s.key) - base.amount(s.place, s.key) < s.amount
        ]

    def _take(self, first: Sequence[Victim]) -> Take:
        """Those that are needed: whoever was chosen first, and proved not to be, stays."""
        needed = list(self._all.taken)
        for victim in self._all.taken[len(first) :]:
            others = [other for other in needed if other is not victim]
            freed = self._all.freed_with(others)
            if not self._lacks(freed) and self._all.leaves_quotas(freed):
                needed = others
        want = self._want
        return Take(want.pod, want.holds, tuple(needed), self._sentence(needed))

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
        found = self._all.freed.amount(shortage.place, shortage.key)
        found -= self._all.base.amount(shortage.place, shortage.key)
        enough = f", and no more than {found} can be made free" if found else ""
        why = f"nobody {self._all.who_stays()}{self._endless()}"
        return Nobody(f"{lacks}{enough}, and {why}.", want.payer)

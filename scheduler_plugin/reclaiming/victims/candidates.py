"""Who may be asked to go: queues, the farthest over their shares first, and what they hold.

What is taken from them, and what for, others decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.reclaiming.victims.effects import (
    freed_by,
    left_to,
    over_share,
    shorn,
    surplus,
)
from scheduler_plugin.reclaiming.victims.victims import (
    Asker,
    Protection,
    Victim,
    held_by_claim,
    held_by_pod,
    in_order,
    protection,
    whole,
)

IN_ONE_STEP = 20
"""How many claims or queues are looked at before others have their turn."""

Rank: TypeAlias = tuple[bool, tuple[tuple[int, float, int], ...]]
"""Whether an owner is of another branch, and how far each queue of its path is over its share."""


class Candidates:
    """All that could go for one pod of a queue, by what is freed with those that were taken.

    Attributes:
        base: What is freed by those who were evicted before.
        freed: The same and what `taken` frees.
        taken: Who goes.
        protected: How many claims or pods stay, by why.
    """

    def __init__(
        self,
        asker: Asker,
        added: Charges,
        keys: Collection[ResourceKey],
        world: WorldView,
        now: datetime,
    ) -> None:
        """`added` is what the asker's queue would be charged, `keys` what of it is lacking."""
        self.asker = asker
        self.base = self.freed = freed_by(asker.away.evicted, world, asker.away.stuck)
        self.taken: list[Victim] = []
        self.protected: Counter[Protection] = Counter()
        self.path = world.facts.tree.path(asker.queue)
        self._added = added
        self._keys = keys
        self._key = next(iter(keys))
        self._world = world
        self._now = now
        self._tree = world.facts.tree
        self._held: dict[QueueName, list[Victim]] = {}
        self._ranks: dict[QueueName, Rank] = {}
        self._places_below: dict[QueueName, tuple[QueueName, ...]] = {}

    # Whom to ask.

    def owners(self, highest: int) -> Iterator[QueueName]:
        """The queues that something can be taken from: those that use what is lacking.

        Args:
            highest: Up to which queue of the path they are looked for; one more is all others.
        """
        own = self._world.ledger.usage.own
        for owner in self._places(highest):
            if any(own(owner, key) > 0 for key in self._keys) and self.may_be_over(owner):
                yield owner

    def _places(self, highest: int) -> Iterator[QueueName]:
        """The payer and what is below it, then branch by branch upwards, as far as quota goes."""
        yield from self._tree.below(self.asker.queue)
        for number in range(1, highest + 1):
            if not self.stays_within(self.path[number - 1]):
                return
            if number == len(self.path):
                yield from self._beside()
                return
            yield self.path[number]
            for child in self._tree.children(self.path[number]):
                if child not in self.path:
                    yield from self._tree.below(child)

    def _beside(self) -> Iterator[QueueName]:
        """What is below other roots, and whoever is charged without being a Queue."""
        for owner in self._world.ledger.usage.own_of(self._key):
            if self._tree.path(owner)[-1] != self.path[-1]:
                yield owner

    def stays_within(self, place: QueueName) -> bool:
        """Whether a queue stays within its quota with what the pod adds."""
        for key, amount in self._added:
            share = self._tree.share(place, key)
            if share is None and place != self.asker.queue:
                continue
            used = left_to(place, key, self.base, self._world) + self._assumed(place, key)
            if share is None or not share.quota.allows(used + amount):
                return False
        return True

    def _assumed(self, place: QueueName, key: ResourceKey) -> int:
        """What decisions in flight add, apart from those about the pod itself."""
        assumptions = self._world.assumptions
        counted = (assumptions.counted_for(pod.uid)[0] for pod in self.asker.pods)
        own = sum(totals.amount(place, key) for totals in counted)
        return assumptions.usage.amount(place, key) - own

    def may_be_over(self, owner: QueueName) -> bool:
        """Whether any amount can be taken from an owner at all: most queues are asked no more."""
        for place in self._below(owner):
            for key in self._keys:
                more = surplus(place, key, self.freed, self._world)
                if more is not None and more <= 0:
                    return False
        return True

    # In which order.

    def rank(self, owner: QueueName) -> None:
        """Note how far an owner and those above it are over their shares; the payer's go last."""
        places = reversed(self._below(owner))
        over = (over_share(place, self._key, self.freed, self._world) for place in places)
        is_other = self.asker.queue not in self._tree.path(owner)
        self._ranks[owner] = is_other, tuple(rank for rank in over if rank is not None)

    def rank_all(self, owners: Iterable[QueueName]) -> Generator[None, None, list[QueueName]]:
        """Rank each, in steps; returns them."""
        ranked: list[QueueName] = []
        for owner in owners:
            ranked.append(owner)
            self.rank(owner)
            if len(ranked) % IN_ONE_STEP == 0:
                yield
        return ranked

    def rank_anew(self, owners: Collection[QueueName]) -> None:
        """After something was taken; whoever is not concerned stays where it was."""
        touched = self.freed.by_queue()
        for owner in owners:
            if not touched.keys().isdisjoint(self._below(owner)):
                self.rank(owner)

    def ranked(self, owners: Collection[QueueName]) -> list[QueueName]:
        """The farthest over its share first."""
        return sorted(owners, key=self._ranks.__getitem__, reverse=True)

    def _below(self, owner: QueueName) -> tuple[QueueName, ...]:
        """The queues from an owner up to where its path meets the payer's."""
        found = self._places_below.get(owner)
        if found is None:
            path = self._tree.path(owner)
            found = self._places_below[owner] = tuple(p for p in path if p not in self.path)
        return found

    # What they hold.

    def look_at(self, owner: QueueName) -> Iterator[None]:
        """Find what an owner's users hold, and who of them may go; see `held` afterwards."""
        if owner in self._held:
            return
        ledger, found = self._world.ledger, []
        claims = (held_by_claim(uid, self._world) for uid in ledger.owned_by(owner))
        pods = (held_by_pod(uid, self._world) for uid in ledger.bound_of(owner))
        for number, held in enumerate(chain(claims, pods), start=1):
            victim = self._if_it_may_go(held, self.asker.away.evicted)
            if isinstance(victim, Protection):
                self.protected[victim] += 1
            else:
                found.append(victim)
            if number % IN_ONE_STEP == 0:
                yield None
        self._held[owner] = list(in_order(found))

    @property
    def looked_at(self) -> tuple[QueueName, ...]:
        """Of whom it is known what they hold."""
        return tuple(self._held)

    def held(self, owner: QueueName) -> list[Victim]:
        """What of an owner's may go, in that order."""
        return self._held[owner]

    def _if_it_may_go(
        self, victim: Victim | Protection, gone: Collection[PodUid]
    ) -> Victim | Protection:
        """It, and who goes with it when these are gone; else why it stays."""
        if not isinstance(victim, Protection):
            victim = whole(victim, gone, self.asker.away.evicted, self._world)
        if isinstance(victim, Protection):
            return victim
        return protection(victim, self.asker, self._world, self._now) or victim

    def beside(self, victim: Victim, others: Collection[Victim]) -> Victim | None:
        """It, and who goes with it beside others; None where somebody of them stays."""
        if not any(pod.group for pod in victim.users):
            return victim
        found = self._if_it_may_go(victim, self.gone_with(others))
        return None if isinstance(found, Protection) else found

    def all_of(self, first: Iterable[Victim], more: Iterable[Victim]) -> list[Victim] | None:
        """All of these after the first; None where not each of them may go and adds somebody."""
        victims = list(first)
        for victim in more:
            going = self.beside(victim, victims)
            if going is None or going.pods <= self.gone_with(victims):
                return None
            victims.append(going)
        return victims

    def is_by_itself(self, victim: Victim) -> bool:
        """Whether nobody goes with it, and no other claim ends with it, whoever else goes."""
        own = {claim.uid for claim in victim.claims}
        claims = self._world.facts.claims_consumed_by
        return not any(pod.group or own < own.union(claims(pod.uid)) for pod in victim.users)

    def are_as_they_were(self, victims: Collection[Victim], owners: Iterable[QueueName]) -> bool:
        """Whether exactly these users still hold all that of such owners, and may go."""
        gone, owners = self.gone_with(victims), set(owners)
        return all(victim.owner in owners for victim in victims) and all(
            self._is_as_it_was(victim, gone) for victim in victims
        )

    def _is_as_it_was(self, victim: Victim, gone: Collection[PodUid]) -> bool:
        if victim.claim is not None:
            now = held_by_claim(victim.claim.uid, self._world)
        else:
            now = held_by_pod(victim.users[0].uid, self._world)
        if isinstance(now, Protection) or not now.pods <= victim.pods:
            return False
        may_go = self._if_it_may_go(replace(victim, what=now.what), gone)
        same = all(self._world.facts.pod(pod.uid) == pod for pod in victim.users)
        return same and not isinstance(may_go, Protection) and may_go.pods == victim.pods

    # What is taken.

    def take(self, victims: Collection[Victim]) -> None:
        """Exactly these go."""
        self.taken = list(victims)
        self.freed = self.freed_with(victims)

    def gone_with(self, victims: Collection[Victim]) -> frozenset[PodUid]:
        """All pods that are gone then, those that were evicted before included."""
        return frozenset(self.asker.away.evicted).union(*(victim.pods for victim in victims))

    def freed_with(self, victims: Collection[Victim]) -> Totals:
        """What is freed once these are gone."""
        return freed_by(self.gone_with(victims), self._world, self.asker.away.stuck)

    def leaves_quotas(self, freed: Totals) -> bool:
        """Whether nobody is left with less than the quota."""
        return not any(shorn(freed, self.path, self._world))

    # What is said.

    def claim_to(self, victims: Collection[Victim]) -> str:
        """What gives the pod a right to what these hold."""
        if all(self.asker.queue in self._tree.path(victim.owner) for victim in victims):
            return f"has priority {self.asker.priority}"
        share = self._tree.share(self.asker.queue, self._key)
        quota = share.quota if share is not None else 0
        used = left_to(self.asker.queue, self._key, self.base, self._world)
        return f"is within its quota (it uses {used} of {quota} {self._key})"

    def who_stays(self) -> str:
        """Why all others stay."""
        counts = [(count, why) for why, count in self.protected.most_common() if count]
        if not counts:
            return "else has anything beyond the quota of a queue"
        return "else can go: " + "; ".join(f"{count} claims or pods {why}" for count, why in counts)


def needed_of(
    victims: Sequence[Victim], first: int, serves: Callable[[list[Victim]], bool]
) -> list[Victim]:
    """Those that are needed after so many that go anyway: whoever was chosen last goes last."""
    needed = list(victims)
    for victim in reversed(victims[first:]):
        others = [other for other in needed if other is not victim]
        if serves(others):
            needed = others
    return needed


def given_up(victims: Collection[Victim]) -> str:
    """Who gives up what, for the end of a sentence."""
    what = ", ".join(f'{v.what} of queue "{v.owner}" (priority {v.priority})' for v in victims)
    pods = len(frozenset().union(*(victim.pods for victim in victims)))
    return f"{what} is given up by all who use it ({pods} pod{'s' if pods != 1 else ''})"

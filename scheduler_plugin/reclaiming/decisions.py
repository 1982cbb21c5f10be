"""Who goes for a pod that waits for room which its queue is guaranteed.

    want ──► owners that may be asked, the farthest over their quota first
                 └─► what they hold, claims without foreign users first
                         └─► enough? whoever is not needed stays ──► Take
                                                        nobody ───► Nobody, and why

It is decided in small steps, so that kube-scheduler is answered in between; whoever carries it out
asks `is_due` again, since the world may have changed meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeAlias

from scheduler_plugin.accounting.totals import Totals
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.effects import freed_by, left_to, over_share, shorn, surplus
from scheduler_plugin.reclaiming.victims import (
    Asker,
    Protection,
    Victim,
    held_by_claim,
    held_by_pod,
    in_order,
    protection,
)
from scheduler_plugin.reclaiming.wants import NoWant, Shortage, Want, want_of

IN_ONE_STEP = 20
"""How many claims or queues are looked at before others have their turn."""


@dataclass(frozen=True, slots=True)
class Take:
    """These are to go, all of them, and the room is the pod's.

    Attributes:
        sentence: Who, for whom, and why these.
    """

    want: Want
    victims: tuple[Victim, ...]
    sentence: str

    @property
    def pods(self) -> tuple[PodView, ...]:
        """Who is to be evicted, each once; those on their way out are left out."""
        users = chain.from_iterable(victim.users for victim in self.victims)
        return tuple({pod.uid: pod for pod in users if not pod.deleting}.values())


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """What the pod lacks is about to be free."""

    want: Want


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nobody has to go.

    Attributes:
        unmet: The queue whose quota is not met by that; None where it has all of it.
    """

    sentence: str
    unmet: QueueName | None = None


Rank: TypeAlias = tuple[bool, tuple[tuple[int, float], ...]]
"""Whether an owner is of another branch, and how far each queue of its path is over its share."""

Decision: TypeAlias = Take | OnItsWay | Nobody


def decide(
    pod: PodView,
    world: World,
    now: datetime,
    evicted: Collection[PodUid] = frozenset(),
    held_back: Collection[PodUid] = frozenset(),
) -> Iterator[Decision | None]:
    """Decide about one waiting pod: None while there is more to look at, the decision last.

    Args:
        pod: One that waits, at its gate or refused without one.
        world: What is known.
        now: The time.
        evicted: Pods that were evicted and are not seen to go yet.
        held_back: Pods that may not be evicted now.
    """
    want = want_of(pod, world, freed_by(evicted, world))
    if isinstance(want, NoWant):
        yield Nobody(want.sentence)
    elif not want.shortages:
        yield OnItsWay(want)
    else:
        search = _Search(want, Asker(pod, want.payer, evicted, held_back), world, now)
        yield from search.run()


def is_due(take: Take, world: World, now: datetime, evicted: Collection[PodUid]) -> bool:
    """Whether exactly these are still to go: the same users, for the same pod, by the same rules.

    Which of several that serve alike was chosen is not asked again.
    """
    pod = world.facts.pod(take.want.pod.uid)
    if pod is None or not pod.may_be_bound:
        return False
    want = want_of(pod, world, freed_by(evicted, world))
    if isinstance(want, NoWant) or not want.shortages:
        return False
    search = _Search(want, Asker(pod, want.payer, evicted), world, now)
    return search.confirms(take.victims)


class _Search:
    """One look for a sufficient set."""

    def __init__(self, want: Want, asker: Asker, world: World, now: datetime) -> None:
        self._want = want
        self._asker = asker
        self._world = world
        self._now = now
        self._tree = world.facts.tree
        self._path = self._tree.path(want.payer)
        self._base = freed_by(asker.evicted, world)
        self._held: dict[QueueName, list[Victim]] = {}
        self._ranks: dict[QueueName, Rank] = {}
        self._places_below: dict[QueueName, tuple[QueueName, ...]] = {}
        self._protected: Counter[Protection] = Counter()
        self._guarding: set[str] = set()
        self._taken: list[Victim] = []
        self._freed = self._base

    def run(self) -> Iterator[Decision | None]:
        """See `decide`. Whom it has to ask last, it mostly does not ask at all."""
        owners: list[QueueName] = []
        for owner in self._owners():
            owners.append(owner)
            self._ranks[owner] = self._overuse(owner)
            if len(owners) % IN_ONE_STEP == 0:
                yield None
        for foreign_too in (False, True):
            self._taken, self._freed = [], self._base
            while self._lacks(self._freed):
                before = len(self._taken)
                yield from self._take_next(owners, foreign_too)
                if len(self._taken) == before:
                    break
            if not self._lacks(self._freed):
                yield self._take()
                return
        yield self._nobody(bool(owners))

    def confirms(self, victims: Collection[Victim]) -> bool:
        """Whether a set still serves, and all of it may go."""
        owners = set(self._owners())
        if not all(v.owner in owners and self._is_as_it_was(v) for v in victims):
            return False
        freed = self._freed_with(victims)
        return not self._lacks(freed) and not any(shorn(freed, self._path, self._world))

    def _is_as_it_was(self, victim: Victim) -> bool:
        if victim.claim is not None:
            now = held_by_claim(victim.claim.uid, self._world)
        else:
            now = held_by_pod(victim.users[0].uid, self._world)
        return now == victim and self._protection(victim) is None

    # Whom to ask.

    def _owners(self) -> Iterator[QueueName]:
        """The queues that something can be taken from: those that use what is lacking."""
        keys = {shortage.key for shortage in self._want.shortages}
        for owner in self._places():
            own = self._world.ledger.usage.own
            if any(own(owner, key) > 0 for key in keys) and self._may_be_over(owner, keys):
                yield owner

    def _places(self) -> Iterator[QueueName]:
        """The payer and what is below it, then branch by branch upwards, as far as quota goes."""
        highest = max(self._path.index(s.place) for s in self._want.shortages)
        yield from self._tree.below(self._want.payer)
        for number in range(1, highest + 1):
            if not self._stays_within(self._path[number - 1]):
                return
            yield self._path[number]
            for child in self._tree.children(self._path[number]):
                if child not in self._path:
                    yield from self._tree.below(child)

    def _stays_within(self, place: QueueName) -> bool:
        """Whether a queue stays within its quota with what the pod adds."""
        for key, amount in self._want.added:
            share = self._tree.share(place, key)
            if share is None and place != self._want.payer:
                continue
            used = left_to(place, key, self._base, self._world) + self._assumed(place, key)
            if share is None or not share.quota.allows(used + amount):
                return False
        return True

    def _assumed(self, place: QueueName, key: ResourceKey) -> int:
        """What decisions in flight add, apart from those about the pod itself."""
        assumptions = self._world.assumptions
        counted, _ = assumptions.counted_for(self._asker.pod.uid)
        return assumptions.usage.amount(place, key) - counted.amount(place, key)

    def _may_be_over(self, owner: QueueName, keys: Collection[ResourceKey]) -> bool:
        """Whether any amount can be taken from an owner at all: most queues are asked no more."""
        for place in self._below(owner):
            for key in keys:
                more = surplus(place, key, self._freed, self._world)
                if more is not None and more <= 0:
                    return False
        return True

    def _look_at(self, owner: QueueName) -> Iterator[None]:
        """Find what an owner's users hold, and who of them may go."""
        ledger, found = self._world.ledger, []
        claims = (held_by_claim(uid, self._world) for uid in ledger.owned_by(owner))
        pods = (held_by_pod(uid, self._world) for uid in ledger.bound_of(owner))
        for number, victim in enumerate(chain(claims, pods), start=1):
            if isinstance(victim, Protection):
                self._protected[victim] += 1
            elif (why := self._protection(victim)) is not None:
                self._protected[why] += 1
            else:
                found.append(victim)
            if number % IN_ONE_STEP == 0:
                yield None
        self._held[owner] = list(in_order(found))

    def _protection(self, victim: Victim) -> Protection | None:
        return protection(victim, self._asker, self._world, self._now)

    # What to take.

    def _take_next(self, owners: list[QueueName], foreign_too: bool) -> Iterator[None]:
        """Take whoever goes next, if anybody does: of the owner farthest over its share."""
        pods = frozenset().union(*(victim.pods for victim in self._taken))
        keys = {shortage.key for shortage in self._want.shortages}
        if self._taken:
            yield from self._rank_anew(owners)
        for owner in sorted(owners, key=self._ranks.__getitem__, reverse=True):
            if not self._may_be_over(owner, keys):
                continue
            if owner not in self._held:
                yield from self._look_at(owner)
            for victim in self._held[owner]:
                if victim.has_foreign > foreign_too or victim.pods <= pods:
                    continue
                if self._helps(victim):
                    self._taken.append(victim)
                    self._freed = self._freed_with(self._taken)
                    return
            yield None

    def _rank_anew(self, owners: list[QueueName]) -> Iterator[None]:
        """After something was taken; whoever is not concerned stays where it was."""
        touched = self._freed.by_queue()
        for owner in owners:
            if not touched.keys().isdisjoint(self._below(owner)):
                self._ranks[owner] = self._overuse(owner)
        yield None

    def _below(self, owner: QueueName) -> tuple[QueueName, ...]:
        """The queues from an owner up to where its path meets the payer's."""
        found = self._places_below.get(owner)
        if found is None:
            path = self._tree.path(owner)
            found = self._places_below[owner] = tuple(p for p in path if p not in self._path)
        return found

    def _overuse(self, owner: QueueName) -> Rank:
        """How far an owner and those above it are over their shares; the payer's own go last."""
        key = self._want.shortages[0].key
        places = reversed(self._below(owner))
        over = (over_share(place, key, self._freed, self._world) for place in places)
        is_other = self._want.payer not in self._tree.path(owner)
        return is_other, tuple(rank for rank in over if rank is not None)

    def _helps(self, victim: Victim) -> bool:
        """Whether something that lacks is freed, and nobody is left with less than the quota."""
        freed = self._freed_with([*self._taken, victim])
        if not any(
            freed.amount(s.place, s.key) > self._freed.amount(s.place, s.key)
            for s in self._lacks(self._freed)
        ):
            return False
        if any(shorn(freed, self._path, self._world)):
            self._guarding.add(victim.what)
            return False
        return True

    def _freed_with(self, victims: Collection[Victim]) -> Totals:
        pods = set(self._asker.evicted).union(*(victim.pods for victim in victims))
        return freed_by(pods, self._world)

    def _lacks(self, freed: Totals) -> list[Shortage]:
        return [
            s
            for s in self._want.shortages
            if freed.amount(s.place, s.key) - self._base.amount(s.place, s.key) < s.amount
        ]

    def _take(self) -> Take:
        """Those that are needed: whoever was chosen first, and proved not to be, stays."""
        needed = list(self._taken)
        for victim in self._taken:
            others = [other for other in needed if other is not victim]
            freed = self._freed_with(others)
            if not self._lacks(freed) and not any(shorn(freed, self._path, self._world)):
                needed = others
        return Take(self._want, tuple(needed), self._sentence(needed))

    # What is said.

    def _sentence(self, victims: list[Victim]) -> str:
        want, shortage = self._want, self._want.shortages[0]
        what = ", ".join(
            f'{victim.what} of queue "{victim.owner}" ({_priority(victim)})' for victim in victims
        )
        pods = len(frozenset().union(*(victim.pods for victim in victims)))
        return (
            f'{want.pod} of queue "{want.payer}" {self._claim_to(victims)}, and queue'
            f' "{shortage.place}" has no room below its limit for {shortage.amount}'
            f" {shortage.key} more. So {what} is given up by all who use it ({_count(pods)})."
        )

    def _claim_to(self, victims: list[Victim]) -> str:
        key = self._want.shortages[0].key
        if all(self._want.payer in self._tree.path(victim.owner) for victim in victims):
            return f"has priority {self._want.pod.priority}"
        share = self._tree.share(self._want.payer, key)
        quota = share.quota if share is not None else 0
        used = left_to(self._want.payer, key, self._base, self._world)
        return f"is within its quota (it uses {used} of {quota} {key})"

    def _nobody(self, has_owners: bool) -> Nobody:
        want, shortage = self._want, self._want.shortages[0]
        lacks = (
            f'{want.pod} waits: queue "{shortage.place}" has no room below its limit for'
            f" {shortage.amount} {shortage.key} more"
        )
        if not self._stays_within(want.payer):
            return Nobody(f'{lacks}, and queue "{want.payer}" would be over its quota with it.')
        if not has_owners:
            return Nobody(f"{lacks}, and no other queue below it is over its quota.", want.payer)
        self._protected[Protection.QUOTA] += len(self._guarding)
        found = self._freed.amount(shortage.place, shortage.key)
        found -= self._base.amount(shortage.place, shortage.key)
        enough = f", and no more than {found} can be made free" if found else ""
        return Nobody(f"{lacks}{enough}, and nobody {self._who_stays()}.", want.payer)

    def _who_stays(self) -> str:
        counts = [(count, why) for why, count in self._protected.most_common() if count]
        if not counts:
            return "else has anything beyond the quota of a queue"
        return "else can go: " + "; ".join(f"{count} claims or pods {why}" for count, why in counts)


def _priority(victim: Victim) -> str:
    return f"priority {victim.priority}"


def _count(pods: int) -> str:
    return f"{pods} pods" if pods != 1 else "1 pod"

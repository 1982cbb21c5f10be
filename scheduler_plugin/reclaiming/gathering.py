"""Who leaves a pod a place: one if that is enough, else the fewest who are found to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.reclaiming.device_wants import Seeker
from scheduler_plugin.reclaiming.free_places import TOO_MANY, FreePlaces
from scheduler_plugin.reclaiming.places.places import Place
from scheduler_plugin.reclaiming.victims.candidates import IN_ONE_STEP, needed_of
from scheduler_plugin.reclaiming.victims.subsets import MOST_CANDIDATES, Effort, subsets
from scheduler_plugin.reclaiming.victims.victims import Victim

MOST_ORDERS = 8
"""With how many that go first it is tried to gather enough on one node."""

Found: TypeAlias = tuple[Place, list[Victim]]
"""A place, and who goes for it; those who went before it are among them."""


@dataclass(frozen=True, slots=True)
class _Errand:
    """For whom somebody goes.

    Attributes:
        others: The places of those that go with the pod.
        places: The same, and what is on its way to other pods.
        before: Who goes anyway.
        hopeless: Whether a node would not do even if all went whom anybody could ask.
    """

    seeker: Seeker
    others: Sequence[Place]
    places: Sequence[Place]
    before: Sequence[Victim]
    hopeless: dict[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class _OnNode:
    """Who leaves something on a node, in order, by their numbers among all.

    Attributes:
        needs: What is lacking there.
        gains: By victim, the most that it brings of that.
    """

    victims: dict[int, Victim] = field(default_factory=dict)
    needs: tuple[float, ...] = ()
    gains: list[tuple[float, ...]] = field(default_factory=list)


class Gathering(FreePlaces):
    """Who leaves a pod a place."""

    def gathered(
        self,
        seeker: Seeker,
        owners: list[QueueName],
        places: Sequence[Place],
        before: Sequence[Victim],
    ) -> Generator[None, None, Found | None]:
        """Who goes so that a pod has a place beside others, with those who went before.

        Without foreign users if that serves; then one if one is enough, and else the fewest who
        are found to be; of as many the first in order.
        """
        errand = _Errand(seeker, places, (*self._held(seeker), *places), before)
        for foreign_too in (False, True):
            found = yield from self._first(errand, owners, foreign_too=foreign_too, alone=True)
            if found is None:
                found = yield from self._several(errand, owners, foreign_too=foreign_too)
            if found is not None:
                return found
        return None

    def _several(
        self, errand: _Errand, owners: list[QueueName], *, foreign_too: bool
    ) -> Generator[None, None, Found | None]:
        """The fewest who are found to be enough together."""
        found = yield from self._first(errand, owners, foreign_too=foreign_too, alone=False)
        if found is None and not self._guarding:
            return None
        # Who came first may have been what a queue can spare, and others would have been enough.
        most = MOST_CANDIDATES if found is None else len(found[1]) - len(errand.before) - 1
        return (yield from self._fewer(errand, most, foreign_too=foreign_too)) or found

    def _first(
        self, errand: _Errand, owners: list[QueueName], *, foreign_too: bool, alone: bool
    ) -> Generator[None, None, Found | None]:
        """The first in order who leave a place, each alone or with others after it."""
        tries: Counter[str] = Counter()
        for owner in filter(self._all.may_be_over, self._all.ranked(owners)):
            yield from self._all.look_at(owner)
            for first in self._of_kind(owner, foreign_too=foreign_too, alone=alone):
                for node in self._nodes_left_by(errand.seeker, first):
                    tries[node] += not alone
                    if self._is_hopeless(errand, node) or tries[node] > MOST_ORDERS:
                        continue
                    others = () if alone else self._others(errand.seeker, node, first)
                    found = self._enough(errand, node, (first, *others))
                    if found is not None:
                        return found
                yield
        return None

    def _is_hopeless(self, errand: _Errand, node: str) -> bool:
        if node not in errand.hopeless:
            errand.hopeless[node] = self._would_never_do(errand, node)
        return errand.hopeless[node]

    def _would_never_do(self, errand: _Errand, node: str) -> bool:
        """Whether a node would not do even if all went whom anybody could ask."""
        known = self._known
        if not node or known.unread((node,)):
            return False
        room = known.nodes.get(node)
        place: Place | str = TOO_MANY
        if node in known.nodes:
            there = (self.world.facts.pod(uid) for uid in (room.pods if room is not None else ()))
            gone = {pod.uid for pod in there if pod is not None and not pod.non_preemptible}
            place = self._places.fit(errand.seeker, node, gone, errand.others)
        if isinstance(place, str) and place:
            self._unfit[node] = place
        return isinstance(place, str)

    def _of_kind(self, owner: QueueName, *, foreign_too: bool, alone: bool) -> list[Victim]:
        """What an owner's users hold that counts as what is wanted, and was not tried alone."""
        return [
            victim
            for victim in self._all.held(owner)
            if (victim.has_foreign == foreign_too or (foreign_too and not alone))
            and self.counts(victim)
        ]

    def counts(self, victim: Victim) -> bool:
        """Whether it has anything that counts as what is wanted."""
        ledger = self.world.ledger
        costs = [c.cost for claim in victim.claims if (c := ledger.claim(claim.uid)) is not None]
        costs += [p.cost for pod in victim.users if (p := ledger.pod(pod.uid)) is not None]
        return any(cost[key] > 0 for cost in costs for key in self._want.keys)

    def _others(self, seeker: Seeker, node: str, first: Victim) -> list[Victim]:
        """Others who leave something there and may go, of queues that were looked at."""
        found = (victim for owner in self._all.looked_at for victim in self._all.held(owner))
        foreign_too = first.has_foreign
        return [
            victim
            for victim in found
            if victim is not first
            and victim.has_foreign <= foreign_too
            and node in self._nodes_left_by(seeker, victim)
        ]

    def _enough(self, errand: _Errand, node: str, more: Sequence[Victim]) -> Found | None:
        """So many of some that the pod has a place on a node, if that serves."""
        victims = list(errand.before)
        for victim in more:
            going = self._all.beside(victim, victims)
            if going is None or going.pods <= self._all.gone_with(victims):
                continue
            victims.append(going)
            place = self._place(errand, node, victims)
            if isinstance(place, Place):
                break
            if place:
                self._unfit[more[0].what] = place
                return None
        else:
            return None
        needed = needed_of(
            victims,
            len(errand.before),
            lambda others: isinstance(self._place(errand, node, others), Place),
        )
        if not self._all.leaves_quotas(self._all.freed_with(needed)):
            self._guarding.add(more[0].what)
            return None
        return self._found(errand, node, needed)

    def _place(self, errand: _Errand, node: str, victims: Sequence[Victim]) -> Place | str:
        gone = self._all.gone_with(victims)
        return self._places.fit(errand.seeker, node, gone, errand.places)

    def _found(self, errand: _Errand, node: str, victims: list[Victim]) -> Found | None:
        gone = self._all.gone_with(victims)
        place = self._fit(errand.seeker, node, gone, errand.places)
        return (place, victims) if isinstance(place, Place) else None

    # Fewer.

    def _fewer(
        self, errand: _Errand, most: int, *, foreign_too: bool
    ) -> Generator[None, None, Found | None]:
        """The fewest who leave a place, two at least; of as many the first in order.

        None where more than `most` would have to go, and where it would take too long.
        """
        if most < 2:
            return None
        effort = Effort()
        nodes = yield from self._on_nodes(errand, foreign_too=foreign_too)
        for size in range(2, min(most, MOST_CANDIDATES) + 1):
            found = yield from self._of_size(errand, size, nodes, effort)
            if found is not None or effort.left <= 0:
                return found
        return None

    def _of_size(
        self, errand: _Errand, size: int, nodes: Mapping[str, _OnNode], effort: Effort
    ) -> Generator[None, None, Found | None]:
        """So many who leave a place, the first in order."""
        best: tuple[list[int], Found] | None = None
        for node, there in nodes.items():
            yield
            numbers = list(there.victims)
            for chosen in subsets(size, there.needs, there.gains, effort):
                yield
                ranks = [numbers[n] for n in chosen]
                if best is not None and ranks and best[0] < ranks:
                    break
                victims = [there.victims[n] for n in ranks]
                found = self._exactly(errand, node, victims) if victims else None
                if found is not None:
                    best = ranks, found
                    break
        return best[1] if best is not None else None

    def _on_nodes(
        self, errand: _Errand, *, foreign_too: bool
    ) -> Generator[None, None, dict[str, _OnNode]]:
        """Who may go, by node: of each the first in order."""
        nodes: dict[str, _OnNode] = {}
        owners = self._all.ranked(self._all.looked_at)
        all_of_them = (victim for owner in owners for victim in self._all.held(owner))
        willing = [victim for victim in all_of_them if victim.has_foreign <= foreign_too]
        for number, victim in enumerate(sorted(willing, key=lambda victim: victim.has_foreign)):
            for node in self._nodes_left_by(errand.seeker, victim):
                there = nodes.setdefault(node, _OnNode())
                if not self._is_hopeless(errand, node) and len(there.victims) < MOST_CANDIDATES:
                    there.victims[number] = victim
            if number % IN_ONE_STEP == 0:
                yield
        found = {node: there for node, there in nodes.items() if there.victims}
        for node, there in found.items():
            gone = self._all.gone_with(errand.before)
            lacks = self._places.lacking(errand.seeker, node, gone, errand.places)
            there.needs = tuple(lacks.values())
            for victim in there.victims.values():
                there.gains.append(self._gains(errand, node, victim, lacks))
                yield
        return found

    def _gains(
        self, errand: _Errand, node: str, victim: Victim, lacks: dict[str, int]
    ) -> tuple[float, ...]:
        """The most that it brings; all where more may go or end with it than is its own."""
        if not self._all.is_by_itself(victim):
            return tuple(lacks.values())
        gone = self._all.gone_with(errand.before)
        then = gone | victim.pods
        seeker, places, room = errand.seeker, errand.places, self._known.nodes.get(node)
        devices = self._places.brought(seeker, node, victim.devices, (gone, then), places)
        left = [room.pods.get(uid, {}) for uid in victim.pods - gone] if room is not None else []
        return tuple(sum(each.get(name, 0) for each in left) if name else devices for name in lacks)

    def _exactly(self, errand: _Errand, node: str, chosen: Sequence[Victim]) -> Found | None:
        """All of these, if that serves."""
        victims = self._all.all_of(errand.before, chosen)
        if victims is None or not any(map(self.counts, chosen)):
            return None
        if not self._all.leaves_quotas(self._all.freed_with(victims)):
            return None
        return self._found(errand, node, victims)

    # Beside others.

    def _held(self, seeker: Seeker) -> list[Place]:
        """What is on its way to other pods."""
        asked = self._known.needs[seeker.pod.uid].requests
        return [Place(h.pod, h.node, (), (), asked) for h in self.others_held()]

    def others_held(self) -> list[Hold]:
        """What is on its way to other pods: kube-scheduler gives them any of it that will do."""
        own = {pod.uid for pod in self._want.pods}
        holds = (h for h in self.world.assumptions.holds.of_devices() if h.pod not in own)
        return [hold for hold in holds if any(hold.usage[key] for key in self._want.keys)]

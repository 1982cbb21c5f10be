"""One look for places for pods that wait, and for those who hold what is lacking there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TypeAlias

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.device_wants import Seeker, lacking
from scheduler_plugin.reclaiming.free_places import TOO_MANY, FreePlaces, Step
from scheduler_plugin.reclaiming.places.evidence import InDoubtError, NotReadError, Unread
from scheduler_plugin.reclaiming.places.places import Place, result_of
from scheduler_plugin.reclaiming.victims.candidates import given_up
from scheduler_plugin.reclaiming.victims.victims import Protection, Victim

Plan: TypeAlias = tuple[list[Place], list[Victim]]
"""Where each pod would be, and who goes for that."""

MOST_ORDERS = 8
"""With how many that go first it is tried to gather enough on one node."""


class Search(FreePlaces):
    """One look for places, and for those who hold what is lacking there."""

    def run(self) -> Iterator[Step]:
        """See `decide_device`."""
        owners = yield from self.owners()
        if not owners:
            yield self.nobody("nobody can be asked for one: no other queue is over its quota")
            return
        if not (self._is_some_leaving() or (yield from self._could_anybody_go(owners))):
            yield self.nobody(f"nobody {self.who_stays()}")
            return
        if self._read.evidence is None:
            yield Unread((), self._want.seekers)
        if doubt := self._known.doubt:
            yield self.nobody(f"nobody goes for it: {doubt}")
        elif not all(hold.kind == kind for hold in self._others_held() for kind in self._kinds):
            yield OnItsWay(self._want.pod)
        else:
            yield from self.with_nodes(partial(self._searched, owners))

    def _is_some_leaving(self) -> bool:
        """Whether it may have to be told what is on its way: to a pod that is to have it."""
        want, usage = self._want, self.world.ledger.leaving
        if any(pod.uid in self.world.assumptions.holds for pod in want.pods):
            return True
        is_leaving = self.away.evicted or any(usage.own_of(key) for key in want.keys)
        return bool(is_leaving) and self._all.stays_within(want.holds[0].queue)

    def _could_anybody_go(self, owners: list[QueueName]) -> Generator[None, None, bool]:
        """Whether anything that counts as what is wanted may go, whatever device it is.

        Most that wait in vain wait for nobody: to find that out nothing has to be read.
        """
        for owner in filter(self._all.may_be_over, self._all.ranked(owners)):
            yield from self._all.look_at(owner)
            if any(map(self._counts, self._all.held(owner))):
                return True
            yield
        return False

    @property
    def _kinds(self) -> list[object]:
        return [self._known.kind(seeker) for seeker in self._want.seekers]

    def _others_held(self) -> list[Hold]:
        """What is on its way to other pods: kube-scheduler gives them any of it that will do."""
        own = {pod.uid for pod in self._want.pods}
        holds = (h for h in self.world.assumptions.holds.of_devices() if h.pod not in own)
        return [hold for hold in holds if any(hold.usage[key] for key in self._want.keys)]

    def _searched(self, owners: list[QueueName]) -> Iterator[Step]:
        if (places := (yield from self.free_places(believes=True))) is not None:
            yield self._why_not_needed(places)
            return
        plan = yield from self.plan(owners)
        yield self.nobody(f"nobody {self.who_stays()}") if plan is None else self._take(*plan)

    def confirms(self, take: Take) -> bool:
        """Whether a set still serves, all of it may go, and nothing else has become free."""
        owners = set(self._owners())
        if any(victim.owner not in owners for victim in take.victims):
            return False
        if not self._all.are_as_they_were(take.victims):
            return False
        try:
            if result_of(self.free_places(believes=True)) is not None:
                return False
        except (NotReadError, InDoubtError):
            return False
        leaves = self._all.leaves_quotas(self._all.freed_with(take.victims))
        return leaves and self.has_places(take)

    def owners(self) -> Generator[None, None, list[QueueName]]:
        """Who may be asked."""
        return self._all.rank_all(self._owners())

    def _owners(self) -> Iterator[QueueName]:
        return self._all.owners(len(self._all.path))

    def _why_not_needed(self, places: Sequence[Place]) -> Decision:
        before: list[Place] = []
        for seeker, place in zip(self._want.seekers, places, strict=True):
            if isinstance(self._places.fit(seeker, place.node, None, before), str):
                return OnItsWay(self._want.pod)
            before.append(place)
        what, _, where = ", ".join(map(str, places)).partition(" on node ")
        where = f", with room for it on node {where}" if where != '""' else ""
        return self.nobody(f"{what} is free{where}: kube-scheduler has to find it")

    # Places that others have.

    def plan(self, owners: list[QueueName]) -> Generator[None, None, Plan | None]:
        """A place for each, and who goes for that; None where one of them finds none."""
        places: list[Place] = []
        victims: list[Victim] = []
        for seeker in self._want.seekers:
            gone = self._all.gone_with(victims)
            place = yield from self._free_place(seeker, gone, places, believes=False)
            if place is None:
                found = yield from self._taken(seeker, owners, places, victims)
                if found is None:
                    return None
                place, victims = found
            places.append(place)
        return places, victims

    def _taken(
        self,
        seeker: Seeker,
        owners: list[QueueName],
        places: Sequence[Place],
        victims: Sequence[Victim],
    ) -> Generator[None, None, tuple[Place, list[Victim]] | None]:
        """One more that is enough, without foreign users if there is such; else several."""
        hopeless: dict[str, bool] = {}
        tries: Counter[tuple[str, bool]] = Counter()
        for foreign_too, alone in product((False, True), (True, False)):
            for owner in filter(self._all.may_be_over, self._all.ranked(owners)):
                yield from self._all.look_at(owner)
                for first in self._of_kind(owner, foreign_too=foreign_too, alone=alone):
                    for node in self._nodes_left_by(seeker, first):
                        if node not in hopeless:
                            hopeless[node] = self._is_hopeless(seeker, node, places)
                        tries[node, foreign_too] += not alone
                        if hopeless[node] or tries[node, foreign_too] > MOST_ORDERS:
                            continue
                        others = () if alone else self._others(seeker, node, first)
                        found = self._gathered(seeker, node, (first, *others), places, victims)
                        if found is not None:
                            return found
                    yield
        return None

    def _is_hopeless(self, seeker: Seeker, node: str, places: Sequence[Place]) -> bool:
        """Whether a node would not do even if all went whom anybody could ask."""
        known = self._known
        if not node or known.unread((node,)):
            return False
        room = known.nodes.get(node)
        place: Place | str = TOO_MANY
        if node in known.nodes:
            there = (self.world.facts.pod(uid) for uid in (room.pods if room is not None else ()))
            gone = {pod.uid for pod in there if pod is not None and not pod.non_preemptible}
            place = self._places.fit(seeker, node, gone, places)
        if isinstance(place, str) and place:
            self._unfit[node] = place
        return isinstance(place, str)

    def _of_kind(self, owner: QueueName, *, foreign_too: bool, alone: bool) -> list[Victim]:
        """What an owner's users hold that counts as what is wanted, and was not tried alone."""
        return [
            victim
            for victim in self._all.held(owner)
            if (victim.has_foreign == foreign_too or (foreign_too and not alone))
            and self._counts(victim)
        ]

    def _counts(self, victim: Victim) -> bool:
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

    def _gathered(
        self,
        seeker: Seeker,
        node: str,
        more: Sequence[Victim],
        places: Sequence[Place],
        before: Sequence[Victim],
    ) -> tuple[Place, list[Victim]] | None:
        """So many of some that the pod has a place on a node, if that serves."""
        victims = list(before)
        asked = self._known.needs[seeker.pod.uid].requests
        held = [Place(h.pod, h.node, (), (), asked) for h in self._others_held()]
        places = (*held, *places)
        for victim in more:
            going = self._all.beside(victim, victims)
            if going is None or going.pods <= self._all.gone_with(victims):
                continue
            victims.append(going)
            place = self._places.fit(seeker, node, self._all.gone_with(victims), places)
            if isinstance(place, Place):
                break
            if place:
                self._unfit[more[0].what] = place
                return None
        else:
            return None
        needed = self._needed(seeker, node, victims, places, before)
        if not self._all.leaves_quotas(self._all.freed_with(needed)):
            self._guarding.add(more[0].what)
            return None
        place = self._fit(seeker, node, self._all.gone_with(needed), places)
        return (place, needed) if isinstance(place, Place) else None

    def _needed(
        self,
        seeker: Seeker,
        node: str,
        victims: Sequence[Victim],
        places: Sequence[Place],
        before: Sequence[Victim],
    ) -> list[Victim]:
        needed = list(victims)
        for victim in victims[len(before) :]:
            others = [other for other in needed if other is not victim]
            if isinstance(
                self._places.fit(seeker, node, self._all.gone_with(others), places), Place
            ):
                needed = others
        return needed

    def _take(self, places: list[Place], victims: list[Victim]) -> Take:
        want = self._want
        where = ", ".join(map(str, places))
        sentence = (
            f'{want} of queue "{want.holds[0].queue}" {self._all.claim_to(victims)}, and'
            f" {lacking(want, self.world)} is free. So {given_up(victims)}, which leaves it"
            f" {where}."
        )
        holds = self.holds_with(places, victims)
        return Take(want.pod, holds, tuple(victims), sentence, tuple(places))

    def holds_with(self, places: Sequence[Place], victims: Sequence[Victim]) -> tuple[Hold, ...]:
        """The holds, each with what its pod finds, for which all of these have to go first."""
        seekers = {seeker.pod.uid: seeker for seeker in self._want.seekers}
        found = {place.pod: place for place in places}
        claims = (claim.uid for victim in victims for claim in victim.claims)
        pods = (pod.uid for v in victims if v.claim is None for pod in v.users)
        awaits, awaits_pods = tuple(dict.fromkeys(claims)), tuple(dict.fromkeys(pods))
        return tuple(
            replace(
                hold,
                is_device=True,
                devices=frozenset(device for device, _ in found[hold.pod].devices),
                awaits=awaits,
                awaits_pods=awaits_pods,
                node=found[hold.pod].node,
                kind=self._known.kind(seekers[hold.pod]),
            )
            for hold in self._want.holds
        )

    # What is said.

    def who_stays(self) -> str:
        self._all.protected[Protection.QUOTA] += len(self._guarding)
        counts = Counter(self._unfit.values())
        unfit = "".join(f"; {count} that would do: {why}" for why, count in counts.items())
        return self._all.who_stays() + unfit

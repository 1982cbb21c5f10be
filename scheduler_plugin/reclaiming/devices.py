"""Who goes for a pod that waits for devices which its queue is guaranteed.

    want ──► owners with somebody who could go ──► none? ──► Nobody, and nothing was read
                 └─► devices that would do ──► enough are free, or about to be? ──► Nobody has to go
                         └─► held by whom, with room on their node once they are gone? ──► Take
                                                                         nobody ──► Nobody, and why

Of pods that go together each gets a place beside those of the others, or nobody goes. Slices and
nodes are read only when it comes to them: `Unread` asks for more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.device_wants import DeviceWant, device_want_of, lacking
from scheduler_plugin.reclaiming.free_places import Step
from scheduler_plugin.reclaiming.gathering import Gathering
from scheduler_plugin.reclaiming.places.evidence import (
    Evidence,
    InDoubtError,
    Known,
    NotReadError,
    Unread,
)
from scheduler_plugin.reclaiming.places.places import Place, result_of
from scheduler_plugin.reclaiming.victims.candidates import given_up
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY, Away, Protection, Victim
from scheduler_plugin.reclaiming.wants import Nobody

Plan: TypeAlias = tuple[list[Place], list[Victim]]
"""Where each pod would be, and who goes for that."""


def decide_device(
    pod: PodView,
    world: WorldView,
    now: datetime,
    known: Known,
    away: Away = NOBODY_AWAY,
) -> Iterator[Step]:
    """Decide about one pod that was tried in vain: None while there is more to look at.

    The last step is the decision. Before that it may be `Unread`, and goes on once that is in
    `known`. The other arguments are those of `room.decide`.
    """
    want = device_want_of(pod, world)
    if isinstance(want, Nobody):
        yield want
        return
    yield from Search(want, away, world, now, known).run()


def is_device_due(
    take: Take, world: WorldView, now: datetime, evidence: Evidence, away: Away = NOBODY_AWAY
) -> bool:
    """As `room.is_due`: whether exactly these are still to go for those devices."""
    pod = world.facts.pod(take.pod.uid)
    want = device_want_of(pod, world) if pod is not None and pod.may_be_bound else None
    if not isinstance(want, DeviceWant):
        return False
    return Search(want, away, world, now, Known(evidence)).confirms(take)


class Search(Gathering):
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
        elif not all(hold.kind == kind for hold in self.others_held() for kind in self._kinds):
            yield OnItsWay()
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
            if any(map(self.counts, self._all.held(owner))):
                return True
            yield
        return False

    @property
    def _kinds(self) -> list[object]:
        return [self._known.kind(seeker) for seeker in self._want.seekers]

    def _searched(self, owners: list[QueueName]) -> Iterator[Step]:
        if (places := (yield from self.free_places(believes=True))) is not None:
            yield self._why_not_needed(places)
            return
        plan = yield from self.plan(owners)
        yield self.nobody(f"nobody {self.who_stays()}") if plan is None else self._take(*plan)

    def confirms(self, take: Take) -> bool:
        """Whether a set still serves, all of it may go, and nothing else has become free."""
        if not self._all.are_as_they_were(take.victims, self._owners()):
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
                return OnItsWay()
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
                found = yield from self.gathered(seeker, owners, places, victims)
                if found is None:
                    return None
                place, victims = found
            places.append(place)
        return places, victims

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
        claims = [claim.uid for victim in victims for claim in victim.claims]
        pods = [pod.uid for v in victims if v.claim is None for pod in v.users]
        for place in places:
            claims += self._places.claims_leaving(place)
            pods += self._slots_leaving(place)
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

    def _slots_leaving(self, place: Place) -> Iterator[PodUid]:
        """Pods of a place's node that are on their way out anyway, with slots that are wanted."""
        for uid in self._places.pods_leaving(place):
            entry = self.world.ledger.pod(uid)
            if entry is not None and any(entry.cost[key] for key in self._want.keys):
                yield uid

    # What is said.

    def who_stays(self) -> str:
        self._all.protected[Protection.QUOTA] += len(self._guarding)
        counts = Counter(self._unfit.values())
        unfit = "".join(f"; {count} that would do: {why}" for why, count in counts.items())
        return self._all.who_stays() + unfit

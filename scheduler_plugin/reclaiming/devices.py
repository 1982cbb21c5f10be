"""Who goes for a pod that waits for a device which its queue is guaranteed.

    want ──► owners that may be asked ──► none? ──► Nobody, and nothing was read
                 └─► devices that would do ──► one is free, or about to be? ──► Nobody has to go
                         └─► held by whom, with room on its node once they are gone? ──► Take
                                                                       nobody ──► Nobody, and why

Slices and nodes are read only when it comes to them: `Unread` asks for more, and then it is decided
from the beginning.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain, product
from typing import TypeAlias

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.candidates import IN_ONE_STEP, Candidates, given_up
from scheduler_plugin.reclaiming.decisions import Decision, Nobody, OnItsWay, Take
from scheduler_plugin.reclaiming.device_use import DeviceUse
from scheduler_plugin.reclaiming.device_wants import DeviceWant, device_want_of
from scheduler_plugin.reclaiming.evidence import Evidence, Unread
from scheduler_plugin.reclaiming.offers import Offer
from scheduler_plugin.reclaiming.victims import NOBODY_AWAY, Asker, Away, Protection, Victim
from scheduler_plugin.reclaiming.wants import NoWant

Step: TypeAlias = Decision | Unread | None


def decide_device(
    pod: PodView,
    world: World,
    now: datetime,
    evidence: Evidence | None,
    away: Away = NOBODY_AWAY,
) -> Iterator[Step]:
    """Decide about one pod that was tried in vain: None while there is more to look at.

    The last step is the decision, or what has to be read first; without `evidence` that is all.
    The other arguments are those of `room.decide`.
    """
    want = device_want_of(pod, world)
    if isinstance(want, NoWant):
        yield Nobody(want.sentence, want.unmet)
        return
    asker = Asker(pod, want.hold.queue, away.evicted, away.held_back)
    candidates = Candidates(asker, want.hold.usage, (want.key,), world, now)
    yield from _Search(want, candidates, world, evidence).run()


def is_device_due(
    take: Take, world: World, now: datetime, evidence: Evidence, evicted: Collection[PodUid]
) -> bool:
    """As `room.is_due`: whether exactly these are still to go for that device."""
    pod = world.facts.pod(take.pod.uid)
    want = device_want_of(pod, world) if pod is not None and pod.may_be_bound else None
    if pod is None or not isinstance(want, DeviceWant):
        return False
    asker = Asker(pod, want.hold.queue, evicted)
    candidates = Candidates(asker, want.hold.usage, (want.key,), world, now)
    return _Search(want, candidates, world, evidence).confirms(take, evidence)


class _Search:
    """One look for a device, and for those who hold it."""

    def __init__(
        self, want: DeviceWant, candidates: Candidates, world: World, evidence: Evidence | None
    ) -> None:
        self._want = want
        self._all = candidates
        self._world = world
        self._evidence = evidence
        self._use = DeviceUse(world, candidates.asker)
        # Devices that would do but for the node: why.
        self._unfit: dict[DeviceId, str] = {}
        self._guarding: set[str] = set()

    def run(self) -> Iterator[Step]:
        """See `decide_device`."""
        owners = yield from self._all.rank_all(self._owners())
        if not owners:
            yield self._nobody("nobody can be asked for one: no other queue is over its quota")
        elif self._evidence is None:
            yield Unread(())
        elif doubt := self._evidence.doubt:
            yield self._nobody(f"nobody goes for it: {doubt}")
        elif any(hold.kind != self._evidence.kind for hold in self._others()):
            yield OnItsWay(self._want.pod)
        else:
            yield from self._use.read()
            yield from self._search(owners, self._evidence)

    def _others(self) -> list[Hold]:
        """What is on its way to other pods: kube-scheduler gives them any of it that will do."""
        holds = self._world.assumptions.holds.of_devices()
        pod, key = self._want.pod, self._want.key
        return [hold for hold in holds if hold.pod != pod.uid and hold.usage[key]]

    def _search(self, owners: list[QueueName], evidence: Evidence) -> Iterator[Step]:
        for step in chain(self._free(evidence), self._taken(owners, evidence)):
            yield step
            if step is not None:
                return
        yield self._nobody(f"nobody {self._who_stays()}")

    def confirms(self, take: Take, evidence: Evidence) -> bool:
        """Whether a set still serves, all of it may go, and nothing else has become free."""
        owners = set(self._owners())
        if any(victim.owner not in owners for victim in take.victims):
            return False
        if not self._all.are_as_they_were(take.victims):
            return False
        deque(self._use.read(), maxlen=0)
        if any(step is not None for step in self._free(evidence)):
            return False
        (device,) = take.hold.devices
        gone = self._all.gone_with(take.victims)
        nodes = evidence.nodes_of(device, _nodes(take.victims))
        return (
            self._use.has_room(evidence.offers[device], evidence.request.slots, gone)
            and self._all.leaves_quotas(self._all.freed_with(take.victims))
            and bool(evidence.place_for(device, nodes, gone)[0])
        )

    def _owners(self) -> Iterator[QueueName]:
        return self._all.owners(len(self._all.path))

    # Devices that nobody has to leave.

    def _free(self, evidence: Evidence) -> Iterator[Step]:
        """Why nobody has to go: a device that would do is free, or about to be."""
        gone, slots = self._all.gone_with(()), evidence.request.slots
        for number, (device, offer) in enumerate(evidence.offers.items(), start=1):
            if number % IN_ONE_STEP == 0:
                yield None
            if not self._use.has_room(offer, slots, gone) or not evidence.accepts(device):
                continue
            nodes = evidence.nodes_of(device)
            if unread := evidence.unread(nodes):
                yield Unread(unread)
            place, why = evidence.place_for(device, nodes, gone)
            if not nodes or place or evidence.may_fit(nodes):
                yield self._why_not_needed(device, place, offer, slots)
            self._unfit[device] = why

    def _why_not_needed(self, device: DeviceId, place: str, offer: Offer, slots: int) -> Decision:
        if not self._use.has_room(offer, slots, None):
            return OnItsWay(self._want.pod)
        where = f', with room for it on node "{place}"' if place else ""
        return self._nobody(f"{device} is free{where}: kube-scheduler has to find it")

    # Devices that others have.

    def _taken(self, owners: list[QueueName], evidence: Evidence) -> Iterator[Step]:
        """One claim that is enough, without foreign users if there is such; else several."""
        for foreign_too, alone in product((False, True), (True, False)):
            for owner in self._all.ranked(owners):
                if not self._all.may_be_over(owner):
                    continue
                yield from self._all.look_at(owner)
                for victim in self._of_kind(owner, foreign_too=foreign_too):
                    for device in _devices(victim):
                        yield from self._for_device(device, victim, evidence, alone=alone)
                    yield None

    def _of_kind(self, owner: QueueName, *, foreign_too: bool) -> list[Victim]:
        """The claims of an owner that count as what is wanted."""
        return [
            victim
            for victim in self._all.held(owner)
            if victim.has_foreign <= foreign_too
            and victim.claim is not None
            and (entry := self._world.ledger.claim(victim.claim.uid)) is not None
            and entry.cost[self._want.key] > 0
        ]

    def _for_device(
        self, device: DeviceId, first: Victim, evidence: Evidence, *, alone: bool
    ) -> Iterator[Step]:
        """What goes so that a device is free, if that serves."""
        if self._use.is_promised(device) or not evidence.accepts(device):
            return
        victims = self._sufficient(evidence.offers[device], first, evidence, alone=alone)
        if not victims:
            return
        freed = self._all.freed_with(victims)
        if not self._all.leaves_quotas(freed):
            self._guarding.add(first.what)
            return
        nodes = evidence.nodes_of(device, _nodes(victims))
        if unread := evidence.unread(nodes):
            yield Unread(unread)
        beside = Counter(hold.node for hold in self._others())
        place, why = evidence.place_for(device, nodes, self._all.gone_with(victims), beside)
        if place:
            yield self._take(victims, device, place, evidence)
        else:
            self._unfit[device] = why

    def _sufficient(
        self, offer: Offer, first: Victim, evidence: Evidence, *, alone: bool
    ) -> list[Victim]:
        """So many of those who share a device that it has room; none where all are not enough."""
        victims, slots = [first], evidence.request.slots
        others = () if alone else self._sharing(offer.device, first)
        for other in (*others, None):
            if self._use.has_room(offer, slots, self._all.gone_with(victims)):
                return victims
            if other is not None:
                victims.append(other)
        return []

    def _sharing(self, device: DeviceId, first: Victim) -> list[Victim]:
        """Others who have a part of a device and may go, of queues that were looked at."""
        found = (victim for owner in self._all.looked_at for victim in self._all.held(owner))
        return [v for v in found if v is not first and device in _devices(v)]

    def _take(
        self, victims: list[Victim], device: DeviceId, place: str, evidence: Evidence
    ) -> Take:
        awaits = tuple(victim.claim.uid for victim in victims if victim.claim is not None)
        want, devices = self._want, frozenset((device,))
        hold = replace(want.hold, is_device=True, devices=devices, awaits=awaits)
        hold = replace(hold, node=place, kind=evidence.kind)
        sentence = (
            f'{want.pod} of queue "{want.hold.queue}" {self._all.claim_to(victims)}, and no device'
            f" that would do for {want.claim} is free. So {given_up(victims)}, which leaves it"
            f' {device} on node "{place}".'
        )
        return Take(want.pod, (hold,), tuple(victims), sentence)

    # What is said.

    def _nobody(self, why: str) -> Nobody:
        want = self._want
        waits = f'{want.pod} waits for a device of class "{want.alternative.device_class}", and'
        if not self._all.stays_within(want.hold.queue):
            return Nobody(f'{waits} queue "{want.hold.queue}" would be over its quota with it.')
        return Nobody(f"{waits} {why}.", want.hold.queue)

    def _who_stays(self) -> str:
        self._all.protected[Protection.QUOTA] += len(self._guarding)
        counts = Counter(self._unfit.values())
        unfit = "".join(f"; {count} that would do: {why}" for why, count in counts.items())
        return self._all.who_stays() + unfit


def _devices(victim: Victim) -> list[DeviceId]:
    results = (victim.claim.results if victim.claim is not None else None) or ()
    return [result.device_id for result in results if not result.admin_access]


def _nodes(victims: Collection[Victim]) -> list[str]:
    """The nodes of whoever goes: there it leaves room beside the device."""
    return list(dict.fromkeys(pod.node for victim in victims for pod in victim.users))

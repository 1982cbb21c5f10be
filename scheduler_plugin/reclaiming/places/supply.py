"""Where heads would find devices and a node, once those are gone whom a cycle lets go.

What one head finds is promised to it: the next looks beside it. A node that did not do is looked at
again only when somebody leaves it, so that of pods that are alike each costs what it changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.device_wants import Seeker, nodes_of_resources, seekers_of
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.evidence import Evidence, InDoubtError
from scheduler_plugin.reclaiming.places.places import Place, Places
from scheduler_plugin.reclaiming.victims.victims import Asker, Away, Victim

ANYWHERE = ""
"""Stands for a node that nobody names: of devices that several nodes can use."""


class NodeSupply:
    """The nodes and devices of one cycle."""

    def __init__(self, world: WorldView, evidence: Evidence, away: Away) -> None:
        """`evidence` is about all heads, and all nodes."""
        self._world = world
        self._evidence = evidence
        self._away = away
        self._promised: dict[str, list[Place]] = {}
        self._kinds: list[object] = []
        self._nodes: dict[int, tuple[str, ...]] = {}
        self._failed: dict[int, dict[str, None]] = {}
        self._seen: dict[int, frozenset[PodUid]] = {}
        self._hopeless: dict[tuple[int, str], bool] = {}

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        """Of what a head finds too little once these pods are gone."""
        found = self.places(head, gone)
        return tuple(key for key, _ in head.adds) if found is None else ()

    def places(self, head: Head, gone: Collection[PodUid]) -> list[Place] | None:
        """Where each of its pods would be; None where one of them finds no place.

        What is not modelled is assumed to fit: of a head about which nothing can be said, that is
        no place at all.
        """
        seekers, places = seekers_of(head.pods, self._world), list[Place]()
        try:
            for seeker in seekers if not isinstance(seekers, str) else ():
                place = self._place(head, seeker, gone, places)
                if place is None:
                    return None
                places.append(place)
        except InDoubtError:
            return []
        return places

    def keep(self, head: Head, gone: Collection[PodUid]) -> None:
        """What the head finds then is its: nobody after it finds it."""
        for place in self.places(head, gone) or ():
            self._promised.setdefault(place.node, []).append(place)

    def helps(self, head: Head, victim: Victim) -> bool:
        """Whether what it holds is anything that the head could have."""
        seekers = seekers_of(head.pods, self._world)
        return not isinstance(seekers, str) and any(
            not self._is_hopeless(head, seeker, node)
            for seeker in seekers
            for node in self._left_by(head, seeker, victim)
        )

    # Places.

    def _looking(self, head: Head) -> Places:
        use = DeviceUse(self._world, Asker(head.pods, head.queue, self._away))
        return Places(self._evidence, use, self._away.stuck)

    def _kind(self, seeker: Seeker) -> int:
        """The same for pods that the same devices and nodes serve."""
        kind = self._evidence.kind(seeker)
        if kind not in self._kinds:
            self._kinds.append(kind)
        return self._kinds.index(kind)

    def _place(
        self, head: Head, seeker: Seeker, gone: Collection[PodUid], own: Sequence[Place]
    ) -> Place | None:
        kind, looking = self._kind(seeker), self._looking(head)
        failed = self._failed_of(kind, gone) if not own else {}
        for node in self._candidates(kind, seeker, own):
            if node in failed:
                continue
            beside = self._promised.get(node, ()), self._promised.get(ANYWHERE, ()), own
            place = looking.fit(seeker, node, gone, [*chain(*beside)])
            if isinstance(place, Place):
                return place
            failed[node] = None
        return None

    def _failed_of(self, kind: int, gone: Collection[PodUid]) -> dict[str, None]:
        """Nodes that did not do, but for those that somebody left since."""
        failed, now = self._failed.setdefault(kind, {}), frozenset(gone)
        for uid in now - self._seen.get(kind, frozenset()):
            for node in self._left(uid):
                failed.pop(node, None)
        self._seen[kind] = now
        return failed

    def _left(self, uid: PodUid) -> Iterator[str]:
        """Where something is free once a pod is gone: on its node, and where its devices are."""
        pod = self._world.facts.pod(uid)
        yield pod.node if pod is not None else ANYWHERE
        for name in self._world.facts.claims_consumed_by(uid):
            claim = self._world.facts.claim(name)
            for device in claim.devices if claim is not None else ():
                yield from self._nodes_of(device)

    def _nodes_of(self, device: DeviceId) -> Iterator[str]:
        offer = self._evidence.offers.get(device)
        if offer is None:
            return
        if offer.node:
            yield offer.node
            return
        yield ANYWHERE
        for name, room in self._evidence.nodes.items():
            if room is not None and offer.nodes.match(name, room.labels):
                yield name

    def _candidates(self, kind: int, seeker: Seeker, own: Sequence[Place]) -> Sequence[str]:
        """Nodes with any device that would do, were it free; those that the pod names go first."""
        if seeker.beside:
            return [place.node for place in own if place.pod == seeker.beside]
        if kind not in self._nodes:
            self._nodes[kind] = tuple(self._nodes_for(seeker))
        return self._nodes[kind]

    def _nodes_for(self, seeker: Seeker) -> Sequence[str]:
        if not seeker.asks and not seeker.resources:
            return list(self._evidence.nodes)
        found = dict.fromkeys(nodes_of_resources(seeker, self._world))
        for device in self._evidence.offers:
            if any(self._evidence.accepts(ask, device) for ask in seeker.asks):
                found |= dict.fromkeys(self._nodes_of(device))
        found.pop(ANYWHERE, None)
        return self._evidence.in_order(seeker.pod.uid, found)

    # Who would leave one.

    def _left_by(self, head: Head, seeker: Seeker, victim: Victim) -> Iterator[str]:
        """Where it leaves something that would do."""
        looking, own = self._looking(head), dict.fromkeys(pod.node for pod in victim.users)
        for device in victim.devices:
            if looking.would_do(seeker, device):
                yield from (node for node in self._nodes_of(device) if node != ANYWHERE)
        names = {ask.alternative.name for ask in seeker.resources}
        if any(name in names for pod in victim.users for name, _ in pod.requests):
            yield from own

    def _is_hopeless(self, head: Head, seeker: Seeker, node: str) -> bool:
        """Whether a node would not do even if all were gone whom anybody could ask."""
        key = self._kind(seeker), node
        if key not in self._hopeless:
            room = self._evidence.nodes.get(node)
            there = (self._world.facts.pod(u) for u in (room.pods if room is not None else ()))
            gone = {pod.uid for pod in there if pod is not None and not pod.non_preemptible}
            place = self._looking(head).fit(seeker, node, gone, self._promised.get(node, ()))
            self._hopeless[key] = isinstance(place, str)
        return self._hopeless[key]

"""Where heads would find devices and a node, once those are gone whom a cycle lets go.

What one head finds is promised to it: the next looks beside it. A node that did not do is looked at
again only when a pod leaves it, so that of pods that are alike each costs what it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import NO_POD, PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.missed_nodes import LeftOut
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.offered_devices import SEVERAL
from scheduler_plugin.reclaiming.places.places import InDoubtError, Place, Places
from scheduler_plugin.reclaiming.places.seekers import Seeker, nodes_of_resources, seekers_of
from scheduler_plugin.reclaiming.places.stock import Stock
from scheduler_plugin.reclaiming.victims.victims import Away, Victim

ANYWHERE = ""
"""Stands for the node of what is promised of devices that several nodes can use."""


class NodeSupply:
    """The nodes and devices of one cycle."""

    def __init__(self, world: WorldView, stock: Stock, away: Away, left_out: LeftOut) -> None:
        self._world = world
        self._stock = stock
        self._away = away
        self._left_out = left_out
        self._promised: dict[str, list[Place]] = {}
        self._kinds: dict[object, int] = {}
        self._nodes: dict[int, tuple[str, ...]] = {}
        self._failed: dict[int, dict[str, None]] = {}
        self._seen: dict[int, frozenset[PodUid]] = {}
        self._hopeless: dict[tuple[int, str], str | None] = {}

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        """Of what a head finds too little once these pods are gone."""
        found = self.places(head, gone)
        return tuple(key for key, _ in head.adds) if found is None else ()

    def places(self, head: Head, gone: Collection[PodUid]) -> list[Place] | None:
        """Where each of its pods would be; None where one of them finds no place.

        What is not modelled is assumed to fit: of a head about which nothing can be said, that is
        no place at all.
        """
        try:
            return self._places(head, gone)
        except InDoubtError:
            return []

    def _places(self, head: Head, gone: Collection[PodUid]) -> list[Place] | None:
        seekers, places = seekers_of(head.pods, self._world), list[Place]()
        for seeker in seekers if not isinstance(seekers, str) else ():
            place = self._place(head, seeker, gone, places)
            if place is None:
                return None
            places.append(place)
        return places

    def doubt(self, head: Head) -> str:
        """Why it cannot be said what would serve it, for the end of a sentence; "" where it can."""
        seekers = seekers_of(head.pods, self._world)
        if isinstance(seekers, str):
            return seekers.removesuffix(".")
        try:
            self._places(head, ())
        except InDoubtError as error:
            return str(error)
        return ""

    def keep(self, head: Head, gone: Collection[PodUid]) -> Sequence[Place]:
        """What the head finds then is its: nobody after it finds it. Returns the places."""
        places = self.places(head, gone) or ()
        for place in places:
            is_anywhere = any(self._is_of_several(device) for device, _ in place.devices)
            at = ANYWHERE if is_anywhere else place.node
            self._promised.setdefault(at, []).append(place)
        for pod, place in zip(head.pods, places, strict=False):
            self._left_out.tries(pod, place.node)
        return places

    def _is_of_several(self, device: DeviceId) -> bool:
        """Whether several nodes can use a device."""
        offer = self._stock.devices.offer(device)
        return offer is not None and not offer.node

    def _promised_at(self, node: str) -> Iterator[Place]:
        """What counts at a node: what is promised there, and devices of several nodes."""
        return chain(self._promised.get(node, ()), self._promised.get(ANYWHERE, ()))

    def helps(self, head: Head, victim: Victim) -> bool:
        """Whether what it holds is anything that the head could have."""
        seekers = seekers_of(head.pods, self._world)
        return not isinstance(seekers, str) and any(
            self._why_hopeless(head, seeker, node) is None
            for seeker in seekers
            for node in self._left_by(head, seeker, victim)
        )

    def why_not(self, head: Head) -> str:
        """Why nodes with devices that would do are none for it, for the end of a sentence."""
        seekers = seekers_of(head.pods, self._world)
        if isinstance(seekers, str):
            return ""
        kinds = {self._kind(seeker) for seeker in seekers}
        whys = Counter(
            why.removeprefix(f'node "{node}" ')
            for (kind, node), why in self._hopeless.items()
            if why and kind in kinds
        )
        counted = (
            f"{count} nodes: each {why}" if count > 1 else f"1 node {why}"
            for why, count in whys.most_common(3)
        )
        return "; ".join((*counted, *self._why_left_out(head.pods[0])))

    def _why_left_out(self, pod: PodView) -> Iterator[str]:
        missed, tried = self._left_out.missed(pod), self._left_out.tried(pod)
        if missed:
            are = "1 node is" if len(missed) == 1 else f"{len(missed)} nodes are"
            yield f"{are} left out, where such pods were not bound"
        if tried:
            on = "1 node" if len(tried) == 1 else f"{len(tried)} nodes"
            yield f"on {on} another pod like it is to be bound first"

    # Places.

    def _looking(self, head: Head) -> Places:
        holds = self._world.assumptions.holds.of_devices()
        others = (hold for hold in holds if hold.pod not in head.uids)
        use = DeviceUse(self._world, others, self._away.stuck)
        return Places(self._stock, use, self._away.stuck)

    def _kind(self, seeker: Seeker) -> int:
        """The same for pods that the same devices and nodes serve, whatever their queues."""
        own = seeker.pod.uid if seeker.pod.uid in self._world.assumptions.holds else NO_POD
        kind = seeker.kind, frozenset(self._left_out.missed(seeker.pod)), own
        return self._kinds.setdefault(kind, len(self._kinds))

    def _place(
        self, head: Head, seeker: Seeker, gone: Collection[PodUid], own: Sequence[Place]
    ) -> Place | None:
        kind, looking = self._kind(seeker), self._looking(head)
        failed = self._failed_of(kind, gone) if not own else {}
        tried = self._left_out.tried(seeker.pod) if not own else ()
        for node in self._candidates(kind, seeker, own, gone):
            if node in failed or node in tried:
                continue
            place = looking.fit(seeker, node, gone, [*self._promised_at(node), *own])
            if isinstance(place, Place):
                return place
            failed[node] = None
        return None

    def _failed_of(self, kind: int, gone: Collection[PodUid]) -> dict[str, None]:
        """Nodes that did not do, but for those that a pod left since."""
        failed, now = self._failed.setdefault(kind, {}), frozenset(gone)
        for uid in now - self._seen.get(kind, frozenset()):
            for node in self._left(uid):
                failed.pop(node, None)
        self._seen[kind] = now
        return failed

    def _left(self, uid: PodUid) -> Iterator[str]:
        """Where something is free once a pod is gone: on its node, and where its devices are."""
        pod = self._world.facts.pod(uid)
        if pod is not None and pod.node:
            yield pod.node
        for name in self._world.facts.claims_consumed_by(uid):
            claim = self._world.facts.claim(name)
            for device in claim.devices if claim is not None else ():
                yield from self._stock.nodes_of(device)

    def _candidates(
        self, kind: int, seeker: Seeker, own: Sequence[Place], gone: Collection[PodUid]
    ) -> Iterable[str]:
        """Nodes where something that would do may be free; those that the pod names go first."""
        if seeker.beside:
            return [place.node for place in own if place.pod == seeker.beside]
        if kind not in self._nodes:
            self._nodes[kind] = self._in_order(seeker, self._nodes_for(seeker))
        left = dict.fromkeys(node for uid in gone for node in self._left(uid))
        return chain(self._nodes[kind], self._in_order(seeker, left))

    def _in_order(self, seeker: Seeker, nodes: Iterable[str]) -> tuple[str, ...]:
        out = frozenset(self._left_out.missed(seeker.pod))
        named = seeker.pod.needs.names if seeker.pod.needs is not None else frozenset[str]()
        found = (name for name in nodes if name not in out)
        return tuple(sorted(found, key=lambda name: name not in named))

    def _nodes_for(self, seeker: Seeker) -> Iterable[str]:
        """Nodes with something that is free as it is, or on its way to be."""
        if not seeker.asks and not seeker.resources:
            return list(self._stock.nodes)
        found = dict.fromkeys(nodes_of_resources(seeker, self._world))
        used = self._world.facts.devices_in_use()
        for device in self._stock.devices.perhaps_free(used):
            if any(self._stock.accepts(ask, device) for ask in seeker.asks):
                found |= dict.fromkeys(self._stock.nodes_of(device))
        return found | dict.fromkeys(self._nodes_being_left)

    @cached_property
    def _nodes_being_left(self) -> tuple[str, ...]:
        leaving = self._world.facts.pods_leaving()
        return tuple(dict.fromkeys(node for uid in leaving for node in self._left(uid)))

    def _preemptible(self, pods: Iterable[PodUid]) -> set[PodUid]:
        found = map(self._world.facts.pod, pods)
        return {pod.uid for pod in found if pod is not None and not pod.non_preemptible}

    @cached_property
    def _users_elsewhere(self) -> set[PodUid]:
        """Who could be asked of those that use devices of several nodes, wherever they run."""
        facts = self._world.facts
        claims = (c for d in self._stock.devices.on(SEVERAL) for c in facts.claims_with(d))
        return self._preemptible(uid for claim in claims for uid in claim.reserved_for)

    # Who would leave one.

    def _left_by(self, head: Head, seeker: Seeker, victim: Victim) -> Iterator[str]:
        """Where it leaves something that would do."""
        looking, own = self._looking(head), dict.fromkeys(pod.node for pod in victim.users)
        for device in victim.devices:
            if looking.would_do(seeker, device):
                yield from self._stock.nodes_of(device)
        names = {ask.alternative.name for ask in seeker.resources}
        if any(name in names for pod in victim.users for name, _ in pod.requests):
            yield from own

    def _why_hopeless(self, head: Head, seeker: Seeker, node: str) -> str | None:
        """Why a node would not do even if all were gone whom anybody could ask; None: it would."""
        key = self._kind(seeker), node
        if key not in self._hopeless:
            gone = self._preemptible(self._stock.nodes.pods_on(node)) | self._users_elsewhere
            beside = [*self._promised_at(node)]
            place = self._looking(head).fit(seeker, node, gone, beside)
            why = place if isinstance(place, str) else None
            self._hopeless[key] = "" if node in self._left_out.missed(seeker.pod) else why
        return "" if node in self._left_out.tried(seeker.pod) else self._hopeless[key]

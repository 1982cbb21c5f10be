"""Places for pods that wait which nobody else has to leave, or which somebody leaves anyway."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.decisions import Decision, Take
from scheduler_plugin.reclaiming.device_wants import DeviceWant, Seeker, nodes_of_resources
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.evidence import (
    Evidence,
    InDoubtError,
    Known,
    NotReadError,
    Unread,
)
from scheduler_plugin.reclaiming.places.places import Gone, Place, Places
from scheduler_plugin.reclaiming.victims.candidates import IN_ONE_STEP, Candidates
from scheduler_plugin.reclaiming.victims.effects import who_does_not_end
from scheduler_plugin.reclaiming.victims.victims import Asker, Away, Victim
from scheduler_plugin.reclaiming.wants import Nobody

Step: TypeAlias = Decision | Unread | None

TOO_MANY = "too many nodes would have to be looked at"


class FreePlaces:
    """One look for places."""

    def __init__(
        self,
        want: DeviceWant,
        away: Away,
        world: WorldView,
        now: datetime,
        known: Known,
    ) -> None:
        self.world, self.now, self.away = world, now, away
        self._want = want
        asker = Asker(want.pods, want.holds[0].queue, away)
        self._all = Candidates(asker, want.added, want.keys, world, now)
        self._read = known
        self._use = DeviceUse(world, asker)
        # Nodes, or what is held there, that would do but for something else: why.
        self._unfit: dict[str, str] = {}
        self._guarding: set[str] = set()
        self._with_some: dict[tuple[PodUid, frozenset[PodUid]], tuple[str, ...]] = {}

    def with_nodes(self, look: Callable[[], Iterator[Step]]) -> Iterator[Step]:
        """Look, and once more whenever nodes have to be read for it."""
        while True:
            try:
                yield from look()
            except NotReadError as error:
                yield Unread(error.nodes)
                self._unfit.clear()
                self._guarding.clear()
            except InDoubtError as error:
                yield self.nobody(f"nobody goes for it: {error}")
                return
            else:
                return

    def has_places(self, take: Take) -> bool:
        """Whether all have the places that were found for them."""
        gone, before = self._all.gone_with(take.victims), list[Place]()
        nodes = {place.pod: place.node for place in take.places}
        for seeker in self._want.seekers:
            node = nodes.get(seeker.pod.uid)
            try:
                place = self._places.fit(seeker, node, gone, before) if node is not None else ""
            except InDoubtError:
                return False
            if isinstance(place, str):
                return False
            before.append(place)
        return True

    def left_places(self, victims: Collection[Victim]) -> list[Place] | None:
        """A place for each where these leave something; None where not all find one there."""
        gone, places = self._all.gone_with(victims), list[Place]()
        for seeker in self._want.seekers:
            nodes = dict.fromkeys(n for v in victims for n in self._nodes_left_by(seeker, v))
            fits = (self._fit(seeker, node, gone, places) for node in nodes)
            place = next((found for found in fits if isinstance(found, Place)), None)
            if place is None:
                return None
            places.append(place)
        return places

    def free_places(
        self, victims: Collection[Victim] = (), *, believes: bool = False
    ) -> Generator[None, None, list[Place] | None]:
        """A place for each once these are gone; None where one of them finds none.

        `believes` says whether a node would do that is not read, since too many are.
        """
        places: list[Place] = []
        for seeker in self._want.seekers:
            gone = self._all.gone_with(victims)
            place = yield from self._free_place(seeker, gone, places, believes=believes)
            if place is None:
                return None
            places.append(place)
        return places

    def _free_place(
        self, seeker: Seeker, gone: Gone, before: Sequence[Place], *, believes: bool
    ) -> Generator[None, None, Place | None]:
        nodes = yield from self._nodes_with_some(seeker, gone)
        if seeker.beside:
            nodes = tuple(place.node for place in before if place.pod == seeker.beside)
        for node in self._known.in_order(seeker.pod.uid, nodes):
            place = self._fit(seeker, node, gone, before, believes=believes)
            if isinstance(place, Place):
                return place
            if place:
                self._unfit[node] = place
            yield
        return None

    def _nodes_with_some(
        self, seeker: Seeker, gone: Gone
    ) -> Generator[None, None, tuple[str, ...]]:
        """Nodes that can use something of what is asked for; "" stands for such as nobody names."""
        key = seeker.pod.uid, frozenset(gone or ())
        if key not in self._with_some:
            nodes = yield from self._nodes_with_device(seeker, gone)
            nodes |= dict.fromkeys(nodes_of_resources(seeker, self.world))
            is_anywhere = not (nodes or seeker.asks or seeker.resources)
            self._with_some[key] = ("",) if is_anywhere else tuple(nodes)
        return self._with_some[key]

    def _nodes_with_device(
        self, seeker: Seeker, gone: Gone
    ) -> Generator[None, None, dict[str, None]]:
        nodes: dict[str, None] = {}
        places, asks = self._places, seeker.asks
        for number, device in enumerate(self._known.offers if asks else (), start=1):
            if places.has_device(asks, device, gone):
                nodes |= dict.fromkeys(self._known.nodes_of(device) or ("",))
            if number % IN_ONE_STEP == 0:
                yield
        return nodes

    def _fit(
        self,
        seeker: Seeker,
        node: str,
        gone: Gone,
        before: Sequence[Place],
        *,
        believes: bool = False,
    ) -> Place | str:
        """As `Places.fit`, with a node that was read."""
        place = self._places.fit(seeker, node, gone, before)
        if isinstance(place, str) or not node or node in self._known.nodes:
            return place
        if unread := self._known.unread((node,)):
            raise NotReadError(unread)
        return place if believes else TOO_MANY

    def _nodes_left_by(self, seeker: Seeker, victim: Victim) -> tuple[str, ...]:
        """Where it leaves something that would do."""
        nodes: dict[str, None] = {}
        own = dict.fromkeys(pod.node for pod in victim.users)
        for device in victim.devices:
            if self._places.would_do(seeker, device):
                nodes |= dict.fromkeys(self._known.nodes_of(device, tuple(own)))
        names = {ask.alternative.name for ask in seeker.resources}
        if any(name in names for pod in victim.users for name, _ in pod.requests):
            nodes |= own
        return tuple(nodes)

    def nobody(self, why: str) -> Nobody:
        """That nobody goes, and why."""
        want, queue = self._want, self._want.holds[0].queue
        classes = dict.fromkeys(
            a.alternative for s in want.seekers for a in (*s.asks, *s.resources)
        )
        named = " or ".join(dict.fromkeys(f'"{a.device_class or a.name}"' for a in classes))
        waits = f"{want} waits for a device of class {named}, and"
        if not self._all.stays_within(queue):
            return Nobody(f'{waits} queue "{queue}" would be over its quota with it.')
        endless = who_does_not_end(self.away.stuck, want.keys, self.world)
        return Nobody(f"{waits} {why}{endless}.", queue)

    @property
    def _places(self) -> Places:
        return Places(self._known, self._use, self.away.stuck)

    @property
    def _known(self) -> Evidence:
        return self._read.now

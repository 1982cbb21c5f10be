"""One preemption cycle over all pods that wait, head by head.

    head ──► lacks nothing ──► `OnItsWay`
       └───► candidates in order, until they are enough ──► `Take`, without unneeded targets
                                    └── not enough ───────► `Nobody`, with the reason

The targets of one head, and what it will be charged, count for all heads after it: so one cycle
serves all pods of a queue. The search is greedy and does not find the smallest set. Afterwards
targets that are not needed are put back, the last one first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import AT_ONCE
from scheduler_plugin.judging.turns import asked
from scheduler_plugin.judging.verdicts import Admitted, assume
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.decisions import Decision, OnItsWay, Take
from scheduler_plugin.reclaiming.errands import Errand
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.held_places import with_places
from scheduler_plugin.reclaiming.orders import Order
from scheduler_plugin.reclaiming.places.places import Place
from scheduler_plugin.reclaiming.sentences import InVain, Unserved, nobody, taken
from scheduler_plugin.reclaiming.sparing import spare
from scheduler_plugin.reclaiming.standings import Standings
from scheduler_plugin.reclaiming.supplies import Supply
from scheduler_plugin.reclaiming.takings import Takings
from scheduler_plugin.reclaiming.victims.victims import Away
from scheduler_plugin.reclaiming.wants import Nobody

PutOff = Callable[[QueueName, int], str]
"""Takes a queue and a number of pods: why these are not evicted now; "" where they may be."""


FEW = 16
"""The number of pods between two pauses."""


class Cycle:
    """Decisions for all pods that wait, in the order of the calls.

    The world may change while `steps` pauses: its sums are read each time. Each decision is checked
    again before it is carried out (`due_takes`).
    """

    def __init__(
        self,
        world: WorldView,
        now: datetime,
        away: Away,
        supply: Supply,
        put_off: PutOff = lambda queue, pods: "",
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            now: The wall-clock time.
            away: Pods that are no candidates.
            supply: Finds nodes and devices.
            put_off: Says whether evictions for a queue have to wait.
        """
        self._put_off = put_off
        self._world = world.trial()
        self._away = away
        self._supply = supply
        self._standings = Standings(self._world, away)
        self._takings = Takings(self._world, now, away, supply, self._standings)
        self._in_vain: dict[object, InVain] = {}
        # The pods that have what they need by a decision of this cycle.
        self._served_pods: set[PodUid] = set()

    @property
    def standings(self) -> Standings:
        """The usage and shares of each queue, with the decisions of this cycle."""
        return self._standings

    def prepare(self, pods: Iterable[PodView]) -> Iterator[None]:
        """Compute the shares of the requested resources in steps, before the pods are ordered."""
        keys: dict[ResourceKey, None] = {}
        for number, pod in enumerate(pods, start=1):
            keys |= {key: None for key, _ in asked(pod, self._world.facts)}
            if not number % FEW:
                yield
        yield from self._standings.prepare(keys)

    def serve(self, pod: PodView) -> Decision:
        """As `steps`, without pauses."""
        return next(found for found in self.steps(pod) if found is not None)

    def steps(self, pod: PodView) -> Iterator[Decision | None]:
        """Decide about a pod and its gang; the decision counts for all later ones.

        It yields None at each pause, and the decision last.
        """
        if pod.uid in self._served_pods:
            yield OnItsWay()
            return
        head = head_of(pod, self._world, self._served_pods)
        if isinstance(head, Nobody):
            yield head
        elif (before := self._in_vain.get(head.kind)) is not None:
            yield before.of(head)
        else:
            yield from self._standings.prepare(key for key, _ in head.adds)
            yield from self._served(pod, self._takings.errand(head))

    def _served(self, pod: PodView, errand: Errand) -> Iterator[Decision | None]:
        head = errand.head
        yield from self._supply.look(head, self._takings.gone)
        if doubt := self._supply.doubt(head, self._takings.gone):
            what = "room below a limit" if head.lacks_room else "a device"
            unmet = head.queue if self._standings.is_below_quota(head) else None
            yield Nobody(f"{head} waits for {what}, and {doubt}.", unmet)
        elif (found := (yield from self._take_enough(errand))) is not None:
            yield found
        else:
            yield from spare(errand, self._takings, self._supply)
            yield self._decided(pod, errand)

    def _take_enough(self, errand: Errand) -> Steps[Nobody | None]:
        """Take targets until nothing is lacking; else put all back and return the reason."""
        takings = self._takings
        while True:
            yield from self._supply.look(errand.head, takings.gone)
            if not (lacking := takings.lacking(errand)):
                return None
            victim = yield from takings.next(errand, lacking)
            if victim is not None:
                takings.take(errand, victim)
            elif not takings.goes_further(errand):
                found = self._nobody(errand, lacking)
                takings.give_back(errand)
                return found

    def _decided(self, pod: PodView, errand: Errand) -> Decision:
        head = errand.head
        if errand.taken and (why := self._put_off(head.queue, len(errand.to_evict))):
            self._takings.give_back(errand)
            return Nobody(f"{head} waits: {why}", head.queue)
        is_guaranteed = self._standings.is_below_quota(head)
        places = self._keep(head)
        holds = with_places(head.holds, places, errand.victims, self._world)
        if not errand.taken:
            return OnItsWay(() if head.lacks_room else holds, is_guaranteed)
        said = taken(head, errand.victims, places)
        return Take(pod, holds, errand.victims, said, places, is_device=not head.lacks_room)

    def _keep(self, head: Head) -> tuple[Place, ...]:
        """Assume the head, and reserve for it what it finds."""
        self._served_pods |= head.uids
        places = tuple(self._supply.keep(head, self._takings.gone))
        for case in head.cases:
            admitted = Admitted(queue=case.queue, claims=case.claims, requests=case.requests)
            assume(case.pod, admitted, self._world, AT_ONCE)
        return places

    # Messages.

    def _nobody(self, errand: Errand, lacking: tuple[ResourceKey, ...]) -> Nobody:
        head, orders = errand.head, self._takings.orders(errand, lacking)
        stay = Counter(why for order in orders for why in order.protected.values())
        is_within = errand.reach > 0 and any(map(errand.is_guaranteed, lacking))
        is_below = is_within or self._standings.is_below_quota(head)
        unmet = head.queue if is_below else None
        lacks = next(self._takings.shortages(errand), None)
        why_not = self._supply.why_not(head) if lacks is None else ""
        said = Unserved(lacking, lacks, stay, self._held_back_by(orders), why_not)
        found = Nobody(nobody(head, said, is_within, is_below), unmet)
        if head.kind is not None:
            self._in_vain[head.kind] = InVain(str(head), found)
        return found

    def _held_back_by(self, orders: Iterable[Order]) -> str:
        """Why one of the pods may not be evicted now; "" where there is none."""
        uids = (uid for order in orders for uid in order.held_back)
        return next((self._away.held_back[uid] for uid in uids), "")

"""One preemption cycle over all pods that wait, head by head.

    head ──► lacks nothing ──► `InProgress`
       └───► candidates in order, until they are enough ──► `Targets`, without unneeded targets
                                    └── not enough ───────► `NoCandidates`, with the reason

The targets of one head, and what it will be charged, count for all heads after it: so one cycle
serves all pods of a queue. The search is greedy and does not find the smallest set. Afterwards
targets that are not needed are put back, the last one first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import TRIAL_TIME
from scheduler_plugin.judging.pod_order import asked
from scheduler_plugin.judging.verdicts import Admitted, assume
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import PodUid, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.candidate_order import CandidateOrder
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.fill_back import fill_back
from scheduler_plugin.reclaiming.heads import Head, head_of
from scheduler_plugin.reclaiming.held_placements import with_placements
from scheduler_plugin.reclaiming.messages import (
    KnownNoCandidates,
    Unserved,
    no_candidates_text,
    taken,
)
from scheduler_plugin.reclaiming.placement.node_fit import Placement
from scheduler_plugin.reclaiming.placements import Placements
from scheduler_plugin.reclaiming.queue_shares import QueueShares
from scheduler_plugin.reclaiming.simulated_evictions import SimulatedEvictions
from scheduler_plugin.reclaiming.target_searches import TargetSearch
from scheduler_plugin.reclaiming.targets import Decision, InProgress, Targets
from scheduler_plugin.reclaiming.victims.victims import ExcludedPods

EvictionLimit = Callable[[QueueName, int], str]
"""Takes a queue and a number of pods: why these are not evicted now; "" where they may be."""


FEW = 16
"""The number of pods between two pauses."""


class Cycle:
    """Decisions for all pods that wait, in the order of the calls.

    The world may change while `steps` pauses: its sums are read each time. Each decision is checked
    again before it is carried out (`due_targets`).
    """

    def __init__(
        self,
        world: WorldView,
        now: datetime,
        excluded: ExcludedPods,
        placements: Placements,
        eviction_limit: EvictionLimit = lambda queue, pods: "",
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            now: The wall-clock time.
            excluded: Pods that are no candidates.
            placements: Finds nodes and devices.
            eviction_limit: Says whether evictions for a queue have to wait.
        """
        self._eviction_limit = eviction_limit
        self._world = world.trial()
        self._excluded = excluded
        self._placements = placements
        self._queue_shares = QueueShares(self._world, excluded)
        self._evictions = SimulatedEvictions(
            self._world, now, excluded, placements, self._queue_shares
        )
        self._known_results: dict[object, KnownNoCandidates] = {}
        # The pods that have what they need by a decision of this cycle.
        self._served_pods: set[PodUid] = set()

    @property
    def queue_shares(self) -> QueueShares:
        """The usage and shares of each queue, with the decisions of this cycle."""
        return self._queue_shares

    def prepare(self, pods: Iterable[PodView]) -> Iterator[None]:
        """Compute the shares of the requested resources in steps, before the pods are ordered."""
        keys: dict[ResourceKey, None] = {}
        for number, pod in enumerate(pods, start=1):
            keys |= {key: None for key, _ in asked(pod, self._world.facts)}
            if not number % FEW:
                yield
        yield from self._queue_shares.prepare(keys)

    def serve(self, pod: PodView) -> Decision:
        """As `steps`, without pauses."""
        return next(found for found in self.steps(pod) if found is not None)

    def steps(self, pod: PodView) -> Iterator[Decision | None]:
        """Decide about a pod and its gang; the decision counts for all later ones.

        It yields None at each pause, and the decision last.
        """
        if pod.uid in self._served_pods:
            yield InProgress()
            return
        head = head_of(pod, self._world, self._served_pods)
        if isinstance(head, NoCandidates):
            yield head
        elif (before := self._known_results.get(head.kind)) is not None:
            yield before.of(head)
        else:
            yield from self._queue_shares.prepare(key for key, _ in head.adds)
            yield from self._served(pod, self._evictions.search(head))

    def _served(self, pod: PodView, search: TargetSearch) -> Iterator[Decision | None]:
        head = search.head
        yield from self._placements.look(head, self._evictions.gone)
        if why_not_modelled := self._placements.why_not_modelled(head, self._evictions.gone):
            what = "room below a limit" if head.lacks_room else "a device"
            unmet = head.queue if self._queue_shares.is_below_quota(head) else None
            yield NoCandidates(f"{head} waits for {what}, and {why_not_modelled}.", unmet)
        elif (found := (yield from self._take_enough(search))) is not None:
            yield found
        else:
            yield from fill_back(search, self._evictions, self._placements)
            yield self._decided(pod, search)

    def _take_enough(self, search: TargetSearch) -> Steps[NoCandidates | None]:
        """Take targets until nothing is lacking; else put all back and return the reason."""
        evictions = self._evictions
        while True:
            yield from self._placements.look(search.head, evictions.gone)
            if not (short_of := evictions.short_of(search)):
                return None
            victim = yield from evictions.next(search, short_of)
            if victim is not None:
                evictions.take(search, victim)
            elif not evictions.extends_reach(search):
                found = self._no_candidates(search, short_of)
                evictions.put_back(search)
                return found

    def _decided(self, pod: PodView, search: TargetSearch) -> Decision:
        head = search.head
        if search.taken and (why := self._eviction_limit(head.queue, len(search.to_evict))):
            self._evictions.put_back(search)
            return NoCandidates(f"{head} waits: {why}", head.queue)
        is_guaranteed = self._queue_shares.is_below_quota(head)
        places = self._keep(head)
        holds = with_placements(head.holds, places, search.victims, self._world)
        if not search.taken:
            return InProgress(() if head.lacks_room else holds, is_guaranteed)
        said = taken(head, search.victims, places)
        return Targets(pod, holds, search.victims, said, places, is_device=not head.lacks_room)

    def _keep(self, head: Head) -> tuple[Placement, ...]:
        """Assume the head, and reserve for it what it finds."""
        self._served_pods |= head.uids
        places = tuple(self._placements.keep(head, self._evictions.gone))
        for case in head.cases:
            admitted = Admitted(queue=case.queue, claims=case.claims, requests=case.requests)
            assume(case.pod, admitted, self._world, TRIAL_TIME)
        return places

    # Messages.

    def _no_candidates(
        self, search: TargetSearch, short_of: tuple[ResourceKey, ...]
    ) -> NoCandidates:
        head, orders = search.head, self._evictions.orders(search, short_of)
        stay = Counter(why for order in orders for why in order.protected.values())
        is_within = search.reach > 0 and any(map(search.is_guaranteed, short_of))
        is_below = is_within or self._queue_shares.is_below_quota(head)
        unmet = head.queue if is_below else None
        lacks = next(self._evictions.shortfalls(search), None)
        why_not = self._placements.why_not(head) if lacks is None else ""
        said = Unserved(short_of, lacks, stay, self._held_back_by(orders), why_not)
        found = NoCandidates(no_candidates_text(head, said, is_within, is_below), unmet)
        if head.kind is not None:
            self._known_results[head.kind] = KnownNoCandidates(str(head), found)
        return found

    def _held_back_by(self, orders: Iterable[CandidateOrder]) -> str:
        """Why one of the pods may not be evicted now; "" where there is none."""
        uids = (uid for order in orders for uid in order.held_back)
        return next((self._excluded.held_back[uid] for uid in uids), "")

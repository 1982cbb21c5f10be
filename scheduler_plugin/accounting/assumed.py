"""Assumed pods, whose binding the API does not show yet: the read-only view.

There is one entry per claim, with its pods in the order of their decisions. The first pod pays: the
claim is charged to its queue (or to the queue of the claim's label). The other pods have joined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime

from scheduler_plugin.accounting.backoffs import Backoffs
from scheduler_plugin.accounting.charges.owners import Owner
from scheduler_plugin.accounting.holds import Holds
from scheduler_plugin.accounting.overlays import Overlay
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


@dataclass(frozen=True, slots=True)
class AssumedPod:
    """A pod whose binding was admitted, or that decided an owner before this process started."""

    uid: PodUid
    queue: QueueName
    non_preemptible: bool = False


@dataclass(frozen=True, slots=True)
class AssumedClaim:
    """A claim of an assumed pod.

    Attributes:
        label: The queue of the claim's label; "" if the first pod decides the owner.
        cost: What the claim will cost.
        decided_by: The pod whose queue became the owner, if it is not the assumed pod.
    """

    uid: ClaimUid
    label: QueueName
    cost: Charges
    decided_by: AssumedPod | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A claim and its assumed pods; `pods` is not changed in place."""

    label: QueueName
    cost: Charges
    pods: dict[PodUid, AssumedPod] = field(default_factory=dict)

    @property
    def first(self) -> AssumedPod:
        return next(iter(self.pods.values()))

    def queue(self) -> QueueName:
        return self.label or self.first.queue

    def is_non_preemptible(self, queue: QueueName, *, apart_from: PodUid | None = None) -> bool:
        pods = self.pods.values()
        return any(p.non_preemptible and p.queue == queue and p.uid != apart_from for p in pods)


@dataclass(frozen=True, slots=True)
class Part:
    """An addition to the sums of one queue."""

    queue: QueueName
    usage: Charges
    non_preemptible: Charges


@dataclass(frozen=True, slots=True)
class PodAssumption:
    """The claims and the own requests of an assumed pod."""

    claims: tuple[ClaimUid, ...] = ()
    requests: Part | None = None


@dataclass(frozen=True, slots=True)
class Tables:
    """All assumptions except holds. Values are replaced, never changed in place.

    Attributes:
        parts: What each claim's entry adds.
        until: When each assumed pod expires, in that order, since all are assumed equally long.
            Pods whose binding was requested do not expire.
        soon: When some of these expire before that, in that order, see `RETRIED_TTL`.
    """

    entries: MutableMapping[ClaimUid, Entry] = field(default_factory=dict)
    parts: MutableMapping[ClaimUid, Part] = field(default_factory=dict)
    assumed: MutableMapping[PodUid, PodAssumption] = field(default_factory=dict)
    until: MutableMapping[PodUid, datetime] = field(default_factory=dict)
    soon: MutableMapping[PodUid, datetime] = field(default_factory=dict)

    def trial(self) -> Tables:
        """A copy as overlays, with changes of its own."""
        return Tables(
            Overlay(self.entries),
            Overlay(self.parts),
            Overlay(self.assumed),
            Overlay(self.until),
            Overlay(self.soon),
        )


class AssumptionsView:
    """The decisions in flight, and what they add to each queue and its ancestors.

    Attributes:
        backoffs: Pods that may not borrow now, by equivalence class.
        group_backoffs: PodGroups that may not be admitted now, by namespace and name.
    """

    backoffs: Backoffs
    group_backoffs: Backoffs

    def __init__(
        self,
        path: Callable[[QueueName], tuple[QueueName, ...]],
        tables: Tables,
        sums: tuple[Totals, Totals],
        holds: Holds,
    ) -> None:
        """`sums` are what all assumptions and holds add: usage and non-preemptible use."""
        self._path = path
        self._tables = tables
        self.usage, self.non_preemptible = sums
        self.holds = holds

    def tried(self) -> tuple[Tables, tuple[Totals, Totals], Holds]:
        """Overlays of all tables and sums, for a trial."""
        usage, non_preemptible = self.usage.trial(), self.non_preemptible.trial()
        holds = self.holds.trial(usage, non_preemptible)
        return self._tables.trial(), (usage, non_preemptible), holds

    def is_assumed(self, pod: PodUid) -> bool:
        """Whether a decision about the pod is in flight."""
        return pod in self._tables.assumed

    def admitted(self) -> list[PodUid]:
        """The assumed pods, without those that only decided an owner."""
        return [
            uid for uid, assumed in self._tables.assumed.items() if assumed.requests is not None
        ]

    def __len__(self) -> int:
        return len(self._tables.assumed)

    def __contains__(self, claim: ClaimUid) -> bool:
        """Whether an assumed pod uses the claim."""
        return claim in self._tables.entries

    def owner(self, claim: ClaimUid) -> Owner | None:
        """The owner that the assumed pods of a claim decide; None if there are none."""
        entry = self._tables.entries.get(claim)
        return Owner(entry.queue(), entry.first.uid) if entry is not None else None

    def pods(self, claim: ClaimUid) -> tuple[PodUid, ...]:
        """The assumed pods of a claim, in the order of their decisions."""
        entry = self._tables.entries.get(claim)
        return tuple(entry.pods) if entry else ()

    def is_paid_by_another(self, claim: ClaimUid, pod: PodUid) -> bool:
        """Whether the claim is charged for another assumed pod."""
        entry = self._tables.entries.get(claim)
        return entry is not None and entry.first.uid != pod

    def cost_for_another(self, claim: ClaimUid, pod: PodUid) -> Charges | None:
        """What is assumed that the claim costs another assumed pod; None if no other pays."""
        entry = self._tables.entries.get(claim)
        return entry.cost if entry is not None and entry.first.uid != pod else None

    def is_non_preemptible(self, claim: ClaimUid, queue: QueueName, *, apart_from: PodUid) -> bool:
        """Whether another assumed pod of the queue uses the claim non-preemptibly."""
        entry = self._tables.entries.get(claim)
        return entry is not None and entry.is_non_preemptible(queue, apart_from=apart_from)

    def awaits_binding(self, pod: PodUid) -> bool:
        """Whether the pod's binding was requested, and its outcome is not known yet."""
        return pod in self._tables.assumed and pod not in self._tables.until

    def counted_for(
        self,
        pod: PodUid,
        paying: Collection[ClaimUid] = (),
        non_preemptibly: Collection[ClaimUid] = (),
    ) -> tuple[Totals, Totals]:
        """What the sums contain for this pod: usage and non-preemptible use.

        A verdict on the pod subtracts this, since it counts the same anew. It also subtracts the
        usage of claims in `paying`, whichever pod pays for them now, and the non-preemptible use of
        claims in `non_preemptibly`.
        """
        usage, non_preemptible = Totals(self._path), Totals(self._path)
        assumed = self._tables.assumed.get(pod)
        if assumed is not None and assumed.requests is not None:
            usage.add(assumed.requests.queue, assumed.requests.usage)
            non_preemptible.add(assumed.requests.queue, assumed.requests.non_preemptible)
        hold = self.holds.counted_for(pod)
        if hold is not None:
            usage.add(hold.queue, hold.usage)
            non_preemptible.add(hold.queue, hold.non_preemptible)
        claims = assumed.claims if assumed is not None else ()
        only = (claim for claim in claims if not self._is_other_non_preemptible(claim, pod))
        for claim in {*only, *non_preemptibly} & self._tables.entries.keys():
            part = self._tables.parts[claim]
            non_preemptible.add(part.queue, part.non_preemptible)
        first = (claim for claim in claims if self._tables.entries[claim].first.uid == pod)
        for claim in {*first, *paying} & self._tables.entries.keys():
            usage.add(self._tables.parts[claim].queue, self._tables.parts[claim].usage)
        return usage, non_preemptible

    def _is_other_non_preemptible(self, claim: ClaimUid, pod: PodUid) -> bool:
        queue = self._tables.parts[claim].queue
        return self._tables.entries[claim].is_non_preemptible(queue, apart_from=pod)

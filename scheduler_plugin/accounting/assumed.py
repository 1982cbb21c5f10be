"""What is assumed of pods whose binding the API does not show yet, for who only reads it.

There is one entry per claim; its pods stand in the order of their decisions. The first of them
pays: the claim counts for its queue (or for the label's, where there is one), the others have
joined.
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
    """A claim as a verdict left it.

    Attributes:
        label: The queue of the claim's label; "" where the first pod decides.
        cost: What the claim will cost.
        decided_by: The pod whose queue became owner where that is not the admitted one.
    """

    uid: ClaimUid
    label: QueueName
    cost: Charges
    decided_by: AssumedPod | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A claim that pods are about to use; `pods` is not changed in place."""

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
    """What something adds to the sums of one queue."""

    queue: QueueName
    usage: Charges
    non_preemptible: Charges


@dataclass(frozen=True, slots=True)
class Held:
    """What is assumed of one pod."""

    claims: tuple[ClaimUid, ...] = ()
    requests: Part | None = None


@dataclass(frozen=True, slots=True)
class Tables:
    """All that is assumed beside holds. Values are replaced, never changed in place.

    Attributes:
        parts: What each claim's entry adds.
        until: Who lapses when, in that order, since each is believed for the same time. Those whose
            binding was asked for are not among them.
    """

    entries: MutableMapping[ClaimUid, Entry] = field(default_factory=dict)
    parts: MutableMapping[ClaimUid, Part] = field(default_factory=dict)
    held: MutableMapping[PodUid, Held] = field(default_factory=dict)
    until: MutableMapping[PodUid, datetime] = field(default_factory=dict)

    def trial(self) -> Tables:
        """The same, with changes of its own."""
        return Tables(
            Overlay(self.entries), Overlay(self.parts), Overlay(self.held), Overlay(self.until)
        )


class AssumptionsView:
    """The table of decisions in flight, and what they add to each queue and its ancestors.

    Attributes:
        backoffs: Which pods do not borrow now, by their equivalence class.
        group_backoffs: Which PodGroups do not begin again now, by namespace and name.
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
        """`sums` are what all of it adds: usage and non-preemptible use."""
        self._path = path
        self._tables = tables
        self.usage, self.non_preemptible = sums
        self.holds = holds

    def tried(self) -> tuple[Tables, tuple[Totals, Totals], Holds]:
        """All of it for a trial, as overlays."""
        usage, non_preemptible = self.usage.trial(), self.non_preemptible.trial()
        holds = self.holds.trial(usage, non_preemptible)
        return self._tables.trial(), (usage, non_preemptible), holds

    def is_assumed(self, pod: PodUid) -> bool:
        """Whether a decision about the pod is in flight."""
        return pod in self._tables.held

    def admitted(self) -> list[PodUid]:
        """Those of whom something is assumed, but for those that only decided an owner."""
        return [uid for uid, held in self._tables.held.items() if held.requests is not None]

    def __len__(self) -> int:
        return len(self._tables.held)

    def __contains__(self, claim: ClaimUid) -> bool:
        """Whether a pod is about to use the claim."""
        return claim in self._tables.entries

    def owner(self, claim: ClaimUid) -> Owner | None:
        """The owner that was decided for a claim without a label."""
        entry = self._tables.entries.get(claim)
        return Owner(entry.queue(), entry.first.uid) if entry is not None else None

    def pods(self, claim: ClaimUid) -> tuple[PodUid, ...]:
        """The pods that are about to use a claim, in the order of their decisions."""
        entry = self._tables.entries.get(claim)
        return tuple(entry.pods) if entry else ()

    def is_paid_by_another(self, claim: ClaimUid, pod: PodUid) -> bool:
        """Whether the claim counts already, whatever becomes of this pod."""
        entry = self._tables.entries.get(claim)
        return entry is not None and entry.first.uid != pod

    def is_non_preemptible(self, claim: ClaimUid, queue: QueueName, *, apart_from: PodUid) -> bool:
        """Whether another pod of the queue is about to use the claim non-preemptibly."""
        entry = self._tables.entries.get(claim)
        return entry is not None and entry.is_non_preemptible(queue, apart_from=apart_from)

    def awaits_binding(self, pod: PodUid) -> bool:
        """Whether the pod's binding was asked for, and its outcome is not seen yet."""
        return pod in self._tables.held and pod not in self._tables.until

    def counted_for(
        self,
        pod: PodUid,
        paying: Collection[ClaimUid] = (),
        non_preemptibly: Collection[ClaimUid] = (),
    ) -> tuple[Totals, Totals]:
        """What is counted for this very pod: usage and non-preemptible use.

        A verdict on the pod sets it aside, since the verdict counts the same anew. So it does
        with the usage of the claims that the pod pays for, whoever pays for them by now, and with
        the non-preemptible use of those for which it is asked about the quota.
        """
        usage, non_preemptible = Totals(self._path), Totals(self._path)
        held = self._tables.held.get(pod)
        if held is not None and held.requests is not None:
            usage.add(held.requests.queue, held.requests.usage)
            non_preemptible.add(held.requests.queue, held.requests.non_preemptible)
        hold = self.holds.counted_for(pod)
        if hold is not None:
            usage.add(hold.queue, hold.usage)
            non_preemptible.add(hold.queue, hold.non_preemptible)
        claims = held.claims if held is not None else ()
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

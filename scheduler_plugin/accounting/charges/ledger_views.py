"""The read-only view of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from scheduler_plugin.accounting.charges.entries import ClaimEntry, PodEntry, QueueUsage
from scheduler_plugin.accounting.queues.totals import Totals, TotalsView
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.tables import Index


class LedgerView:
    """The sum of all entries."""

    _usage: Totals
    _non_preemptible: Totals
    _waiting: Totals
    _terminating: Totals
    _uncharged: Totals
    _touched: set[QueueName]
    _claims: dict[ClaimUid, ClaimEntry]
    _pods: dict[PodUid, PodEntry]
    _owned: Index[QueueName, ClaimUid]
    _bound: Index[QueueName, PodUid]
    _shared_out: dict[QueueName, int]
    _orphans: dict[ClaimUid, None]
    _orphaned: dict[QueueName, int]
    _unattributed_of: Index[QueueName, PodUid]

    @property
    def usage(self) -> TotalsView:
        """The amounts that are charged."""
        return self._usage

    @property
    def non_preemptible(self) -> TotalsView:
        """The part of the usage by non-preemptible pods."""
        return self._non_preemptible

    @property
    def waiting(self) -> TotalsView:
        """What pending pods ask for."""
        return self._waiting

    @property
    def terminating(self) -> TotalsView:
        """The part of the usage that is released once terminating pods are deleted."""
        return self._terminating

    def claim(self, uid: ClaimUid) -> ClaimEntry | None:
        return self._claims.get(uid)

    def pod(self, uid: PodUid) -> PodEntry | None:
        return self._pods.get(uid)

    def owned_by(self, queue: QueueName) -> tuple[ClaimUid, ...]:
        """The claims that are charged to a queue itself, not to its descendants."""
        return tuple(self._owned.get(queue, ()))

    def bound_of(self, queue: QueueName) -> tuple[PodUid, ...]:
        """The bound pods whose own requests are charged to a queue itself, not to descendants."""
        return tuple(self._bound.get(queue, ()))

    def orphans(self) -> tuple[ClaimUid, ...]:
        """The claims that are used and charged to no queue."""
        return tuple(sorted(self._orphans))

    def unattributed(self) -> Charges:
        """What is used and charged to no queue: by orphans, and by pods without a verdict."""
        return self._uncharged.of(NO_QUEUE)

    def unattributed_of(self, queue: QueueName) -> tuple[PodUid, ...]:
        """The pods that use devices and name the queue, but are not charged to it."""
        return tuple(sorted(self._unattributed_of.get(queue, ())))

    @property
    def is_touched(self) -> bool:
        return bool(self._touched)

    def of(self, queue: QueueName) -> QueueUsage:
        """The figures of one queue's status."""
        usage = self.usage.of(queue)
        return QueueUsage(
            usage=usage,
            non_preemptible=self.non_preemptible.of(queue),
            requested=usage.plus(self.waiting.of(queue)),
            owned=len(self._owned.get(queue, ())),
            shared_out=self._shared_out.get(queue, 0),
            orphans=self._orphaned.get(queue, 0),
        )

    def is_charged(self, queue: QueueName) -> bool:
        """Whether anything is charged to a queue or its descendants, or it owns a free claim."""
        return queue in self.usage or queue in self._owned

    def by_queue(self) -> Mapping[QueueName, QueueUsage]:
        """The figures of every queue that has any, by name."""
        return {queue: self.of(queue) for queue in sorted(set(self._names()))}

    def _names(self) -> Iterator[QueueName]:
        return chain(self.usage.by_queue(), self.waiting.by_queue(), self._owned, self._orphaned)

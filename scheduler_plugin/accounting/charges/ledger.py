"""The charges of all queues that follow from API objects: each claim once, to its owner.

A claim is charged while it is allocated and labelled with an owner; a pod's own requests are
charged while it is bound and has not ended. The ledger is the sum of the entries:

    facts ──claim_entry, pod_entry──► entries ──post──► sums by queue, ancestors included

Posting replaces the entry of the same UID. So a repeated event changes nothing, and a ledger that
followed the events equals one that was built from the objects, provided that each entry whose
facts changed is posted again; `books` and `world` do so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from scheduler_plugin.accounting.charges.entries import ClaimEntry, PodEntry
from scheduler_plugin.accounting.charges.ledger_views import LedgerView
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.tables import count, enter

K = TypeVar("K")
E = TypeVar("E")


class Ledger(LedgerView):
    """The ledger with its changes. The cost of an entry is its size times its queue's depth."""

    def __init__(self, path: Callable[[QueueName], tuple[QueueName, ...]]) -> None:
        self._touched = set()
        self._usage = Totals(path, self._touched)
        self._non_preemptible = Totals(path, self._touched)
        self._waiting = Totals(path, self._touched)
        self._terminating = Totals(path)
        self._totals = (self._usage, self._non_preemptible, self._waiting, self._terminating)
        self._claims = {}
        self._pods = {}
        self._owned = {}
        self._bound = {}
        self._shared_out = {}
        self._orphans = {}
        self._orphaned = {}
        self._uncharged = Totals(lambda queue: (queue,))
        self._unattributed_of = {}

    def touch(self, queues: Iterable[QueueName]) -> None:
        """Note that the status of these queues may have changed."""
        self._touched.update(queues)

    def take_touched(self) -> tuple[QueueName, ...]:
        """The queues whose status may have changed since the last call, ancestors included."""
        touched = tuple(sorted(self._touched))
        self._touched.clear()
        return touched

    def post_claim(self, uid: ClaimUid, entry: ClaimEntry | None) -> bool:
        """Replace a claim's entry; returns whether it changed."""
        return _post(self._claims, uid, entry, self._count_claim)

    def _count_claim(self, uid: ClaimUid, entry: ClaimEntry, sign: int) -> None:
        if entry.is_charged:
            self._charge(entry.owner, entry, sign)
            enter(self._owned, [entry.owner], uid, sign)
            self._touched.add(entry.owner)
            if entry.shared_out:
                count(self._shared_out, entry.owner, sign)
        elif entry.waits_for:
            self._waiting.add(entry.waits_for, entry.cost, sign)
        elif entry.orphan:
            self._count_orphan(uid, entry, sign)

    def _count_orphan(self, uid: ClaimUid, entry: ClaimEntry, sign: int) -> None:
        if sign > 0:
            self._orphans[uid] = None
        else:
            del self._orphans[uid]
        self._uncharged.add(NO_QUEUE, entry.cost, sign)
        for queue in entry.orphan_of:
            count(self._orphaned, queue, sign)
            self._touched.add(queue)

    def post_pod(self, uid: PodUid, entry: PodEntry | None) -> bool:
        """Replace a pod's entry; returns whether it changed."""
        return _post(self._pods, uid, entry, self._count_pod)

    def _count_pod(self, uid: PodUid, entry: PodEntry, sign: int) -> None:
        if not entry.bound:
            self._waiting.add(entry.queue, entry.cost, sign)
            return
        if not entry.queue:
            self._count_unattributed(uid, entry, sign)
            return
        enter(self._bound, [entry.queue], uid, sign)
        self._charge(entry.queue, entry, sign)

    def _charge(self, queue: QueueName, entry: ClaimEntry | PodEntry, sign: int) -> None:
        self._usage.add(queue, entry.cost, sign)
        if entry.non_preemptible:
            self._non_preemptible.add(queue, entry.cost, sign)
        if entry.terminating:
            self._terminating.add(queue, entry.cost, sign)

    def _count_unattributed(self, uid: PodUid, entry: PodEntry, sign: int) -> None:
        self._uncharged.add(NO_QUEUE, entry.cost, sign)
        if entry.named:
            self._touched.add(entry.named)
            enter(self._unattributed_of, [entry.named], uid, sign)

    def follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        """Move the sums of these queues from their old paths, the values, to their current ones."""
        for totals in self._totals:
            totals.follow(paths)


def _post(table: dict[K, E], uid: K, entry: E | None, count: Callable[[K, E, int], None]) -> bool:
    before = table.pop(uid, None)
    if entry is not None:
        table[uid] = entry
    if entry == before:
        return False
    if before is not None:
        count(uid, before, -1)
    if entry is not None:
        count(uid, entry, 1)
    return True

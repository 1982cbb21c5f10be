"""What is charged to whom, as the API's objects say: each claim once, to its owner.

A claim is charged while it is allocated and has an owner by label; a pod's own requests while it
is bound and has not ended. An *entry* is what one claim or pod is charged, and follows from the
facts alone. The ledger is the sum of the entries:

    facts ──claim_entry, pod_entry──► entries ──post──► sums by queue, ancestors included

Posting replaces the entry of the same UID. So a second event changes nothing, and a ledger that
followed the events equals one that was built from the objects, as long as every entry whose
facts changed is posted again; `world` sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from scheduler_plugin.accounting.charges.costs import (
    asked_cost,
    claim_cost,
    granted_cost,
    is_accounted,
    mirrored_cost,
)
from scheduler_plugin.accounting.charges.owners import is_orphan, labelled_owner
from scheduler_plugin.accounting.facts import Facts
from scheduler_plugin.accounting.mirror_pods import is_capped
from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, ClaimUid, PodUid, QueueName
from scheduler_plugin.objects.pods import PodView, oldest
from scheduler_plugin.objects.tables import Index, count, enter

K = TypeVar("K")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class ClaimEntry:
    """What one accounted claim means for the queues.

    Attributes:
        owner: The queue that is charged; "" while nobody is.
        cost: Exact where the claim is allocated, else the most that it can be.
        non_preemptible: Whether a consumer of the owner is non-preemptible.
        shared_out: Whether a consumer is of another queue.
        orphan: Whether it is used without an owner.
        orphan_of: The queues whose pods use it so; none where there is an owner.
        waits_for: The queue whose pods wait for it, while nobody is charged; "" for none.
        leaving: Whether all who use it are on their way out, so that it is free soon.
    """

    owner: QueueName
    cost: Charges
    non_preemptible: bool = False
    shared_out: bool = False
    orphan: bool = False
    orphan_of: tuple[QueueName, ...] = ()
    waits_for: QueueName = NO_QUEUE
    leaving: bool = False

    @property
    def is_charged(self) -> bool:
        return bool(self.owner)


@dataclass(frozen=True, slots=True)
class PodEntry:
    """What one pod's own requests mean for its queue: charged once bound, awaited before.

    Attributes:
        queue: The queue; "" for nobody, where it is bound and its queue is not to be charged.
        named: The queue that it says it has and may not use; "" for none, or where that is not
            known yet.
    """

    queue: QueueName
    cost: Charges
    non_preemptible: bool
    bound: bool
    leaving: bool = False
    named: QueueName = NO_QUEUE


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUsage:
    """The figures of a queue's status.

    All but the numbers of claims include the queue's descendants; a claim is owned by one queue.

    Attributes:
        requested: Usage, and what waiting pods ask for.
        shared_out: How many of the owned claims have a foreign consumer.
        orphans: How many claims its pods use that nobody owns.
    """

    usage: Charges = NO_CHARGES
    non_preemptible: Charges = NO_CHARGES
    requested: Charges = NO_CHARGES
    owned: int = 0
    shared_out: int = 0
    orphans: int = 0


def claim_entry(claim: ClaimView, facts: Facts) -> ClaimEntry | None:
    """A claim's entry; None for one that is not accounted, or that nobody waits for or has."""
    if not is_accounted(claim, facts.catalog):
        return None
    owner = labelled_owner(claim, facts)
    cost = claim_cost(claim, facts.catalog)
    if owner is None or not claim.is_allocated:
        if is_orphan(claim, facts):
            return ClaimEntry(NO_QUEUE, cost, orphan=True, orphan_of=_users(claim, facts))
        return ClaimEntry(NO_QUEUE, cost, waits_for=_waits_for(claim, owner, facts))
    using = (p for p in facts.consumers(claim) if not p.ended and facts.knows_queue_of(p))
    consumers = [(facts.queue_of(p), p) for p in using]
    return ClaimEntry(
        owner,
        cost,
        non_preemptible=any(queue == owner and p.non_preemptible for queue, p in consumers),
        shared_out=any(queue != owner for queue, _ in consumers),
        leaving=_is_left(claim, facts),
    )


def _is_left(claim: ClaimView, facts: Facts) -> bool:
    """Whether every user is being deleted, ended, or gone: a controller clears it after them."""
    stays = (not (pod.ended or pod.deleting) for pod in facts.consumers(claim))
    return bool(claim.reserved_for) and not claim.other_consumers and not any(stays)


def _users(claim: ClaimView, facts: Facts) -> tuple[QueueName, ...]:
    """The queues of the consumers that have not ended."""
    queues = {facts.queue_of(pod) for pod in facts.consumers(claim) if not pod.ended}
    return tuple(sorted(queues - {NO_QUEUE}))


def _waits_for(claim: ClaimView, owner: QueueName | None, facts: Facts) -> QueueName:
    """The owner if there is one, else the queue of the oldest pod that waits and has one."""
    waiting = oldest(p for p in facts.pods_naming(claim) if not p.is_bound and not p.ended)
    queues = (owner or facts.queue_of(pod) for pod in waiting)
    return next((queue for queue in queues if queue), NO_QUEUE)


def pod_entry(pod: PodView, facts: Facts) -> PodEntry | None:
    """A pod's entry; None for one without accounted requests, or at its end.

    None, too, for one that waits and has no queue. One that got its node without a verdict is
    charged to no queue that it may not use.
    """
    if pod.ended or not pod.requests:
        return None
    cost = _pod_cost(pod, facts)
    queue = (facts.charged_queue if pod.is_bound else facts.queue_of)(pod)
    if not cost or not (queue or pod.is_bound):
        return None
    leaving = pod.is_bound and pod.deleting
    is_known = bool(queue) or pod.namespace not in facts.namespaces
    named = NO_QUEUE if is_known else facts.queue_of(pod)
    return PodEntry(queue, cost, pod.non_preemptible, pod.is_bound, leaving, named)


def _pod_cost(pod: PodView, facts: Facts) -> Charges:
    pod = facts.without_lost_claim(pod)
    if not pod.is_bound:
        return asked_cost(pod, facts.catalog)
    if is_capped(pod):
        return mirrored_cost(pod, facts.mirrors_before(pod), facts.catalog)
    return granted_cost(pod, facts.catalog)


def why_unattributed(pod: PodView, facts: Facts) -> str:
    """Why what a bound pod's requests use is charged to nobody, as a sentence; "" where it is.

    "", too, where more may be known in a moment.
    """
    if pod.ended or not pod.is_bound or facts.awaits(pod) or facts.charged_queue(pod):
        return ""
    return unattributed_sentence(pod, facts) if _pod_cost(pod, facts) else ""


def unattributed_sentence(pod: PodView, facts: Facts) -> str:
    """What a pod's requests use that is charged to nobody, and why."""
    used = ", ".join(f"{amount} {key}" for key, amount in _pod_cost(pod, facts))
    queue = facts.queue_of(pod)
    why = f'its namespace may not use queue "{queue}"' if queue else "it has no queue"
    return f"{pod} got its node without a verdict, and {why}: its {used} are charged to nobody."


class Ledger:
    """The sum of all entries. One update costs the entry's own size and its queue's depth.

    Attributes:
        usage: What is charged.
        non_preemptible: What of it non-preemptible pods use.
        waiting: What waiting pods ask for.
        leaving: What of the usage is released as soon as pods are gone that are being deleted.
    """

    def __init__(self, path: Callable[[QueueName], tuple[QueueName, ...]]) -> None:
        self._touched: set[QueueName] = set()
        self.usage = Totals(path, self._touched)
        self.non_preemptible = Totals(path, self._touched)
        self.waiting = Totals(path, self._touched)
        self.leaving = Totals(path)
        self._totals = (self.usage, self.non_preemptible, self.waiting, self.leaving)
        self._claims: dict[ClaimUid, ClaimEntry] = {}
        self._pods: dict[PodUid, PodEntry] = {}
        self._owned: Index[QueueName, ClaimUid] = {}
        self._bound: Index[QueueName, PodUid] = {}
        self._shared_out: dict[QueueName, int] = {}
        self._orphans: dict[ClaimUid, None] = {}
        self._orphaned: dict[QueueName, int] = {}
        self._nobody = Totals(lambda queue: (queue,))
        self._shut_out: Index[QueueName, PodUid] = {}

    def claim(self, uid: ClaimUid) -> ClaimEntry | None:
        return self._claims.get(uid)

    def pod(self, uid: PodUid) -> PodEntry | None:
        return self._pods.get(uid)

    def owned_by(self, queue: QueueName) -> tuple[ClaimUid, ...]:
        """The claims that are charged to a queue itself."""
        return tuple(self._owned.get(queue, ()))

    def bound_of(self, queue: QueueName) -> tuple[PodUid, ...]:
        """The bound pods whose own requests are charged to a queue itself."""
        return tuple(self._bound.get(queue, ()))

    def orphans(self) -> tuple[ClaimUid, ...]:
        """The claims that are used and that nobody is charged for."""
        return tuple(sorted(self._orphans))

    def unattributed(self) -> Charges:
        """What is in use and charged to nobody: by orphans, and by pods that nobody judged."""
        return self._nobody.of(NO_QUEUE)

    def shut_out(self, queue: QueueName) -> tuple[PodUid, ...]:
        """The pods that use devices and name the queue, which is not charged for them."""
        return tuple(sorted(self._shut_out.get(queue, ())))

    def touch(self, queues: Iterable[QueueName]) -> None:
        """Note that something else of these queues changed that their status shows."""
        self._touched.update(queues)

    @property
    def is_touched(self) -> bool:
        return bool(self._touched)

    def take_touched(self) -> tuple[QueueName, ...]:
        """The queues whose figures may have changed since the last call, ancestors included."""
        touched = tuple(sorted(self._touched))
        self._touched.clear()
        return touched

    def post_claim(self, uid: ClaimUid, entry: ClaimEntry | None) -> bool:
        """Replace a claim's entry; False where it stays what it was."""
        return _post(self._claims, uid, entry, self._count_claim)

    def _count_claim(self, uid: ClaimUid, entry: ClaimEntry, sign: int) -> None:
        if entry.is_charged:
            self._charge(entry.owner, entry, sign)
            enter(self._owned, [entry.owner], uid, sign)
            self._touched.add(entry.owner)
            if entry.shared_out:
                count(self._shared_out, entry.owner, sign)
        elif entry.waits_for:
            self.waiting.add(entry.waits_for, entry.cost, sign)
        elif entry.orphan:
            self._count_orphan(uid, entry, sign)

    def _count_orphan(self, uid: ClaimUid, entry: ClaimEntry, sign: int) -> None:
        if sign > 0:
            self._orphans[uid] = None
        else:
            del self._orphans[uid]
        self._nobody.add(NO_QUEUE, entry.cost, sign)
        for queue in entry.orphan_of:
            count(self._orphaned, queue, sign)
            self._touched.add(queue)

    def post_pod(self, uid: PodUid, entry: PodEntry | None) -> bool:
        """Replace a pod's entry; False where it stays what it was."""
        return _post(self._pods, uid, entry, self._count_pod)

    def _count_pod(self, uid: PodUid, entry: PodEntry, sign: int) -> None:
        if not entry.bound:
            self.waiting.add(entry.queue, entry.cost, sign)
            return
        if not entry.queue:
            self._count_unattributed(uid, entry, sign)
            return
        enter(self._bound, [entry.queue], uid, sign)
        self._charge(entry.queue, entry, sign)

    def _charge(self, queue: QueueName, entry: ClaimEntry | PodEntry, sign: int) -> None:
        self.usage.add(queue, entry.cost, sign)
        if entry.non_preemptible:
            self.non_preemptible.add(queue, entry.cost, sign)
        if entry.leaving:
            self.leaving.add(queue, entry.cost, sign)

    def _count_unattributed(self, uid: PodUid, entry: PodEntry, sign: int) -> None:
        self._nobody.add(NO_QUEUE, entry.cost, sign)
        if entry.named:
            self._touched.add(entry.named)
            enter(self._shut_out, [entry.named], uid, sign)

    def follow(self, paths: Mapping[QueueName, tuple[QueueName, ...]]) -> None:
        """Move what queues are charged from these paths, the old ones, to those of now."""
        for totals in self._totals:
            totals.follow(paths)

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
        """Whether anything is charged to a queue or below it, or it owns what costs nothing."""
        return queue in self.usage or queue in self._owned

    def by_queue(self) -> Mapping[QueueName, QueueUsage]:
        """The figures of every queue that has any, by name."""
        return {queue: self.of(queue) for queue in sorted(set(self._names()))}

    def _names(self) -> Iterator[QueueName]:
        return chain(self.usage.by_queue(), self.waiting.by_queue(), self._owned, self._orphaned)


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

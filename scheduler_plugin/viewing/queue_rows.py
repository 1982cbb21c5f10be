"""Queues as a tree, and the charges of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scheduler_plugin.accounting.books_views import BooksView
from scheduler_plugin.objects.amounts import NO_KEY, ResourceKey
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, Queue, QueueName
from scheduler_plugin.viewing.measured_rows import Cost, cost_in, cost_of_claim


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A queue and one entry or class that it lists, uses or requests; see `measured_rows`.

    Attributes:
        device_class: The key of the entry or class; "" if there is none.
        depth: How many queues are above it.
        quota: The quota; None is unlimited, as with `limit`.
        requested: Usage plus the requests of waiting pods.
    """

    queue: QueueName
    depth: int
    device_class: ResourceKey = NO_KEY
    usage: int = 0
    non_preemptible: int = 0
    requested: int = 0
    quota: int | None = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRow:
    """A claim or pod that one queue is charged for, or uses while another queue is charged.

    Attributes:
        kind: `ResourceClaim`, or `Pod` for its own requests of devices.
        payer: The queue that is charged; "" for none.
        cost: The amount of each entry and class that the payer is charged.
        users: Pods that use it, as namespace/name.
    """

    kind: str
    namespace: str
    name: str
    payer: QueueName
    cost: Cost
    users: tuple[str, ...]


def queue_rows(books: BooksView) -> Iterator[QueueRow]:
    """All queues, each below its parent; a queue without parent or in a cycle is a root."""
    below: dict[QueueName, list[Queue]] = {}
    for queue in sorted(books.facts.tree, key=lambda q: q.name):
        below.setdefault(_parent(books, queue), []).append(queue)
    yield from _subtree(books, below, NO_QUEUE, 0)


def _parent(books: BooksView, queue: Queue) -> QueueName:
    path = books.facts.tree.path(queue.name)
    if len(path) == 1 or queue.name in books.facts.tree.path(path[1])[1:]:
        return NO_QUEUE
    return path[1]


def _subtree(
    books: BooksView, below: Mapping[QueueName, list[Queue]], parent: QueueName, depth: int
) -> Iterator[QueueRow]:
    for queue in below.get(parent, ()):
        yield from _rows_of(books, queue, depth)
        yield from _subtree(books, below, queue.name, depth + 1)


def _keys_of(books: BooksView, queue: Queue) -> list[ResourceKey]:
    """What a queue lists, uses or requests, each name once."""
    found = books.ledger.of(queue.name)
    known = {*queue.shares, *(key for key, _ in (*found.usage, *found.requested))}
    return books.facts.tree.shown_keys(queue.name, known)


def key_named(books: BooksView, queue: QueueName, name: str) -> ResourceKey:
    """The key that a name stands for in a queue; a name of no entry is that of a class."""
    found = books.facts.tree.get(queue)
    keys = _keys_of(books, found) if found is not None else ()
    return next((key for key in keys if str(key) == name), ResourceKey(name))


def _rows_of(books: BooksView, queue: Queue, depth: int) -> Iterator[QueueRow]:
    found = books.ledger.of(queue.name)
    keys = _keys_of(books, queue)
    if not keys:
        yield QueueRow(queue=queue.name, depth=depth)
    for key in keys:
        share = queue.shares.get(key)
        yield QueueRow(
            queue=queue.name,
            depth=depth,
            device_class=key,
            usage=found.usage[key],
            non_preemptible=found.non_preemptible[key],
            requested=found.requested[key],
            quota=share.quota.most if share else 0,
            limit=share.limit.most if share else None,
        )


def charge_rows(books: BooksView, queue: QueueName) -> Iterator[ChargeRow]:
    """What a queue is charged for, then what its pods use and other queues are charged for."""
    yield from (row for row in claim_rows(books) if row.payer == queue)
    for uid in books.ledger.bound_of(queue):
        pod, entry = books.facts.pod(uid), books.ledger.pod(uid)
        if pod and entry and entry.cost:
            users = (f"{pod.namespace}/{pod.name}",)
            cost = cost_in(books, queue, entry.cost)
            yield _row("Pod", (pod.namespace, pod.name), queue, cost, users)
    yield from _used_for_free(books, queue)


def _used_for_free(books: BooksView, queue: QueueName) -> Iterator[ChargeRow]:
    for claim in _sorted(books):
        entry = books.ledger.claim(claim.uid)
        if entry and entry.owner != queue and claim.is_allocated:
            ours = [p for p in books.facts.consumers(claim) if books.facts.queue_of(p) == queue]
            users = tuple(f"{pod.namespace}/{pod.name}" for pod in ours)
            if users:
                yield _row(
                    "ResourceClaim", claim.key, entry.owner, cost_of_claim(books, entry), users
                )


def claim_rows(books: BooksView) -> Iterator[ChargeRow]:
    """All accounted claims, with the queue that is charged and the pods that use them."""
    for claim in _sorted(books):
        if entry := books.ledger.claim(claim.uid):
            users = tuple(f"{p.namespace}/{p.name}" for p in books.facts.consumers(claim))
            yield _row("ResourceClaim", claim.key, entry.owner, cost_of_claim(books, entry), users)


def _sorted(books: BooksView) -> list[ClaimView]:
    return sorted(books.facts.claims(), key=lambda claim: claim.key)


def _row(
    kind: str, key: tuple[str, str], payer: QueueName, cost: Cost, users: tuple[str, ...]
) -> ChargeRow:
    return ChargeRow(kind=kind, namespace=key[0], name=key[1], payer=payer, cost=cost, users=users)

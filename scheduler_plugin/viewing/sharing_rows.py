"""Claims with their owners, and the pods that share them, by queue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from scheduler_plugin.accounting.group_claims import all_groups
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.viewing.measured_rows import Cost, cost_of_claim


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """An accounted claim, for viewers who may read claims.

    Attributes:
        owner: The queue that is charged; "" for none.
        cost: The amount of each entry and class; the largest possible amount before the allocation.
        devices: The names that their drivers gave them.
        consumers: How many pods use it, or reserve it.
        groups: The PodGroups that it is reserved for, in place of their pods.
    """

    namespace: str
    name: str
    owner: QueueName
    is_allocated: bool
    cost: Cost
    devices: tuple[str, ...]
    consumers: int
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharers:
    """Pods of one queue that use a claim; "" for pods without a queue."""

    queue: QueueName
    pods: tuple[str, ...]


def claim_row(world: WorldView, claim: ClaimView) -> ClaimRow | None:
    """The row of a claim; None if it is not accounted."""
    entry = world.ledger.claim(claim.uid)
    if entry is None:
        return None
    return ClaimRow(
        namespace=claim.namespace,
        name=claim.name,
        owner=entry.owner,
        is_allocated=claim.is_allocated,
        cost=cost_of_claim(world, entry),
        devices=tuple(result.device for result in claim.results or ()),
        consumers=len(claim.reserved_for) + claim.other_consumers,
        groups=tuple(group.name for group in all_groups(claim)),
    )


def sharer_counts(world: WorldView, claim: ClaimView) -> tuple[tuple[QueueName, int], ...]:
    """How many pods of each queue use a claim: the owner's first, then the largest numbers."""
    entry = world.ledger.claim(claim.uid)
    owner = entry.owner if entry else None
    counts = Counter(world.facts.queue_of(pod) for pod in world.facts.consumers(claim))
    order = sorted(counts.items(), key=lambda item: (item[0] != owner, -item[1], item[0]))
    return tuple(order)


def sharers(world: WorldView, claim: ClaimView) -> tuple[Sharers, ...]:
    """The pods of each queue that use a claim, by name."""
    named: dict[QueueName, list[str]] = {}
    for pod in world.facts.consumers(claim):
        named.setdefault(world.facts.queue_of(pod), []).append(f"{pod.namespace}/{pod.name}")
    return tuple(
        Sharers(queue=queue, pods=tuple(sorted(named[queue])))
        for queue, _ in sharer_counts(world, claim)
    )

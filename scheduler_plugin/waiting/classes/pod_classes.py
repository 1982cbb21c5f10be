"""Equivalence classes of waiting pods: every verdict is the same for all pods of a class.

A verdict depends on the *key* of a pod: its queue and namespace, whether it is non-preemptible,
its requests, and its claims. A claim that only this pod references counts by its requests, any
other claim by its UID. So only the head of a class needs a verdict: a refusal of the head holds
for the whole class. The order in a class, and among the classes of a queue: priority, then age.
The pods of a gang are one class, whatever they request.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.judging.gangs import is_of_gang
from scheduler_plugin.judging.pod_order import SortKey
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.claims import ClaimView, Request
from scheduler_plugin.objects.names import ClaimUid, QueueName
from scheduler_plugin.objects.pods import PodView

PlainClaim: TypeAlias = tuple[QueueName, tuple[Request, ...]]
"""Label and requests of a claim that only one pod references."""


@dataclass(frozen=True, slots=True)
class ClassKey:
    """The properties on which a verdict depends; for a gang only queue, namespace and `gang`."""

    queue: QueueName
    namespace: str
    non_preemptible: bool
    requests: tuple[tuple[str, int], ...]
    claims: tuple[ClaimUid | PlainClaim, ...]
    gang: str = ""


def class_key_of(pod: PodView, facts: FactsView) -> ClassKey:
    """The key of a pod whose claims all exist."""
    if is_of_gang(pod, facts):
        return ClassKey(facts.queue_of(pod), pod.namespace, False, (), (), gang=pod.group)
    return ClassKey(
        facts.queue_of(pod),
        pod.namespace,
        pod.non_preemptible,
        pod.requests,
        tuple(_known_by(claim, facts) for claim in facts.claims_of(pod)),
    )


def _known_by(claim: ClaimView, facts: FactsView) -> ClaimUid | PlainClaim:
    used = claim.is_allocated or claim.reserved_for or claim.other_consumers or claim.owner_pod
    return claim.uid if used or facts.is_named_twice(claim) else (claim.label, claim.requests)


@dataclass(slots=True)
class EquivalenceClass:
    """The pods with the same key, in order.

    Attributes:
        requests: The requests of each pod.
        reason: Why the head was not admitted last time; "" where it was not judged yet.
        refusal: The same as a sentence.
        yields_to: For which pod the head leaves room although it fits, as a sentence; "" for none.
        sort_keys: The sort keys of the pods, sorted.
    """

    class_key: ClassKey
    requests: Charges
    reason: str = ""
    refusal: str = ""
    yields_to: str = ""
    sort_keys: list[SortKey] = field(default_factory=list)

    def add(self, turn: SortKey) -> None:
        insort(self.sort_keys, turn)

    def remove(self, turn: SortKey) -> None:
        del self.sort_keys[bisect_left(self.sort_keys, turn)]

    def ahead_of(self, turn: SortKey) -> int:
        """The number of pods before this sort key."""
        return bisect_left(self.sort_keys, turn)


def claim_uids(class_key: ClassKey) -> Iterator[ClaimUid]:
    """The claims of the class that other pods reference as well."""
    return (known for known in class_key.claims if isinstance(known, str))

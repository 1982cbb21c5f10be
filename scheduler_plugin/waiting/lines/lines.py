"""Pods that wait in line: those that every verdict treats alike stand in one line.

A verdict depends on a pod's *signature*: its queue and namespace, whether it is non-preemptible,
what it requests, and its claims. A claim that nobody else names or uses is known by what it asks
for, any other by its UID. So only the first pod of a line needs a verdict: what refuses it refuses
all behind it. Order within a line, and among the lines of a queue: priority, then age.
Pods of a PodGroup that go together stand in one line, whatever they ask for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.judging.gangs import is_of_gang
from scheduler_plugin.judging.turns import Turn
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.claims import ClaimView, Request
from scheduler_plugin.objects.names import ClaimUid, QueueName
from scheduler_plugin.objects.pods import PodView

PlainClaim: TypeAlias = tuple[QueueName, tuple[Request, ...]]
"""Label and requests of a claim that only one pod has to do with."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a verdict depends on; of pods that go together only who they are, and `gang`."""

    queue: QueueName
    namespace: str
    non_preemptible: bool
    requests: tuple[tuple[str, int], ...]
    claims: tuple[ClaimUid | PlainClaim, ...]
    gang: str = ""


def signature_of(pod: PodView, facts: FactsView) -> Signature:
    """The signature of a pod whose claims are all known."""
    if is_of_gang(pod, facts):
        return Signature(facts.queue_of(pod), pod.namespace, False, (), (), gang=pod.group)
    return Signature(
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
class Line:
    """The pods of one signature, in the order of their turns.

    Attributes:
        asks: What each of them asks for.
        reason: Why the first was refused the last time; "" where it has not been.
        refusal: The sentence of that refusal.
        kept: A sentence, where it fits and leaves room for somebody else; "" where it does not.
    """

    signature: Signature
    asks: Charges
    reason: str = ""
    refusal: str = ""
    kept: str = ""
    turns: list[Turn] = field(default_factory=list)

    def add(self, turn: Turn) -> None:
        insort(self.turns, turn)

    def remove(self, turn: Turn) -> None:
        del self.turns[bisect_left(self.turns, turn)]

    def ahead_of(self, turn: Turn) -> int:
        """How many have their turn before."""
        return bisect_left(self.turns, turn)


def claim_uids(signature: Signature) -> Iterator[ClaimUid]:
    """The claims that others have to do with as well."""
    return (known for known in signature.claims if isinstance(known, str))

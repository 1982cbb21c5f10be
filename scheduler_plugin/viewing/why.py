"""Why a pod runs, or does not: the verdict on it, with the figures that it looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.cases import case_of
from scheduler_plugin.judging.ceilings import usage_added
from scheduler_plugin.judging.verdicts import Refused, judge
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView

RUNNING, ENDED, ADMITTED = "Running", "Ended", "Admitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A queue on the path of who would be charged, and what the pod adds to it of one class."""

    queue: QueueName
    device_class: str
    usage: int
    added: int
    quota: int | None
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What is to be said of a pod.

    Attributes:
        reason: Of the verdict; `Admitted`, `Running` or `Ended` where there is no refusal.
        queue: The pod's; "" where it has none.
        claims: Each of its claims with who pays for it.
        figures: From who is charged up to the root; none once it runs.
    """

    pod: str
    reason: str
    sentence: str
    queue: QueueName
    claims: tuple[str, ...]
    figures: tuple[Figure, ...] = ()


def why(world: World, namespace: str, name: str) -> Why | None:
    """None where there is no such pod, or none that has to do with devices."""
    pod = world.facts.pod_named(namespace, name)
    if pod is None:
        return None
    claims = world.facts.claims_of(pod)
    reason, sentence = _verdict(world, pod, claims)
    return Why(
        pod=f"{namespace}/{name}",
        reason=reason,
        sentence=sentence,
        queue=world.facts.queue_of(pod),
        claims=tuple(_paid(world, claim) for claim in claims),
        figures=() if pod.is_bound or pod.ended else tuple(_figures(world, pod, claims)),
    )


def _verdict(world: World, pod: PodView, claims: tuple[ClaimView, ...]) -> tuple[str, str]:
    if pod.ended:
        return ENDED, "It ended, and uses nothing."
    if pod.is_bound:
        return RUNNING, f"It was bound to {pod.node}; who runs is not judged again."
    verdict = judge(pod, claims, world)
    if isinstance(verdict, Refused):
        return str(verdict.reason), verdict.sentence
    gates = f" It waits at {', '.join(pod.gates)}." if pod.gates else ""
    return ADMITTED, f"No rule of queues keeps it; kube-scheduler looks for a node.{gates}"


def _paid(world: World, claim: ClaimView) -> str:
    entry = world.ledger.claim(claim.uid)
    if entry is None:
        return f"{claim} is not accounted."
    state = "allocated" if claim.is_allocated else "not allocated"
    payer = f"charged to {entry.owner}" if entry.owner else "charged to nobody"
    return f"{claim} is {state} and {payer}."


def _figures(world: World, pod: PodView, claims: tuple[ClaimView, ...]) -> Iterator[Figure]:
    added: dict[QueueName, Charges] = {}
    for _, owner, cost in usage_added(case_of(pod, claims, world, at_bind=False)):
        if owner != NO_QUEUE and cost:
            added[owner] = added.get(owner, NO_CHARGES).plus(cost)
    for owner, cost in added.items():
        for key, amount in cost:
            for name in world.facts.tree.path(owner):
                queue = world.facts.tree.get(name)
                share = queue.shares.get(key) if queue else None
                yield Figure(
                    queue=name,
                    device_class=key,
                    usage=world.ledger.of(name).usage[key],
                    added=amount,
                    quota=share.quota.most if share else 0,
                    limit=share.limit.most if share else None,
                )

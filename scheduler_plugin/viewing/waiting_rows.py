"""Pods that wait, each with the verdict on it as things are now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.viewing.why import ADMITTED, refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRow:
    """A pod that waits."""

    pod: str
    queue: QueueName
    created: str
    reason: str
    sentence: str


def waiting_rows(world: World, most: int) -> Iterator[WaitingRow]:
    """Those that have waited longest, so many at the most: a verdict is not for nothing."""
    waiting = [p for p in world.facts.pods() if p.may_be_bound and p.may_use_devices]
    for pod in sorted(waiting, key=lambda pod: (pod.created, pod.namespace, pod.name))[:most]:
        refused = refusal(world, pod)
        yield WaitingRow(
            pod=f"{pod.namespace}/{pod.name}",
            queue=world.facts.queue_of(pod),
            created=pod.created,
            reason=str(refused.reason) if refused else ADMITTED,
            sentence=refused.sentence if refused else "No rule of queues keeps it.",
        )

"""Waiting pods, each with the reason and the sentence of its current verdict."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.missing_claims import missing_claims
from scheduler_plugin.objects.names import QUOTA_GATE, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.viewing.free_devices import FreeDevices
from scheduler_plugin.viewing.why import ADMITTED, without_refusal
from scheduler_plugin.waiting.admissions import waiting_pod

FITS = "Fits"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRow:
    """A pod without a node that requests accounted devices.

    Attributes:
        since: When it was created, as the API writes it.
        is_gated: Whether it has the scheduling gate; without it kube-scheduler tries the pod.
        reason: `Fits` if all rules pass, and devices for it may be free.
    """

    namespace: str
    name: str
    queue: QueueName
    since: str
    is_gated: bool
    reason: str
    sentence: str


def pod_row(world: WorldView, pod: PodView, free: FreeDevices) -> PodRow | None:
    """The row of a pod; None if it does not wait, or requests no accounted device."""
    if not _waits(world, pod):
        return None
    found = waiting_pod(pod, None, world)
    reason, sentence = found.reason, found.message
    if not reason:
        unrefused = without_refusal(pod, free)
        reason, sentence = (FITS, sentence) if unrefused[0] == ADMITTED else unrefused
    return PodRow(
        namespace=pod.namespace,
        name=pod.name,
        queue=found.queue,
        since=pod.created,
        is_gated=pod.is_gated,
        reason=reason,
        sentence=sentence,
    )


def _waits(world: WorldView, pod: PodView) -> bool:
    if not pod.may_be_bound:
        return False
    entry = world.ledger.pod(pod.uid)
    return (
        QUOTA_GATE in pod.gates
        or bool(pod.admission)
        or bool(entry and entry.cost)
        or bool(missing_claims(pod, world.facts))
        or any(world.ledger.claim(claim.uid) for claim in world.facts.claims_of(pod))
    )

"""The Events about claims, evicted pods and PodGroups."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from kube.events.api import Event, ObjectReference
from kube.words import some_of
from scheduler_plugin.accounting.api import QueueTree
from scheduler_plugin.cleanup.api import (
    Attribution,
    ClaimCleared,
    EventTargets,
    EvictForeign,
    EvictGang,
    LostQueue,
    OwnerExitTime,
    PodToEvict,
)
from scheduler_plugin.objects.api import ClaimOwner, ClaimView, PodView
from scheduler_plugin.objects.names import DEVICE_RECLAIMED, GROUP, QUEUE_KIND, VERSION, QueueName
from scheduler_plugin.reclaiming.api import Targets

logger = logging.getLogger(__name__)


_NamesAClaim: TypeAlias = ClaimOwner | OwnerExitTime | ClaimCleared | EvictForeign | ClaimView


def report(event: Event, record: Callable[[Event], None]) -> None:
    """Log an Event and pass it to the recorder."""
    about = event.regarding
    logger.info(
        "%s %s=%s/%s: %s", event.reason, about.kind, about.namespace, about.name, event.note
    )
    record(event)


def attributed(found: Attribution) -> Event:
    return Event.normal(_reference(found.owner), "OrphanAttributed", "Attribute", found.sentence)


def owner_exited(found: OwnerExitTime) -> Event:
    return Event.normal(_reference(found), "OwnerLeft", "NoteTime", found.sentence)


def cleared(found: ClaimCleared) -> Event:
    claim = f"ResourceClaim {found.namespace}/{found.name}"
    if found.groups:
        named = ", ".join(f"PodGroup {found.namespace}/{group.name}" for group in found.groups)
        what = "its reservation and its allocation were" if found.deallocate else "its entry was"
        note = f"No pod of {named} uses {claim} any more: {what} cleared."
    elif found.deallocate:
        note = f"{claim} was allocated without a consumer: its allocation was cleared."
    else:
        note = f"{claim} was reserved for pods that ended: {len(found.gone)} were removed."
    return Event.normal(_reference(found), "LeftOverCleared", "Clear", note)


def foreign_evicted(found: EvictForeign) -> Event:
    return Event.normal(_reference(found), "ForeignPodsEvicted", "Evict", found.why)


def held_back(found: EvictForeign, why: str) -> Event:
    note = f"{found.why} {why}"
    return Event.warning(_reference(found), "EvictionHeldBack", "Evict", note)


def queue_lost(found: LostQueue) -> Event:
    return Event.warning(_reference(found.claim), "QueueLost", "Charge", str(found))


def pod_evicted(pod: PodToEvict, found: EvictForeign) -> Event:
    """An Event on the pod; the related object is the claim."""
    event = Event.normal(_pod_reference(pod), "ForeignPodEvicted", "Evict", found.why)
    return replace(event, related=_reference(found))


def reclaimed(targets: Targets, tree: QueueTree) -> Iterator[Event]:
    """Events on the pending pod, each claim and the queues of both, all with the same note."""
    reason = DEVICE_RECLAIMED if targets.is_device else "RoomReclaimed"
    yield Event.normal(_pod_reference(targets.pod), reason, "Evict", targets.sentence)
    yield Event.normal(
        _queue_reference(targets.hold.queue, tree), reason, "Evict", targets.sentence
    )
    for victim in targets.victims:
        for claim in victim.claims:
            yield Event.normal(_reference(claim), "ClaimReclaimed", "Evict", targets.sentence)
    for owner in dict.fromkeys(victim.owner for victim in targets.victims):
        yield Event.normal(
            _queue_reference(owner, tree), "ClaimsReclaimed", "Evict", targets.sentence
        )


def pod_reclaimed(pod: PodToEvict, targets: Targets) -> Event:
    """An Event on an evicted pod; the related object is the pod that it is evicted for."""
    event = Event.normal(_pod_reference(pod), "Reclaimed", "Evict", targets.sentence)
    return replace(event, related=_pod_reference(targets.pod))


def gang_stale(event_targets: EventTargets, sentence: str, tree: QueueTree) -> Iterator[Event]:
    """Events on a PodGroup with too few pods, and on the queues that pay for its pods."""
    for about in _references_of(event_targets, tree):
        yield Event.warning(about, "PodGroupStale", "Evict", sentence)


def gang_given_up(found: EvictGang, tree: QueueTree) -> Iterator[Event]:
    """Events on the PodGroup and the queues, once the grace period is over."""
    for about in _references_of(found.event_targets, tree):
        yield Event.normal(about, "PodGroupGivenUp", "Evict", found.sentence)


def _references_of(event_targets: EventTargets, tree: QueueTree) -> Iterator[ObjectReference]:
    group = event_targets.group
    if group.api_version:
        yield ObjectReference(
            api_version=group.api_version,
            kind="PodGroup",
            name=group.name,
            namespace=group.namespace,
            uid=group.uid,
        )
    for queue in event_targets.queues:
        yield _queue_reference(queue, tree)


def pod_given_up(pod: PodToEvict, sentence: str) -> Event:
    """An Event on a pod of a PodGroup whose grace period is over."""
    return Event.normal(_pod_reference(pod), "PodGroupGivenUp", "Evict", sentence)


def reclaim_held_back(targets: Targets, why: str) -> Event:
    note = f"{targets.sentence} The eviction is held back: {why}"
    return Event.warning(_pod_reference(targets.pod), "ReclaimHeldBack", "Evict", note)


def reclaim_missed(pod: PodView, nodes: Sequence[str]) -> Event:
    """An Event on a pod that was not bound although its devices were free on these nodes.

    "" stands for all nodes that can use the devices.
    """
    named = some_of(f'"{node}"' for node in nodes)
    where = f"on node {named}" if len(nodes) == 1 else f"on nodes {named}"
    if not all(nodes):
        where = "where its devices are"
    note = (
        f"The devices that {pod} asks for were free {where}, and it was not bound. No pods are"
        " evicted there for equivalent pods for ten minutes."
    )
    return Event.warning(_pod_reference(pod), "ReclaimMissed", "Evict", note)


def _pod_reference(pod: PodToEvict | PodView) -> ObjectReference:
    return ObjectReference(
        api_version="v1", kind="Pod", name=pod.name, namespace=pod.namespace, uid=pod.uid
    )


def _queue_reference(name: QueueName, tree: QueueTree) -> ObjectReference:
    queue = tree.get(name)
    uid = queue.uid if queue is not None else ""
    return ObjectReference(api_version=f"{GROUP}/{VERSION}", kind=QUEUE_KIND, name=name, uid=uid)


def _reference(claim: _NamesAClaim) -> ObjectReference:
    return ObjectReference(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaim",
        name=claim.name,
        namespace=claim.namespace,
        uid=claim.uid,
    )

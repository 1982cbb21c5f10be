"""What people are told about claims: Events on the claim, and on the pods that have to go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from kube.api import Event, ObjectReference
from kube.words import some_of
from scheduler_plugin.api import (
    DEVICE_RECLAIMED,
    GROUP,
    QUEUE_KIND,
    VERSION,
    Attribution,
    ClaimCleared,
    ClaimOwner,
    ClaimView,
    EvictForeign,
    EvictGang,
    LostQueue,
    OwnerLeftAt,
    PodToEvict,
    PodView,
    QueueName,
    QueueTree,
    Sides,
    Take,
)

logger = logging.getLogger(__name__)


_NamesAClaim: TypeAlias = ClaimOwner | OwnerLeftAt | ClaimCleared | EvictForeign | ClaimView


def tell(event: Event, record: Callable[[Event], None]) -> None:
    """Log an Event, and hand it to whoever writes it."""
    about = event.regarding
    logger.info(
        "%s %s=%s/%s: %s", event.reason, about.kind, about.namespace, about.name, event.note
    )
    record(event)


def attributed(found: Attribution) -> Event:
    return Event.normal(_reference(found.owner), "OrphanAttributed", "Attribute", found.sentence)


def owner_left(found: OwnerLeftAt) -> Event:
    return Event.normal(_reference(found), "OwnerLeft", "NoteTime", found.sentence)


def cleared(found: ClaimCleared) -> Event:
    claim = f"ResourceClaim {found.namespace}/{found.name}"
    if found.deallocate:
        note = f"{claim} was allocated and nobody used it: its allocation was cleared."
    else:
        note = f"{claim} was reserved for pods that ended: {len(found.gone)} were taken out."
    return Event.normal(_reference(found), "LeftOverCleared", "Clear", note)


def foreign_evicted(found: EvictForeign) -> Event:
    return Event.normal(_reference(found), "ForeignPodsEvicted", "Evict", found.why)


def held_back(found: EvictForeign, why: str) -> Event:
    note = f"{found.why} {why}"
    return Event.warning(_reference(found), "EvictionHeldBack", "Evict", note)


def queue_lost(found: LostQueue) -> Event:
    return Event.warning(_reference(found.claim), "QueueLost", "Charge", str(found))


def pod_evicted(pod: PodToEvict, found: EvictForeign) -> Event:
    """About the pod; related is the claim."""
    event = Event.normal(_pod_reference(pod), "ForeignPodEvicted", "Evict", found.why)
    return replace(event, related=_reference(found))


def reclaimed(take: Take, tree: QueueTree) -> Iterator[Event]:
    """About the waiting pod, each claim and both sides' queues: all say the same."""
    reason = DEVICE_RECLAIMED if take.is_device else "RoomReclaimed"
    yield Event.normal(_pod_reference(take.pod), reason, "Evict", take.sentence)
    yield Event.normal(_queue_reference(take.hold.queue, tree), reason, "Evict", take.sentence)
    for victim in take.victims:
        for claim in victim.claims:
            yield Event.normal(_reference(claim), "ClaimReclaimed", "Evict", take.sentence)
    for owner in dict.fromkeys(victim.owner for victim in take.victims):
        yield Event.normal(_queue_reference(owner, tree), "ClaimsReclaimed", "Evict", take.sentence)


def pod_reclaimed(pod: PodToEvict, take: Take) -> Event:
    """About a pod that has to go; related is the one that it goes for."""
    event = Event.normal(_pod_reference(pod), "Reclaimed", "Evict", take.sentence)
    return replace(event, related=_pod_reference(take.pod))


def gang_stale(sides: Sides, sentence: str, tree: QueueTree) -> Iterator[Event]:
    """About a PodGroup that has too few pods, and the queues that pay for those."""
    for about in _of_sides(sides, tree):
        yield Event.warning(about, "PodGroupStale", "Evict", sentence)


def gang_given_up(found: EvictGang, tree: QueueTree) -> Iterator[Event]:
    """About the PodGroup and the queues, when it has had too few for too long."""
    for about in _of_sides(found.sides, tree):
        yield Event.normal(about, "PodGroupGivenUp", "Evict", found.sentence)


def _of_sides(sides: Sides, tree: QueueTree) -> Iterator[ObjectReference]:
    group = sides.group
    if group.api_version:
        yield ObjectReference(
            api_version=group.api_version,
            kind="PodGroup",
            name=group.name,
            namespace=group.namespace,
            uid=group.uid,
        )
    for queue in sides.queues:
        yield _queue_reference(queue, tree)


def pod_given_up(pod: PodToEvict, sentence: str) -> Event:
    """About a pod whose PodGroup has had too few for too long."""
    return Event.normal(_pod_reference(pod), "PodGroupGivenUp", "Evict", sentence)


def reclaim_held_back(take: Take, why: str) -> Event:
    note = f"{take.sentence} It is held back: {why}"
    return Event.warning(_pod_reference(take.pod), "ReclaimHeldBack", "Evict", note)


def reclaim_missed(pod: PodView, nodes: Sequence[str]) -> Event:
    """About a pod that was not bound although what it waits for was free on these nodes.

    "" stands for wherever its devices are.
    """
    named = some_of(f'"{node}"' for node in nodes)
    where = f"on node {named}" if len(nodes) == 1 else f"on nodes {named}"
    if not all(nodes):
        where = "where its devices are"
    note = (
        f"What {pod} waits for was free {where}, and it was not bound. Nothing is taken for pods"
        " like it there for ten minutes."
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

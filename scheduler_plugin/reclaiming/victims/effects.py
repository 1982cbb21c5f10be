"""The effect of an eviction: what is released once pods are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


def released_by(
    pods: Collection[PodUid],
    gone: Collection[PodUid],
    world: WorldView,
    stuck: Collection[PodUid] = frozenset(),
) -> Iterator[tuple[QueueName, Charges]]:
    """What these pods release in addition to the pods that are `gone`, by queue.

    It does not include what terminating pods release anyway, nor what `stuck` pods use.
    """
    all_of_them = {*gone, *pods}
    claims: dict[ClaimUid, None] = {}
    for uid in pods:
        claims |= dict.fromkeys(world.facts.claims_consumed_by(uid))
        entry = world.ledger.pod(uid)
        if uid not in gone and entry is not None and entry.bound and not entry.terminating:
            yield entry.queue, entry.cost
    for name in claims:
        claim, charged = world.facts.claim(name), world.ledger.claim(name)
        if claim is None or charged is None or not charged.is_charged or charged.terminating:
            continue
        is_left = has_no_user_without(claim, all_of_them, world, stuck)
        if is_left and not has_no_user_without(claim, gone, world, stuck):
            yield charged.owner, charged.cost


def used_by_stuck(
    stuck: Collection[PodUid], world: WorldView
) -> Iterator[tuple[QueueName, Charges]]:
    """What stuck pods use, by queue: the ledger counts it as being released, and it is not."""
    claims = {name: None for uid in stuck for name in world.facts.claims_consumed_by(uid)}
    for charged in (world.ledger.claim(name) for name in claims):
        if charged is not None and charged.is_charged and charged.terminating:
            yield charged.owner, charged.cost
    for entry in (world.ledger.pod(uid) for uid in stuck):
        if entry is not None and entry.bound and entry.terminating:
            yield entry.queue, entry.cost


def has_no_user_without(
    claim: ClaimView,
    pods: Collection[PodUid],
    world: WorldView,
    stuck: Collection[PodUid] = frozenset(),
) -> bool:
    """Whether a claim has no user left without these pods and the terminating ones.

    A pod that is not bound is no user: it cannot join what is held for another pod.
    """
    return not claim.other_consumers and all(
        uid in pods or _is_terminating(uid, world, stuck) for uid in claim.reserved_for
    )


def _is_terminating(uid: PodUid, world: WorldView, stuck: Collection[PodUid]) -> bool:
    pod = world.facts.pod(uid)
    if pod is None:
        return not world.may_be_bound(uid)
    return not pod.is_bound or pod.ended or (pod.deleting and uid not in stuck)


def being_released(
    keys: Collection[ResourceKey], world: WorldView
) -> tuple[tuple[ClaimUid, ...], tuple[PodUid, ...]]:
    """The claims, and the pods with slots, that terminating pods release."""
    terminating = world.facts.terminating_pods()
    names = dict.fromkeys(c for uid in terminating for c in world.facts.claims_consumed_by(uid))
    claims = ((uid, world.ledger.claim(uid)) for uid in names)
    pods = ((uid, world.ledger.pod(uid)) for uid in terminating)
    return (
        tuple(uid for uid, c in claims if c and c.terminating and any(c.cost[key] for key in keys)),
        tuple(uid for uid, p in pods if p and p.terminating and any(p.cost[key] for key in keys)),
    )

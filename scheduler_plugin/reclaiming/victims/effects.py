"""What the eviction of pods frees, and whether everybody keeps the quota afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from scheduler_plugin.accounting.queues.totals import Totals
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName


def freed_by(
    pods: Collection[PodUid], world: WorldView, stuck: Collection[PodUid] = frozenset()
) -> Totals:
    """What is released once these are gone, beside what is on its way out anyway.

    What those use that are `stuck`, being deleted without an end, is not released.
    """
    freed = Totals(world.facts.tree.path)
    claims: dict[ClaimUid, None] = {}
    for uid in pods:
        claims |= dict.fromkeys(world.facts.claims_consumed_by(uid))
        entry = world.ledger.pod(uid)
        if entry is not None and entry.bound and not entry.leaving:
            freed.add(entry.queue, entry.cost)
    for name in claims:
        claim, charged = world.facts.claim(name), world.ledger.claim(name)
        if claim is None or charged is None or not charged.is_charged or charged.leaving:
            continue
        if is_left_without(claim, pods, world, stuck):
            freed.add(charged.owner, charged.cost)
    return freed


def ends_with(
    pods: Collection[PodUid],
    gone: Collection[PodUid],
    world: WorldView,
    stuck: Collection[PodUid] = frozenset(),
) -> Iterator[tuple[QueueName, Charges]]:
    """What is released once these are gone, too, beside those that are gone before.

    What is on its way out anyway is not among it, nor what those use that are `stuck`.
    """
    all_of_them = {*gone, *pods}
    claims: dict[ClaimUid, None] = {}
    for uid in pods:
        claims |= dict.fromkeys(world.facts.claims_consumed_by(uid))
        entry = world.ledger.pod(uid)
        if uid not in gone and entry is not None and entry.bound and not entry.leaving:
            yield entry.queue, entry.cost
    for name in claims:
        claim, charged = world.facts.claim(name), world.ledger.claim(name)
        if claim is None or charged is None or not charged.is_charged or charged.leaving:
            continue
        is_left = is_left_without(claim, all_of_them, world, stuck)
        if is_left and not is_left_without(claim, gone, world, stuck):
            yield charged.owner, charged.cost


def stays_with(stuck: Collection[PodUid], world: WorldView) -> Iterator[tuple[QueueName, Charges]]:
    """What is on its way out as far as anybody can say, and is not: these do not end."""
    claims = {name: None for uid in stuck for name in world.facts.claims_consumed_by(uid)}
    for charged in (world.ledger.claim(name) for name in claims):
        if charged is not None and charged.is_charged and charged.leaving:
            yield charged.owner, charged.cost
    for entry in (world.ledger.pod(uid) for uid in stuck):
        if entry is not None and entry.bound and entry.leaving:
            yield entry.queue, entry.cost


def is_left_without(
    claim: ClaimView,
    pods: Collection[PodUid],
    world: WorldView,
    stuck: Collection[PodUid] = frozenset(),
) -> bool:
    """Whether nobody uses a claim once these are gone, and those that are on their way out.

    Who is not bound uses nothing: it cannot join what is held for another.
    """
    return not claim.other_consumers and all(
        uid in pods or _is_going(uid, world, stuck) for uid in claim.reserved_for
    )


def _is_going(uid: PodUid, world: WorldView, stuck: Collection[PodUid]) -> bool:
    pod = world.facts.pod(uid)
    if pod is None:
        return not world.may_be_bound(uid)
    return not pod.is_bound or pod.ended or (pod.deleting and uid not in stuck)


def on_its_way(
    keys: Collection[ResourceKey], world: WorldView
) -> tuple[tuple[ClaimUid, ...], tuple[PodUid, ...]]:
    """The claims, and the pods with slots, that end with pods which are being deleted."""
    claims = ((claim.uid, world.ledger.claim(claim.uid)) for claim in world.facts.claims())
    pods = ((pod.uid, world.ledger.pod(pod.uid)) for pod in world.facts.pods())
    return (
        tuple(uid for uid, c in claims if c and c.leaving and any(c.cost[key] for key in keys)),
        tuple(uid for uid, p in pods if p and p.leaving and any(p.cost[key] for key in keys)),
    )


def kept_by(stuck: Collection[PodUid], world: WorldView) -> Totals:
    """What is on its way out as far as anybody can say, and is not: these do not end."""
    kept = Totals(world.facts.tree.path)
    claims = {name: None for uid in stuck for name in world.facts.claims_consumed_by(uid)}
    for charged in (world.ledger.claim(name) for name in claims):
        if charged is not None and charged.is_charged and charged.leaving:
            kept.add(charged.owner, charged.cost)
    for entry in (world.ledger.pod(uid) for uid in stuck):
        if entry is not None and entry.bound and entry.leaving:
            kept.add(entry.queue, entry.cost)
    return kept


def who_does_not_end(
    stuck: Collection[PodUid],
    keys: Collection[ResourceKey],
    world: WorldView,
    place: QueueName | None = None,
) -> str:
    """Who of these keeps any of that (below a place), for the end of a sentence; "" for nobody."""
    kept = {uid: kept_by([uid], world) for uid in stuck}
    found = [
        str(world.facts.pod(uid))
        for uid, amounts in kept.items()
        if any(
            amounts.amount(queue, key)
            for queue in ([place] if place is not None else amounts.by_queue())
            for key in keys
        )
    ]
    if not found:
        return ""
    names = min(found) + (f" and {len(found) - 1} more" if len(found) > 1 else "")
    return f"; {names} {'are' if len(found) > 1 else 'is'} being deleted without an end"


def left_to(place: QueueName, key: ResourceKey, freed: Totals, world: WorldView) -> int:
    """What a queue uses once these are freed, and what is on its way out is gone.

    Decisions in flight do not count: they may come to nothing.
    """
    ledger = world.ledger
    used = ledger.usage.amount(place, key) - ledger.leaving.amount(place, key)
    return used - freed.amount(place, key)


def surplus(place: QueueName, key: ResourceKey, freed: Totals, world: WorldView) -> int | None:
    """By how much a queue is still over its quota then; None where nothing is guaranteed to it.

    A queue that is guaranteed any amount is never over it.
    """
    share = world.facts.tree.share(place, key)
    if share is None:
        return None
    if share.quota.most is None:
        return -1
    return left_to(place, key, freed, world) - share.quota.most


def over_share(
    place: QueueName, key: ResourceKey, freed: Totals, world: WorldView
) -> tuple[int, float, int] | None:
    """How far a queue is beyond its share of what is left beyond all quotas; the larger goes first.

    A queue of a smaller priority has no part in it before others have theirs; of the same, each has
    a part by its weight. Those that have none are told apart by what they have beyond their quotas.
    """
    queue, share = world.facts.tree.get(place), world.facts.tree.share(place, key)
    more = surplus(place, key, freed, world)
    if queue is None or share is None or more is None:
        return None
    return -queue.priority, more / share.weight if share.weight else float("inf"), more


def shorn(freed: Totals, above: Collection[QueueName], world: WorldView) -> Iterator[QueueName]:
    """The queues that would be left with less than their quota.

    Args:
        freed: What is taken from whom.
        above: The queues above whoever gets it: they keep it among their own.
        world: What is known.
    """
    for place, amounts in freed.by_queue().items():
        for key, _ in amounts:
            left = surplus(place, key, freed, world)
            if place not in above and left is not None and left < 0:
                yield place

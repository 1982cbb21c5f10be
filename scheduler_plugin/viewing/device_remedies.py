"""What would free a device for a pod that has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kube.words import number_of, some_of
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.named_holders import MayName, named
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.measures import is_class
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.viewing.free_devices import Counts, FreeDevices, Holder, Shortage

LIST = "kubectl moorage devices"


def device_remedies(
    pod: PodView, short: Shortage, free: FreeDevices, world: WorldView, may_name: MayName
) -> Iterator[str]:
    """Remedies, of which one is enough; objects that `may_name` forbids are only counted."""
    counts = free.counts(short.wanted)
    if counts is None:
        yield f"Create {short.wanted}, or request one that exists."
    elif not counts.there:
        yield f"A node must publish a device of {short.wanted}: see {LIST}."
    else:
        holders = list(free.holders(short.wanted))
        yield from _releases(short, counts, holders, may_name)
        if _may_be_reclaimed(pod, short, holders, world):
            yield (
                f'Or wait: queue "{world.facts.queue_of(pod)}" is below its quota, and other queues'
                " are above theirs. The condition QuotaUnmet of the Queue says why no device is"
                " reclaimed for it."
            )


def _releases(
    short: Shortage, counts: Counts, holders: Sequence[Holder], may_name: MayName
) -> Iterator[str]:
    """Remedies by claims that release devices, and by absent devices that return."""
    if holders:
        what = named([(holder.namespace, holder.what) for holder in holders], may_name)
        yield f"Release {number_of(short.missing, 'device')} of: {what}."
    if counts.tainted:
        rules, tainted = some_of(counts.rules), number_of(counts.tainted, "device")
        one = len(counts.rules) == 1
        which = f"Rule {rules}, which taints" if one else f"Rules {rules}, which taint"
        yield f"Delete the DeviceTaint{which} {tainted}: see {LIST}."
    if counts.absent:
        absent = number_of(counts.absent, "absent device")
        wait = "Or wait" if holders else "Wait"
        yield f"{wait} until a device returns ({absent}): see {LIST}."


def _may_be_reclaimed(
    pod: PodView, short: Shortage, holders: Sequence[Holder], world: WorldView
) -> bool:
    """Whether the pod's queue is below its quota, and a queue with devices is above its own."""
    queue = world.facts.queue_of(pod)
    return any(
        _above_quota(queue, key, world) < 0
        and any(_above_quota(holder.queue, key, world) > 0 for holder in holders)
        for key in _keys(pod, short, world)
    )


def _keys(pod: PodView, short: Shortage, world: WorldView) -> Iterator[ResourceKey]:
    """The class that is short, and the entries that count what the pod's claims ask for."""
    yield world.facts.catalog.key(short.wanted.device_class)
    for claim in world.facts.claims_of(pod):
        if (entry := world.ledger.claim(claim.uid)) is not None and not claim.is_allocated:
            yield from (key for key, _ in entry.cost if not is_class(key))


def _above_quota(queue: QueueName, key: ResourceKey, world: WorldView) -> int:
    """Usage minus quota of a queue; 0 if there is no such queue or the quota is unlimited."""
    found = world.facts.tree.get(queue)
    share = found.shares.get(key) if found is not None else None
    if found is None or (share is not None and share.quota.most is None):
        return 0
    quota = (share.quota.most or 0) if share is not None else 0
    return world.ledger.of(queue).usage[key] - quota

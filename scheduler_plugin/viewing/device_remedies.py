"""What would free a device for a pod that lacks one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kube.words import number_of
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.named_holders import MayName, named
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.viewing.free_devices import Counts, FreeDevices, Holder, Shortage

LIST = "kubectl moorage devices"


def device_remedies(
    pod: PodView, short: Shortage, free: FreeDevices, world: WorldView, may_name: MayName
) -> Iterator[str]:
    """Any one of these does. What is in a namespace that `may_name` forbids is counted only."""
    counts = free.counts(short.wanted)
    if counts is None:
        yield f"Create {short.wanted}, or ask for one that exists."
    elif not counts.there:
        yield f"A node has to publish a device of {short.wanted}: {LIST}."
    else:
        holders = list(free.holders(short.wanted))
        yield from _releases(short, counts, holders, may_name)
        if _is_taken_back(pod, short, holders, world):
            yield (
                f'Or wait: queue "{world.facts.queue_of(pod)}" is below its quota, and others'
                " above theirs. The condition QuotaUnmet of the Queue says why nothing is taken"
                " back for it."
            )


def _releases(
    short: Shortage, counts: Counts, holders: Sequence[Holder], may_name: MayName
) -> Iterator[str]:
    """By claims that have devices, and by devices that come back."""
    has = "has" if short.missing == 1 else "have"
    if holders:
        what = named([(holder.namespace, holder.what) for holder in holders], may_name)
        yield f"{number_of(short.missing, 'device')} of these {has} to be released: {what}."
    if counts.away:
        are = "is" if counts.away == 1 else "are"
        away = f"{number_of(counts.away, 'device')} {are}"
        yield f"{'Or one' if holders else 'One'} that is away has to come back ({away}): {LIST}."


def _is_taken_back(
    pod: PodView, short: Shortage, holders: Sequence[Holder], world: WorldView
) -> bool:
    """Whether the pod's queue is below its quota, and one that has devices is above its own."""
    key = world.facts.catalog.key(short.wanted.device_class)
    above = (_beyond_quota(holder.queue, key, world) > 0 for holder in holders)
    return _beyond_quota(world.facts.queue_of(pod), key, world) < 0 and any(above)


def _beyond_quota(queue: QueueName, key: ResourceKey, world: WorldView) -> int:
    """By how much a queue uses more than its quota, or less; 0 where it has none or no end."""
    found = world.facts.tree.get(queue)
    share = found.shares.get(key) if found is not None else None
    if found is None or (share is not None and share.quota.most is None):
        return 0
    quota = (share.quota.most or 0) if share is not None else 0
    return world.ledger.of(queue).usage[key] - quota

"""The figures of a Queue as one text, for the columns of `kubectl get queues`."""

from __future__ import annotations

from scheduler_plugin.objects.amounts import Ceiling, Charges, ResourceKey
from scheduler_plugin.objects.measures import amount_value
from scheduler_plugin.objects.names import Queue, Share

LONGEST = 60
"""The maximum number of characters for classes; the others are only counted."""

_UNLISTED = Share()


def summary(usage: Charges, queue: Queue) -> str:
    """Usage, quota and limit of each class, such as `camera 3/4/8, gpu 0/2/-`; "" without any.

    A dash means unlimited. Classes in use come first; names of classes are never shortened.

    Args:
        usage: The usage.
        queue: The Queue with quotas and limits.
    """
    used = dict(usage)
    keys = sorted({*used, *queue.shares}, key=lambda key: (not used.get(key), key))
    entries = [_entry(key, used.get(key, 0), queue.shares.get(key, _UNLISTED)) for key in keys]
    shown = len(entries)
    while shown > 1 and len(", ".join(entries[:shown])) > LONGEST:
        shown -= 1
    more = [f"+{len(entries) - shown} more"] if shown < len(entries) else []
    return ", ".join((*entries[:shown], *more))


def _entry(key: ResourceKey, used: int, share: Share) -> str:
    ceilings = f"{_ceiling(key, share.quota)}/{_ceiling(key, share.limit)}"
    return f"{key} {amount_value(key, used)}/{ceilings}"


def _ceiling(key: ResourceKey, ceiling: Ceiling) -> int | str:
    return "-" if ceiling.most is None else amount_value(key, ceiling.most)

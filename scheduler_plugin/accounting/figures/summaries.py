"""The figures of a Queue as one text, for the columns of `kubectl get queues`."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler_plugin.objects.amounts import Ceiling, for_status
from scheduler_plugin.objects.names import Queue, Share

LONGEST = 60
"""The maximum number of characters for classes; the others are only counted."""

_UNLISTED = Share()


def summary(usage: Mapping[str, int], queue: Queue) -> str:
    """Usage, quota and limit of each class, such as `camera 3/4/8, gpu 0/2/-`; "" without any.

    A dash means unlimited. Classes in use come first; names of classes are never shortened.

    Args:
        usage: The usage by class.
        queue: The Queue with quotas and limits.
    """
    shares = {str(key): share for key, share in queue.shares.items()}
    names = sorted({*usage, *shares}, key=lambda name: (not usage.get(name), name))
    entries = [_entry(name, usage.get(name, 0), shares.get(name, _UNLISTED)) for name in names]
    shown = len(entries)
    while shown > 1 and len(", ".join(entries[:shown])) > LONGEST:
        shown -= 1
    more = [f"+{len(entries) - shown} more"] if shown < len(entries) else []
    return ", ".join((*entries[:shown], *more))


def _entry(name: str, used: int, share: Share) -> str:
    return f"{name} {used}/{_ceiling(share.quota)}/{_ceiling(share.limit)}"


def _ceiling(ceiling: Ceiling) -> str:
    return "-" if ceiling.most is None else str(for_status(ceiling.most))

"""Names of entries that count two things in one tree of queues.

The webhook refuses them. They exist all the same if they were written while it was away: then a
charge below passes the ceiling above by.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.measures import Definition
from scheduler_plugin.objects.names import QueueName


def name_conflicts(tree: QueueTree) -> Iterator[str]:
    """A sentence for each further meaning of a name in a tree of queues."""
    found: dict[tuple[QueueName, str], dict[ResourceKey, QueueName]] = {}
    for queue in sorted(tree, key=lambda each: each.name):
        root = tree.path(queue.name)[-1]
        for key in queue.shares:
            found.setdefault((root, str(key)), {}).setdefault(key, queue.name)
    for (_, name), meanings in sorted(found.items()):
        (first, place), *others = meanings.items()
        for key, other in others:
            yield (
                f'Entry "{name}" counts {_counted(tree, place, first)} in queue "{place}", and'
                f' {_counted(tree, other, key)} in queue "{other}" of the same tree: give one of'
                " them another name."
            )


def _counted(tree: QueueTree, place: QueueName, key: ResourceKey) -> str:
    share = tree.share(place, key)
    found = share.definition if share is not None else None
    return str(found or Definition(name=key, device_class=key))

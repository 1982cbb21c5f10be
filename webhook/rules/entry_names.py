"""One name means one thing in a tree of queues.

The entries of a name in a queue and in its ancestors are ceilings of one amount. If they counted
different things, a charge of the queue would pass its ancestors by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driver.api import Problem
from scheduler_plugin.accounting.api import QueueTree
from scheduler_plugin.objects.api import ResourceKey
from scheduler_plugin.objects.names import Queue, QueueName, Share


def other_definitions(queue: Queue, tree: QueueTree) -> Iterator[Problem]:
    """The entries of a Queue whose name counts something else elsewhere in its tree.

    The tree is the one that the queue is in once it is written, so a queue that moves brings the
    queues below it along.
    """
    below = [name for name in tree.below(queue.name) if name != queue.name]
    root = tree.path(queue.parent)[-1] if queue.parent else queue.name
    outside = [name for name in tree.below(root) if name not in {queue.name, *below}]
    known = _by_name(tree, [*outside, *below])
    for number, (key, share) in enumerate(queue.shares.items()):
        if (found := known.get(str(key))) is not None and found[1] != key:
            yield Problem(f"spec.resources[{number}]", _sentence(key, share, *found))
    others = _by_name(tree, outside)
    for name, (place, key, share) in _by_name(tree, below).items():
        if (found := others.get(name)) is not None and found[1] != key:
            yield Problem("spec.parent", f'Of queue "{place}": {_sentence(key, share, *found)}')


def _by_name(
    tree: QueueTree, places: Iterable[QueueName]
) -> dict[str, tuple[QueueName, ResourceKey, Share]]:
    queues = (queue for place in places if (queue := tree.get(place)) is not None)
    return {
        str(key): (queue.name, key, share)
        for queue in queues
        for key, share in queue.shares.items()
    }


def _sentence(
    key: ResourceKey, share: Share, place: QueueName, other: ResourceKey, others: Share
) -> str:
    return (
        f'Entry "{key!s}" counts {_counted(key, share)}, and that of queue "{place}", in the same'
        f" tree, counts {_counted(other, others)}. Give one of them another name."
    )


def _counted(key: ResourceKey, share: Share) -> str:
    return str(share.definition or f"devices of DeviceClass {key}")

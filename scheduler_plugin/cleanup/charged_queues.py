"""The finalizer of Queues: a Queue carries it while anything is charged to it.

    decision in flight ──► finalizer added ──► owner, binding ──► charged
    uncharged for 30 s, or uncharged and terminating ──► finalizer removed

Deleting a charged Queue would take its usage off its ancestors. So the finalizer is added before
the plugin begins a charge. Any other charge, such as an orphan's, adds the finalizer as soon as it
is observed. A finalizer without a charge (the process was killed in between) is removed by the
next look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import Queue, QueueName

IDLE_SECONDS = 30.0
"""How long an uncharged queue keeps the finalizer, since the next charge may follow soon."""


@dataclass(frozen=True, slots=True)
class FinalizerWrite:
    """A write that adds or removes the finalizer of a queue.

    Attributes:
        queue: The queue in the version that was judged; its UID is the precondition of the write.
        present: Whether the finalizer is added.
    """

    queue: Queue
    present: bool


def is_charged(name: QueueName, world: World) -> bool:
    """Whether anything is charged, or assumed to be charged, to a queue or its descendants."""
    return world.ledger.is_charged(name) or name in world.assumptions.usage


def without_finalizer(
    queues: Iterable[QueueName], world: World, releasing: Collection[QueueName] = ()
) -> tuple[Queue, ...]:
    """The charged queues among these and their ancestors that lack the finalizer, or may lack it.

    Args:
        queues: The queues to be charged.
        world: The current state.
        releasing: Queues whose finalizer is being removed, and may be gone already.
    """
    names = dict.fromkeys(place for name in queues for place in world.facts.tree.path(name))
    found = (world.facts.tree.get(name) for name in names if is_charged(name, world))
    return tuple(
        queue
        for queue in found
        if queue is not None and (not queue.has_finalizer or queue.name in releasing)
    )


class ChargedQueues:
    """Decides which finalizers to write, and when an idle queue loses its own.

    Moments are seconds of the monotonic clock.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._idle: dict[QueueName, float] = {}

    def look(self, name: QueueName, now: float) -> FinalizerWrite | None:
        """The write that a queue needs now; None if it needs none, or not yet."""
        queue = self._world.facts.tree.get(name)
        if queue is None:
            return None
        if is_charged(name, self._world):
            self._idle.pop(name, None)
            # The API server refuses new finalizers on a terminating object.
            stays = queue.has_finalizer or queue.is_deleting
            return None if stays else FinalizerWrite(queue, present=True)
        if not queue.has_finalizer:
            self._idle.pop(name, None)
            return None
        over_at = self._idle.setdefault(name, now + IDLE_SECONDS)
        return FinalizerWrite(queue, present=False) if queue.is_deleting or over_at <= now else None

    def forget_gone(self) -> None:
        """Forget queues that no longer exist."""
        tree = self._world.facts.tree
        self._idle = {name: moment for name, moment in self._idle.items() if name in tree}

    def next_moment(self) -> float | None:
        """When the next idle queue loses its finalizer; None if no queue is idle."""
        return min(self._idle.values(), default=None)

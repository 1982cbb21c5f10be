"""Queues that are charged, and must not go: each carries the finalizer while it is.

    about to be charged ──kept?──► finalizer added ──► owner, binding ──► charged
    charged for nothing, for a while, or on its way out ──► finalizer removed

A queue that went would relieve all above it of what is in use. So the finalizer is there before a
charge of the plugin's own begins; a charge that begins otherwise gets it as soon as it is seen.
One that came without a charge after all (killed in between) goes with the next look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.names import Queue, QueueName

REST_SECONDS = 30.0
"""How long a queue that is charged for nothing keeps the finalizer: the next charge may be near."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The finalizer of a queue is to be added, or removed.

    Attributes:
        queue: As it was judged; its UID is the precondition of the write.
    """

    queue: Queue
    kept: bool


def is_charged(name: QueueName, world: World) -> bool:
    """Whether anything is charged to a queue or below it, or is about to be."""
    return world.ledger.is_charged(name) or name in world.assumptions.usage


def unkept(
    queues: Iterable[QueueName], world: World, releasing: Collection[QueueName] = ()
) -> tuple[Queue, ...]:
    """Those, and those above them, that are charged or about to be, and could go nevertheless.

    Args:
        queues: The queues that are charged.
        world: What is known.
        releasing: Those whose finalizer is being removed, so that they may have lost it.
    """
    names = dict.fromkeys(place for name in queues for place in world.facts.tree.path(name))
    found = (world.facts.tree.get(name) for name in names if is_charged(name, world))
    return tuple(
        queue
        for queue in found
        if queue is not None and (not queue.is_kept or queue.name in releasing)
    )


class ChargedQueues:
    """What is to be done about the finalizers, and when those of idle queues are due to go.

    Moments are seconds of the monotonic clock.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._idle: dict[QueueName, float] = {}

    def look(self, name: QueueName, now: float) -> Keep | None:
        """What is to be written on a queue now; None for nothing, or not yet."""
        queue = self._world.facts.tree.get(name)
        if queue is None:
            return None
        if is_charged(name, self._world):
            self._idle.pop(name, None)
            # Nothing can be added to what is on its way out.
            stays = queue.is_kept or queue.is_deleting
            return None if stays else Keep(queue, kept=True)
        if not queue.is_kept:
            self._idle.pop(name, None)
            return None
        over_at = self._idle.setdefault(name, now + REST_SECONDS)
        return Keep(queue, kept=False) if queue.is_deleting or over_at <= now else None

    def forget_gone(self) -> None:
        """Forget what is known of queues that are gone."""
        tree = self._world.facts.tree
        self._idle = {name: moment for name, moment in self._idle.items() if name in tree}

    def next_moment(self) -> float | None:
        """When time alone makes something due; None for never."""
        return min(self._idle.values(), default=None)

"""The tree of queues: ancestors, descendants, and inherited settings.

A queue's *path* is the queue, its parent, and so on up to its root. Charges, ceilings and inherited
settings follow the path, so each of the two invalid trees needs one rule only:

- A parent that does not exist ends the path: the queue counts as a root, and a condition says so.
- In a cycle each member is on the path once. Every ceiling of the cycle holds for all members, so
  a cycle evades no ceiling.

A name without a Queue object has a path of its own, so that charges to a queue that is not known
yet, or was deleted, are not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import timedelta

from scheduler_plugin.accounting.queues.effective_sharing import EffectiveSharing
from scheduler_plugin.objects.amounts import LARGEST, ResourceKey
from scheduler_plugin.objects.devices.definitions import Definitions
from scheduler_plugin.objects.measures import is_class
from scheduler_plugin.objects.names import (
    ClaimSharing,
    Queue,
    QueueCondition,
    QueueName,
    Share,
    SharingPolicy,
)
from scheduler_plugin.objects.tables import Index, count, enter

_UNLISTED = Share()


class QueueTree:
    """All queues. Only `put` and `remove` change it."""

    def __init__(self) -> None:
        self._queues: dict[QueueName, Queue] = {}
        self._children: Index[QueueName, QueueName] = {}
        self.definitions = Definitions()
        self._listed: dict[ResourceKey, int] = {}
        self._misread: dict[QueueName, None] = {}
        self._paths: dict[QueueName, tuple[QueueName, ...]] = {}
        self._guaranteed: dict[tuple[QueueName, ResourceKey], int | None] = {}
        self._scales: dict[ResourceKey, int] = {}

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def __contains__(self, name: QueueName) -> bool:
        return name in self._queues

    def get(self, name: QueueName) -> Queue | None:
        return self._queues.get(name)

    def put(self, queue: Queue) -> None:
        """Add a queue, or replace the one of its name."""
        before = self._queues.get(queue.name)
        self._forget_amounts()
        if before is not None:
            self._link(before, -1)
        self._queues[queue.name] = queue
        self._link(queue, 1)
        if queue.misread:
            self._misread[queue.name] = None
        if before is None or before.parent != queue.parent:
            self._paths.clear()

    def remove(self, name: QueueName) -> None:
        before = self._queues.pop(name, None)
        if before is not None:
            self._link(before, -1)
            self._paths.clear()
            self._forget_amounts()

    def _forget_amounts(self) -> None:
        self._guaranteed.clear()
        self._scales.clear()

    def _link(self, queue: Queue, sign: int) -> None:
        self._misread.pop(queue.name, None)
        if queue.parent:
            enter(self._children, [queue.parent], queue.name, sign)
        for key, share in queue.shares.items():
            count(self._listed, key, sign)
            if share.definition is not None:
                self.definitions.add(share.definition, sign)

    def why_misread(self) -> str:
        """The first entry that this version does not understand, as a sentence; "" for none."""
        for name in self._misread:
            return (
                f'Queue "{name}" has an entry of another version: {self._queues[name].misread[0]}'
            )
        return ""

    def lists(self, key: ResourceKey) -> bool:
        """Whether any queue lists the resource."""
        return key in self._listed

    def path(self, name: QueueName) -> tuple[QueueName, ...]:
        """The queue first, then its ancestors up to the root."""
        if name not in self._queues:
            return (name,)  # Not cached: users may name any number of queues.
        path = self._paths.get(name)
        if path is None:
            path = self._paths[name] = tuple(self._walk(name))
        return path

    def _walk(self, name: QueueName) -> Iterator[QueueName]:
        yield name
        seen = {name}
        queue = self._queues.get(name)
        while queue and queue.parent in self._queues and queue.parent not in seen:
            seen.add(queue.parent)
            yield queue.parent
            queue = self._queues[queue.parent]

    def shown_keys(self, name: QueueName, keys: Collection[ResourceKey]) -> list[ResourceKey]:
        """The keys that mean something in a queue, sorted, and each name once.

        A device is charged by the entries of all trees that count it; those of another tree mean
        nothing here. Should two entries of one tree have a name, the nearest one is shown.
        """
        path = self.path(name)
        places = {key: self._place(path, key) for key in keys}
        if None in places.values():
            below = {key for queue in self._known(self.below(name)) for key in queue.shares}
            places |= {key: len(path) + 1 for key in below if places.get(key, 0) is None}
        found: dict[str, ResourceKey] = {}
        for _, key in sorted((place, key) for key, place in places.items() if place is not None):
            found.setdefault(str(key), key)
        return sorted(found.values())

    def _place(self, path: Sequence[QueueName], key: ResourceKey) -> int | None:
        """How far above the first queue of a path an entry of the key is; None if there is none.

        A class is counted everywhere, as an entry above all others.
        """
        listing = (n for n, place in enumerate(path) if self.share(place, key) is not None)
        return next(listing, len(path) if is_class(key) else None)

    def _known(self, names: Iterable[QueueName]) -> Iterator[Queue]:
        return (self._queues[name] for name in names if name in self._queues)

    def children(self, name: QueueName) -> tuple[QueueName, ...]:
        return tuple(sorted(self._children.get(name, ())))

    def below(self, name: QueueName) -> tuple[QueueName, ...]:
        """The queue and all its descendants, also for a name without a Queue."""
        found = {name: None}
        todo = [name]
        while todo:
            for child in self._children.get(todo.pop(), ()):
                if child not in found:
                    found[child] = None
                    todo.append(child)
        return tuple(found)

    def conditions(self, name: QueueName) -> tuple[tuple[QueueCondition, str], ...]:
        """The conditions about the queue's place in the tree, each with a message."""
        queue = self._queues.get(name)
        if queue is None or not queue.parent:
            return ()
        if queue.parent not in self._queues:
            message = f'Its parent "{queue.parent}" does not exist: the queue counts as a root.'
            return ((QueueCondition.PARENT_MISSING, message),)
        last = self._queues[self.path(name)[-1]]
        if last.parent not in self._queues:
            return ()
        cycle = " -> ".join(self.path(last.parent))
        message = f"{cycle} -> {last.parent} is a cycle: its ceilings hold for all that are in it."
        return ((QueueCondition.PARENT_CYCLE, message),)

    def share(self, name: QueueName, key: ResourceKey) -> Share | None:
        """The queue's share of a resource; None if the queue does not list it."""
        queue = self._queues.get(name)
        return queue.shares.get(key) if queue else None

    def checks(self, name: QueueName, key: ResourceKey) -> Iterator[tuple[QueueName, Share]]:
        """The ceilings that charges to a queue must respect, the nearest first.

        A queue that does not list a class has a quota of 0 and no limit. An ancestor that does not
        list it is not checked, and no queue is that does not list an entry of another kind.
        """
        for place in self.path(name):
            share = self.share(place, key)
            if share is not None or (place == name and is_class(key)):
                yield place, share or _UNLISTED

    def guaranteed(self, name: QueueName, key: ResourceKey) -> int | None:
        """The size of a queue's quota; None if it is unlimited and no ceiling is above it.

        An unlimited quota is as large as the next ceiling on the path. A queue that does not list
        the resource has the sum of its children's quotas.
        """
        if name not in self._queues:
            return self._find_guaranteed(name, key)
        if (name, key) not in self._guaranteed:
            self._guaranteed[name, key] = self._find_guaranteed(name, key)
        return self._guaranteed[name, key]

    def _find_guaranteed(self, name: QueueName, key: ResourceKey) -> int | None:
        found, todo, seen = 0, [name], {name}
        while todo:
            place = todo.pop()
            share = self.share(place, key)
            if share is None:
                todo += [child for child in self.children(place) if child not in seen]
                seen.update(todo)
            elif (quota := self._quota_at(place, key)) is None:
                return None
            else:
                found += quota
        return found

    def _quota_at(self, place: QueueName, key: ResourceKey) -> int | None:
        shares = (share for _, share in self.checks(place, key))
        ceilings = (ceiling.most for share in shares for ceiling in (share.quota, share.most))
        return next((most for most in ceilings if most is not None), None)

    def scale(self, key: ResourceKey) -> int:
        """The largest quota or limit of a resource in any queue.

        Parts of it are comparable, whatever is counted: devices, or bytes of their memory. A
        resource without any quota and limit is not scarce: its parts are the smallest.
        """
        if key not in self._scales:
            shares = (queue.shares[key] for queue in self if key in queue.shares)
            ceilings = (each.most for share in shares for each in (share.quota, share.limit))
            self._scales[key] = max((most for most in ceilings if most), default=LARGEST)
        return self._scales[key]

    def sharing(self, name: QueueName) -> EffectiveSharing:
        """The queue's sharing policy; each field is that of the nearest queue that sets it."""
        set_fields: dict[str, object] = {}
        for place in self.path(name):
            queue = self._queues.get(place)
            for field in ClaimSharing.__slots__ if queue else ():
                value = getattr(queue.sharing, field) if queue else None
                if value is not None:
                    set_fields.setdefault(field, value)
        return EffectiveSharing(**set_fields)  # type: ignore[arg-type]  # fields of the same types

    def preempt_min_runtime(self, name: QueueName) -> timedelta:
        """How long the queue's pods run before pods of higher priority may preempt them.

        As in KAI: the setting of the nearest queue on the path that has one, else 0.
        """
        return self._nearest(self.path(name), lambda queue: queue.preempt_min_runtime)

    def reclaim_min_runtime(self, name: QueueName, by: QueueName) -> timedelta:
        """How long the queue's pods run before another queue may reclaim their devices.

        As in KAI: it is the setting of this queue's ancestor (or itself) that is a child of the
        lowest common ancestor of both queues, else the nearest setting above. So for siblings the
        queue's own setting counts, for cousins that of its parent, and for queues of two trees that
        of its root.
        """
        path, other = self.path(name), {*self.path(by)}
        shared = sum(place in other for place in path)
        first = max(0, len(path) - shared - 1)
        return self._nearest(path[first:], lambda queue: queue.reclaim_min_runtime)

    def _nearest(
        self, path: Iterable[QueueName], setting: Callable[[Queue], timedelta | None]
    ) -> timedelta:
        """The setting of the first of these queues that has one; 0 if none has."""
        found = (self._queues.get(place) for place in path)
        said = (setting(queue) for queue in found if queue is not None)
        return next((time for time in said if time is not None), timedelta())

    def shares_with(self, owner: QueueName, other: QueueName) -> bool:
        """Whether pods of the other queue may use the owner's claims.

        A child is as foreign to its parent as any other queue.
        """
        if owner == other:
            return True
        sharing = self.sharing(owner)
        if sharing.policy is SharingPolicy.ALLOW:
            return True
        return not set(sharing.queues).isdisjoint(self.path(other))

"""Quotas of more devices than there are: what they guarantee cannot be had.

A quota is held against the uses that all published devices have together, and so are the quotas of
all queues of one level. Of Moorage's devices these are the capacities of a Configuration's
Instances, which stay for a while when their devices go away. How often a device of another driver
may be allocated is not known: of those it is told only that there is none.

Devices come and go, and are found one after the other: an excess counts once it has lasted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kube.words import some_of
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.names import NO_QUEUE, Queue, QueueName
from scheduler_plugin.objects.steps import Steps, at_once

LASTING_SECONDS = 300.0
"""How long there are too few devices before it is told."""

QUEUES_NAMED = 3
"""How many queues of a level a sentence names."""

_Found = Mapping[tuple[QueueName, ResourceKey], str]


@dataclass(frozen=True, slots=True)
class Excess:
    """What of a queue's quotas is more than there is.

    Attributes:
        lasting: The sentences about what has lasted for long; "" for none.
        now: All sentences, those of a moment ago included.
    """

    lasting: str
    now: str


class QuotaExcess:
    """What is found whenever somebody looks. Moments are seconds of the monotonic clock."""

    def __init__(self, world: WorldView) -> None:
        self._facts = world.facts
        self._since: dict[tuple[QueueName, ResourceKey], float] = {}
        self._found: dict[QueueName, Excess] = {}

    def of(self, queue: QueueName) -> Excess | None:
        """What was found about a queue; None for nothing."""
        return self._found.get(queue)

    def look(self, now: float) -> set[QueueName]:
        """Look at all queues; returns those about which something else is found than before."""
        return at_once(self.steps(now))

    def steps(self, now: float) -> Steps[set[QueueName]]:
        """The same in small steps: what changes between them is found at the next look."""
        found: dict[tuple[QueueName, ResourceKey], str] = {}
        for each in _excesses(self._facts.tree, self._facts.catalog):
            if each is None:
                yield
            else:
                found[each[0]] = each[1]
        self._since = {about: self._since.get(about, now) for about in found}
        before, self._found = self._found, self._by_queue(found, now)
        names = {*before, *self._found}
        return {name for name in names if before.get(name) != self._found.get(name)}

    def _by_queue(self, found: _Found, now: float) -> dict[QueueName, Excess]:
        sentences: dict[QueueName, list[tuple[str, bool]]] = defaultdict(list)
        for about, sentence in sorted(found.items()):
            lasts = now - self._since[about] >= LASTING_SECONDS
            sentences[about[0]].append((sentence, lasts))
        return {
            queue: Excess(
                lasting=" ".join(sentence for sentence, lasts in all_of_it if lasts),
                now=" ".join(sentence for sentence, _ in all_of_it),
            )
            for queue, all_of_it in sentences.items()
        }


def uses_by_configuration(catalog: Catalog) -> Mapping[ResourceKey, int]:
    """How many uses the devices of each Configuration have at one time; none of most names."""
    found: defaultdict[ResourceKey, int] = defaultdict(int)
    for instance in catalog.instances():
        found[instance.configuration] += instance.capacity
    return found


def _excesses(
    tree: QueueTree, catalog: Catalog
) -> Iterator[tuple[tuple[QueueName, ResourceKey], str] | None]:
    """What is too much, and None before each level and class."""
    uses = uses_by_configuration(catalog)
    parents = {queue.parent for queue in tree}
    for level in _levels(tree):
        for key, listing in _listing(level).items():
            yield None
            # One that does not list a class has what those below it have.
            above = [q for q in level if q.name in parents and key not in q.shares]
            there = _published(key, catalog, uses)
            if there is not None:
                yield from _excesses_of([*listing, *above], key, there, tree)


def _listing(level: Sequence[Queue]) -> Mapping[ResourceKey, list[Queue]]:
    """The queues of a level that list each class."""
    found: defaultdict[ResourceKey, list[Queue]] = defaultdict(list)
    for queue in level:
        for key in queue.shares:
            found[key].append(queue)
    return found


def _levels(tree: QueueTree) -> list[list[Queue]]:
    """The queues that stand side by side: those without a parent, and the children of each."""
    found: defaultdict[QueueName, list[Queue]] = defaultdict(list)
    for queue in tree:
        found[queue.parent if queue.parent in tree else NO_QUEUE].append(queue)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Published:
    """The uses that there are, and how it is said."""

    uses: int
    words: str


def _published(
    key: ResourceKey, catalog: Catalog, uses: Mapping[ResourceKey, int]
) -> _Published | None:
    """What there is of a class; None where it is not known."""
    view = catalog.class_named(ClassName(key))
    if catalog.has_configuration(key):
        there = uses.get(key, 0)
        said = f"the published devices have {there} uses in all"
        return _Published(there, said if there else f"no device of {key} is published")
    if view is None:
        return _Published(0, f'there is no DeviceClass or Configuration "{key}"')
    if view.drivers and not view.may_be_ours and not catalog.devices(view.name):
        return _Published(0, f"no device of driver {view.drivers[0]} is published")
    return None


def _excesses_of(
    level: list[Queue], key: ResourceKey, there: _Published, tree: QueueTree
) -> Iterator[tuple[tuple[QueueName, ResourceKey], str]]:
    given = {queue.name: _quota(queue, key, tree) for queue in level}
    total, names = sum(given.values()), sorted(name for name, quota in given.items() if quota)
    for queue in level:
        own = given[queue.name] if key in queue.shares else 0
        if own > there.uses:
            yield (queue.name, key), f"Its quota of {key} is {own}, and {there.words}."
        elif own and total > there.uses:
            said = f"The quotas of {key} of queues {_listed(names)} are {total} in all"
            yield (queue.name, key), f"{said}, and {there.words}."


def _quota(queue: Queue, key: ResourceKey, tree: QueueTree) -> int:
    """What is guaranteed to a queue; 0 where that is all that there is, however little."""
    share = queue.shares.get(key)
    return (tree.guaranteed(queue.name, key) if share is None else share.quota.most) or 0


def _listed(names: Sequence[str]) -> str:
    return some_of((f'"{name}"' for name in names), QUEUES_NAMED)

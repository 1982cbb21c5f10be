"""Quotas that exceed the published devices, so that they cannot be met.

A quota, and the sum of the quotas of one level, is compared with the uses of all published devices.
For Moorage's devices these are the capacities of a Configuration's Instances, which stay for a
while when their devices disappear. How often a device of another driver may be allocated is not
known: there, only the absence of all devices is reported.

Devices are plugged in and discovered one by one, so an excess is reported once it has lasted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver.api import DRIVER_NAME
from kube.words import some_of
from scheduler_plugin.accounting.queues.queues import QueueTree
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.catalog import Catalog
from scheduler_plugin.objects.measures import Definition, amount_text
from scheduler_plugin.objects.names import NO_QUEUE, Queue, QueueName
from scheduler_plugin.objects.steps import Steps, run_to_end

LASTING_SECONDS = 300.0
"""How long there are too few devices before it is reported."""

QUEUES_NAMED = 3
"""The maximum number of queues that a sentence names."""

_Found = Mapping[tuple[QueueName, ResourceKey], str]


@dataclass(frozen=True, slots=True)
class Excess:
    """How a queue's quotas exceed the devices.

    Attributes:
        lasting: Sentences about each excess that has lasted; "" for none.
        now: Sentences about each excess, new ones included.
    """

    lasting: str
    now: str


class QuotaExcess:
    """The excesses found by the last look. Moments are seconds of the monotonic clock."""

    def __init__(self, world: WorldView) -> None:
        self._facts = world.facts
        self._since: dict[tuple[QueueName, ResourceKey], float] = {}
        self._found: dict[QueueName, Excess] = {}

    def of(self, queue: QueueName) -> Excess | None:
        """The excess of a queue's quotas; None for none."""
        return self._found.get(queue)

    def look(self, now: float) -> set[QueueName]:
        """Look at all queues; returns those whose result changed."""
        return run_to_end(self.steps(now))

    def steps(self, now: float) -> Steps[set[QueueName]]:
        """`look` in steps. Changes between the steps are found by the next look."""
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
    """How many concurrent uses the devices of each Configuration have; 0 for any other name."""
    found: defaultdict[ResourceKey, int] = defaultdict(int)
    for instance in catalog.instances():
        found[instance.configuration] += instance.capacity
    return found


def _excesses(
    tree: QueueTree, catalog: Catalog
) -> Iterator[tuple[tuple[QueueName, ResourceKey], str] | None]:
    """Each excess; None before each level and class, where the caller may yield."""
    uses = uses_by_configuration(catalog)
    parents = {queue.parent for queue in tree}
    for level in _levels(tree):
        for key, listing in _listing(level).items():
            yield None
            # A queue that does not list a class has the sum of its children's quotas.
            above = [q for q in level if q.name in parents and key not in q.shares]
            definition = listing[0].shares[key].definition
            there = (
                _published(key, catalog, uses)
                if definition is None
                else _published_to(definition, catalog)
            )
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
    """The queues by level: the roots, and the children of each queue."""
    found: defaultdict[QueueName, list[Queue]] = defaultdict(list)
    for queue in tree:
        found[queue.parent if queue.parent in tree else NO_QUEUE].append(queue)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Published:
    """The number of published uses, and the words for it."""

    uses: int
    words: str


def _published(
    key: ResourceKey, catalog: Catalog, uses: Mapping[ResourceKey, int]
) -> _Published | None:
    """The published uses of a class; None if they are not known."""
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


def _published_to(definition: Definition, catalog: Catalog) -> _Published | None:
    """Nothing, if no device that an entry counts is published; else None.

    How much all devices have of a measure is not known: partitions of one device overlap.
    """
    if definition.device_class:
        key = ResourceKey(definition.device_class)
        return None if catalog.has_configuration(key) else _published(key, catalog, {})
    if definition.driver == DRIVER_NAME or any(catalog.device_table.kinds(definition.driver)):
        return None
    return _Published(0, f"no device of driver {definition.driver} is published")


def _excesses_of(
    level: list[Queue], key: ResourceKey, there: _Published, tree: QueueTree
) -> Iterator[tuple[tuple[QueueName, ResourceKey], str]]:
    given = {queue.name: _quota(queue, key, tree) for queue in level}
    total, names = sum(given.values()), sorted(name for name, quota in given.items() if quota)
    for queue in level:
        own = given[queue.name] if key in queue.shares else 0
        if own > there.uses:
            said = f"Its quota of {key} is {amount_text(key, own)}"
            yield (queue.name, key), f"{said}, and {there.words}."
        elif own and total > there.uses:
            sum_of_all = f"{amount_text(key, total)} in all"
            said = f"The quotas of {key} of queues {_listed(names)} are {sum_of_all}"
            yield (queue.name, key), f"{said}, and {there.words}."


def _quota(queue: Queue, key: ResourceKey, tree: QueueTree) -> int:
    """The size of a queue's quota; 0 for an unlimited quota."""
    share = queue.shares.get(key)
    return (tree.guaranteed(queue.name, key) if share is None else share.quota.most) or 0


def _listed(names: Sequence[str]) -> str:
    return some_of((f'"{name}"' for name in names), QUEUES_NAMED)

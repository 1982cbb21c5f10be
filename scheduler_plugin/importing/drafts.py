"""Queues before they are written: named after objects of others, with amounts in thousandths.

Names of several kinds become names of one kind here, and of at most 63 characters. Parents that
form a cycle are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from kube.kinds import QUEUES
from kube.shapes.quantities import PER_UNIT, quantity_text
from scheduler_plugin.importing.findings import Finding
from scheduler_plugin.importing.foreign import UNLIMITED
from scheduler_plugin.models import LONGEST_NAME
from scheduler_plugin.objects.measures import Definition
from scheduler_plugin.share_models import LARGEST

MOST = LARGEST * PER_UNIT
DIGITS = 8


class Key(NamedTuple):
    """An object that becomes a Queue."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a Queue; amounts are in thousandths, and -1 is unlimited."""

    definition: Definition
    quota: int
    limit: int
    weight: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A Queue.

    Attributes:
        key: The object that it is made of.
        parent: The object that its parent is made of.
        fields: Fields of the spec that are written as they are.
    """

    key: Key
    parent: Key | None = None
    fields: Mapping[str, Any]
    entries: tuple[Entry, ...] = ()


def queue_names(keys: Iterable[Key]) -> dict[Key, str]:
    """A name for each Queue: the object's own, unless it is too long or taken."""
    names: dict[Key, str] = {}
    taken: set[str] = set()
    for key in dict.fromkeys(keys):
        name = _short(key.name)
        if name in taken:
            name = _short(f"{key.kind.lower()}-{key.name}")
        while name in taken:
            name = _digested(f"{key}/{name}", name)
        taken.add(name)
        names[key] = name
    return names


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else _digested(name, name)


def _digested(whole: str, name: str) -> str:
    digest = sha256(whole.encode()).hexdigest()[:DIGITS]
    return f"{name[: LONGEST_NAME - DIGITS - 1].rstrip('-.')}-{digest}"


def renamed(names: Mapping[Key, str]) -> Iterator[Finding]:
    """A finding for each Queue that has another name than its object."""
    for key, name in names.items():
        if name != key.name:
            sentence = f'The Queue is named "{name}": names of Queues are unique, and short.'
            yield Finding(str(key), ("metadata.name",), sentence)


def in_cycles(parents: Mapping[Key, Key]) -> Set[Key]:
    """The objects whose parents lead back to them."""
    done: set[Key] = set()
    found: set[Key] = set()
    for start in parents:
        path: dict[Key, None] = {}
        at: Key | None = start
        while at is not None and at not in done and at not in path:
            path[at] = None
            at = parents.get(at)
        if at is not None and at in path:
            steps = list(path)
            found.update(steps[steps.index(at) :])
        done.update(path)
    return found


def ordered(drafts: Iterable[Draft]) -> list[Draft]:
    """Parents before their children, else by name."""
    known = {draft.key: draft for draft in drafts}
    children: dict[Key | None, list[Draft]] = {}
    for draft in sorted(known.values(), key=lambda each: (each.key.name, each.key.kind)):
        children.setdefault(draft.parent if draft.parent in known else None, []).append(draft)
    found: list[Draft] = []
    level = children.get(None, [])
    while level:
        found += level
        level = [child for draft in level for child in children.get(draft.key, ())]
    return found


def body(draft: Draft, names: Mapping[Key, str]) -> dict[str, Any]:
    """The Queue as an object."""
    spec: dict[str, Any] = {"parent": names[draft.parent]} if draft.parent else {}
    spec |= {field: value for field, value in draft.fields.items() if value is not None}
    if draft.entries:
        spec["resources"] = [entry_body(each) for each in draft.entries]
    return {
        "apiVersion": f"{QUEUES.group}/{QUEUES.version}",
        "kind": "Queue",
        "metadata": {"name": names[draft.key]},
        "spec": spec,
    }


def entry_body(entry: Entry) -> dict[str, Any]:
    """An entry of `spec.resources`."""
    found: dict[str, Any] = {}
    definition = entry.definition
    if not definition.is_class:
        found["name"] = definition.name
    if definition.device_class:
        found["deviceClass"] = definition.device_class
    if definition.driver:
        found["driver"] = definition.driver
    if definition.selector:
        found["selector"] = definition.selector
    found |= _measure(definition)
    found["quota"] = _written(definition, min(entry.quota, MOST))
    found["limit"] = _written(definition, UNLIMITED if entry.limit > MOST else entry.limit)
    if entry.weight is not None:
        found["overQuotaWeight"] = entry.weight
    return found


def _measure(definition: Definition) -> dict[str, Any]:
    measure = definition.measure
    if measure.capacity:
        return {"measure": {"capacity": measure.capacity}}
    if measure.counter:
        return {"measure": {"counter": {"set": measure.counter_set, "name": measure.counter}}}
    return {}


def _written(definition: Definition, thousandths: int) -> int | str:
    """Whole devices, rounded down as no part of one is used; or a quantity of a measure."""
    if thousandths == UNLIMITED:
        return UNLIMITED
    if definition.measure.is_of_devices:
        return thousandths // PER_UNIT
    return quantity_text(thousandths)

"""Queues as a tree, and what they say: who may use them, what they have, whom they share with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.chaos.entries import Entry, name_of
from tests.chaos.objects import Object
from tests.chaos.quantities import amount

NONE = -1
"""No limit, or a quota that ends where the limit does."""


@dataclass(frozen=True)
class Tree:
    """All Queues at one moment, by name."""

    queues: Mapping[str, Object]

    def path(self, name: str) -> list[str]:
        """A queue and its ancestors; a parent that does not exist ends it."""
        found: list[str] = []
        while name in self.queues and name not in found:
            found.append(name)
            name = self._spec(name).get("parent") or ""
        return found

    def ceiling(self, name: str, resource: str) -> float:
        """The most that may be charged to a queue."""
        entry = self._entry(name, resource)
        if entry is None:
            return math.inf
        limit = _amount(entry.get("limit", NONE))
        return (
            min(limit, self.quota(name, resource)) if entry.get("overQuotaWeight") == 0 else limit
        )

    def quota(self, name: str, resource: str) -> float:
        """What is guaranteed to a queue, and the most that its non-preemptible pods may use.

        A queue that does not list a class has none of it, and one above the lister checks none.
        What is no class has no ceiling where it is not listed.
        """
        entry = self._entry(name, resource)
        if entry is None:
            return math.inf if self.is_measured(resource) else 0
        quota = entry.get("quota", 0)
        return _amount(entry.get("limit", NONE) if quota == NONE else quota)

    def lists(self, name: str, resource: str) -> bool:
        return self._entry(name, resource) is not None

    def shares(self, owner: str, other: str) -> bool:
        """Whether pods of another queue may use what a queue owns."""
        if owner == other or self._inherited(owner, "policy", "Allow") == "Allow":
            return True
        return bool({*self._inherited(owner, "queues", [])} & {*self.path(other)})

    def admits(self, name: str, namespace: Object) -> bool:
        """Whether pods and claims of a namespace may use a queue."""
        selector = self._spec(name).get("namespaceSelector") if name in self.queues else None
        if selector is None:
            return False
        labels = namespace["metadata"].get("labels") or {}
        wanted = selector.get("matchLabels") or {}
        return all(labels.get(word) == value for word, value in wanted.items()) and all(
            _meets(labels, requirement) for requirement in selector.get("matchExpressions") or ()
        )

    def entries(self, names: Iterable[str] | None = None) -> set[Entry]:
        """What queues list: all of them, or some."""
        found = self.queues if names is None else names
        return {
            Entry.of(body) for name in found for body in self._spec(name).get("resources") or ()
        }

    def is_measured(self, resource: str) -> bool:
        """Whether it is more than a class, to some queue."""
        return any(each.name == resource and not each.is_class for each in self.entries())

    def shows(self, name: str, resource: str) -> bool:
        """Whether a queue's status tells of it: of what is no class, if it is of its tree."""
        family = {*self.path(name), *(each for each in self.queues if name in self.path(each))}
        return not self.is_measured(resource) or any(self.lists(each, resource) for each in family)

    def _inherited(self, name: str, field: str, default: Any) -> Any:
        for each in self.path(name):
            sharing = self._spec(each).get("claimSharing") or {}
            if field in sharing:
                return sharing[field]
        return default

    def _entry(self, name: str, resource: str) -> Object | None:
        entries = self._spec(name).get("resources") or ()
        return next((e for e in entries if name_of(e) == resource), None)

    def _spec(self, name: str) -> Object:
        spec: Object = self.queues[name].get("spec") or {}
        return spec


def _amount(told: int | str) -> float:
    number = amount(told)
    return math.inf if number == NONE else number


def _meets(labels: Mapping[str, str], requirement: Object) -> bool:
    value, values = labels.get(requirement["key"]), requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None

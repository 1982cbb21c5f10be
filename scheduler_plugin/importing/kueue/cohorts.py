"""The tree of ClusterQueues and Cohorts, with its quotas added up.

A cohort has what its members bring in, and quotas of its own beside them. It lends no more, so that
sum is its quota, and its limit: at a root exactly, and below with what it may borrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler_plugin.importing.drafts import Entry, Key, in_cycles
from scheduler_plugin.importing.foreign import UNLIMITED
from scheduler_plugin.importing.kueue.quotas import Quota
from scheduler_plugin.importing.weights import WeightScale
from scheduler_plugin.objects.measures import Definition

CLUSTER_QUEUE, COHORT = "ClusterQueue", "Cohort"


@dataclass(frozen=True, slots=True)
class Tree:
    """Who is below whom.

    Attributes:
        parents: Without those of a cycle.
        cut: The objects that form cycles.
        quotas: Each object's own quotas.
    """

    parents: Mapping[Key, Key]
    cut: frozenset[Key]
    quotas: Mapping[Key, Mapping[Definition, Quota]] = field(default_factory=dict)

    def members(self) -> list[Key]:
        """All objects, and the cohorts that are only names."""
        return list(dict.fromkeys((*self.quotas, *self.parents, *self.parents.values())))

    def from_roots(self) -> list[Key]:
        """All objects, each after its parent."""
        children: dict[Key | None, list[Key]] = {}
        for key in self.members():
            children.setdefault(self.parents.get(key), []).append(key)
        found = list(children.get(None, ()))
        for key in found:  # It grows meanwhile.
            found += children.get(key, ())
        return found

    def sums(self) -> Mapping[Key, Mapping[Definition, int]]:
        """The nominal quotas of each object and of all below it."""
        found: dict[Key, dict[Definition, int]] = {
            key: {each: quota.nominal for each, quota in quotas.items()}
            for key, quotas in self.quotas.items()
        }
        for key in reversed(self.from_roots()):
            if (parent := self.parents.get(key)) is not None:
                above = found.setdefault(parent, {})
                for definition, total in found.get(key, {}).items():
                    above[definition] = above.get(definition, 0) + total
        return found


def tree_of(parents: Iterable[tuple[Key, str]]) -> Tree:
    """The tree.

    Args:
        parents: Each object, and the name of its cohort; "" for a root.
    """
    given = {key: Key(COHORT, name) for key, name in parents if name}
    cut = frozenset(in_cycles(given))
    return Tree({key: parent for key, parent in given.items() if key not in cut}, cut)


def entries_of(
    tree: Tree, weights: Mapping[Key, int], scale: WeightScale, blocked: Iterable[Definition]
) -> Mapping[Key, tuple[Entry, ...]]:
    """The entries of each Queue; weights are in thousandths, of objects that have one.

    A ClusterQueue admits nothing of what is blocked, unless it covers it.
    """
    sums = tree.sums()
    unless_covered = dict.fromkeys(blocked)
    entries: dict[Key, tuple[Entry, ...]] = {}
    for key in tree.members():
        weight = scale.written(weights.get(key))
        found = [
            Entry(definition, total, _limit(tree, key, definition, total), weight)
            for definition, total in sums.get(key, {}).items()
        ]
        if key.kind == CLUSTER_QUEUE:
            others = (each for each in unless_covered if each not in sums.get(key, {}))
            found += (Entry(each, 0, 0) for each in others)
        entries[key] = tuple(found)
    return entries


def _limit(tree: Tree, key: Key, definition: Definition, total: int) -> int:
    """The sum and what may be borrowed; without a limit of that the ancestors' limits count."""
    if key not in tree.parents:
        return total
    quota = tree.quotas.get(key, {}).get(definition, Quota())
    return UNLIMITED if quota.borrowing is None else total + quota.borrowing

"""Names of claims and pods in sentences, as far as the viewer may read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kube.words import number_of, some_of

NAMED = 3
"""The maximum number of names."""

MayName: TypeAlias = Callable[[str], bool]
"""Whether objects of a namespace may be named; nodes have the namespace ""."""


def anyone(_: str) -> bool:
    """For a viewer that reads the cluster with its own rights."""
    return True


def named(holders: Sequence[tuple[str, str]], may_name: MayName) -> str:
    """The first holders that may be named, and the number of the others.

    Args:
        holders: Namespace and text of each.
        may_name: Whether the viewer may read a namespace.
    """
    named_here = [what for namespace, what in holders if not namespace or may_name(namespace)]
    hidden = len(holders) - len(named_here)
    parts = [some_of(named_here, NAMED)] if named_here else []
    if hidden:
        parts.append(f"{number_of(hidden, 'claim or pod')} in other namespaces")
    return " and ".join(parts)

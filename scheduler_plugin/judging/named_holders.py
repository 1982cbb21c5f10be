"""Names of what holds something, as far as the viewer may know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kube.words import number_of, some_of

NAMED = 3
"""How many are named."""

MayName: TypeAlias = Callable[[str], bool]
"""Whether what is in a namespace may be named; a node has none, which is ""."""


def anyone(_: str) -> bool:
    """For a viewer that reads the cluster with its own rights."""
    return True


def named(holders: Sequence[tuple[str, str]], may_name: MayName) -> str:
    """The first of them, and how many more there are; each with its namespace."""
    told = [what for namespace, what in holders if not namespace or may_name(namespace)]
    hidden = len(holders) - len(told)
    parts = [some_of(told, NAMED)] if told else []
    if hidden:
        parts.append(f"{number_of(hidden, 'claim or pod')} in other namespaces")
    return " and ".join(parts)

"""Where room was held in vain: what is not modelled kept the pod from it.

Of pods that are alike none has anything evicted on such a node for a while: so what is not looked
at costs one eviction for each kind of pods and each node, and not one in every minute.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from datetime import datetime, timedelta

LEFT_OUT = timedelta(minutes=10)
"""How long."""


class MissedNodes:
    """By the equivalence class of pods, the nodes that are left out, each until when."""

    def __init__(self) -> None:
        self._until: dict[Hashable, dict[str, datetime]] = {}

    def __len__(self) -> int:
        return len(self._until)

    def miss(self, kind: Hashable, node: str, now: datetime) -> Mapping[str, datetime]:
        """Room on a node was held for such a pod in vain; returns all that are left out now."""
        self.note(kind, node, now + LEFT_OUT)
        return {name: self._until[kind][name] for name in self.of(kind, now)}

    def note(self, kind: Hashable, node: str, until: datetime) -> None:
        """The same, as somebody said it before."""
        nodes = self._until.setdefault(kind, {})
        nodes[node] = max(until, nodes.get(node, until))

    def of(self, kind: Hashable, now: datetime) -> Collection[str]:
        """The nodes that are left out for pods of this class.

        A clock that was set back leaves none out for longer than once more the time.
        """
        nodes = self._until.get(kind, {})
        return tuple(n for n, until in nodes.items() if now < until <= now + LEFT_OUT)

    def forget_old(self, now: datetime) -> None:
        """Drop what is over."""
        for kind in list(self._until):
            if not self.of(kind, now):
                del self._until[kind]

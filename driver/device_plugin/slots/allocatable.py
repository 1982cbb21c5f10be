"""Allocatable resources of a Node, from the lists that its kubelet was sent.

The kubelet counts the healthy devices of the last list, and writes the number with its next status,
every 10 s. Until then kube-scheduler binds pods for devices that are gone, which then fail, and
binds none for new devices. The driver knows what the kubelet will write.

    healthy devices of the last list on an open stream ──due──► Node ──► said
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Allocatable:
    """The numbers that the kubelet was sent, and the numbers that the Node has."""

    def __init__(self) -> None:
        self._watched: set[str] = set()
        self._sent: dict[str, int] = {}
        self._written: dict[str, int] = {}

    def open(self, resource: str) -> None:
        """Note that the kubelet watches a list again; its earlier number is void."""
        self._watched.add(resource)
        self.invalidate(resource)

    def note_sent(self, resource: str, healthy: int) -> None:
        """Note that a list with this number of healthy devices was sent to the kubelet."""
        self._sent[resource] = healthy

    def close(self, resource: str) -> None:
        """Note that the kubelet ceased to watch. Only an empty list is still valid then."""
        self._watched.discard(resource)
        self.invalidate(resource)
        if self._sent.get(resource):
            del self._sent[resource]

    def invalidate(self, resource: str) -> None:
        """Note that the Node may have another number, so that it is written again."""
        self._written.pop(resource, None)

    def due(self) -> Mapping[str, int]:
        """The numbers that the Node does not have yet."""
        return {name: n for name, n in self._sent.items() if self._written.get(name) != n}

    def is_due(self, resource: str) -> bool:
        """Whether the Node does not have the number of this resource yet."""
        return resource in self._sent and self._written.get(resource) != self._sent[resource]

    def note_written(self, amounts: Mapping[str, int]) -> None:
        """Note that the Node has these numbers now, or that the kubelet will write them."""
        self._written |= amounts
        for name in amounts.keys() - self._watched:
            if self._sent.get(name) == self._written.pop(name):
                del self._sent[name]

    def is_pending(self, resource: str, healthy: int) -> bool:
        """Whether the kubelet watches the list and the Node does not have this number yet."""
        return resource in self._watched and self._written.get(resource) != healthy


def status_patch(amounts: Mapping[str, int]) -> dict[str, Any]:
    """A merge patch of a Node's status."""
    return {"status": {"allocatable": {name: str(n) for name, n in sorted(amounts.items())}}}

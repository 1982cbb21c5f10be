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
        self._told: dict[str, int] = {}
        self._said: dict[str, int] = {}

    def open(self, resource: str) -> None:
        """Note that the kubelet watches a list again; its earlier number is void."""
        self._watched.add(resource)
        self.doubt(resource)

    def tell(self, resource: str, healthy: int) -> None:
        """Note that a list with this number of healthy devices was sent to the kubelet."""
        self._told[resource] = healthy

    def close(self, resource: str) -> None:
        """Note that the kubelet ceased to watch. Only an empty list is still valid then."""
        self._watched.discard(resource)
        self.doubt(resource)
        if self._told.get(resource):
            del self._told[resource]

    def doubt(self, resource: str) -> None:
        """Note that the Node may have another number, so that it is written again."""
        self._said.pop(resource, None)

    def due(self) -> Mapping[str, int]:
        """The numbers that the Node does not have yet."""
        return {name: n for name, n in self._told.items() if self._said.get(name) != n}

    def owes(self, resource: str) -> bool:
        """Whether the Node does not have the number of this resource yet."""
        return resource in self._told and self._said.get(resource) != self._told[resource]

    def say(self, amounts: Mapping[str, int]) -> None:
        """Note that the Node has these numbers now, or that the kubelet will write them."""
        self._said |= amounts
        for name in amounts.keys() - self._watched:
            if self._told.get(name) == self._said.pop(name):
                del self._told[name]

    def lacks(self, resource: str, healthy: int) -> bool:
        """Whether the kubelet watches the list and the Node does not have this number yet."""
        return resource in self._watched and self._said.get(resource) != healthy


def status_patch(amounts: Mapping[str, int]) -> dict[str, Any]:
    """A merge patch of a Node's status."""
    return {"status": {"allocatable": {name: str(n) for name, n in sorted(amounts.items())}}}

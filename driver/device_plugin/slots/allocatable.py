"""What a Node offers of the resources of device plugins, from the lists that its kubelet was sent.

The kubelet counts the healthy devices of the last list that it read, and writes that down with its
next status, every 10 s. Until then kube-scheduler sends pods for devices that are gone, each of
which ends Failed, and none for those that came. What the kubelet will write is known here already.

    healthy devices of the last list on a stream that is open ──due──► Node ──► said
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Allocatable:
    """What the kubelet has been told, and what of that the Node says."""

    def __init__(self) -> None:
        self._watched: set[str] = set()
        self._told: dict[str, int] = {}
        self._said: dict[str, int] = {}

    def open(self, resource: str) -> None:
        """The kubelet watches a list anew; what it counted before says nothing."""
        self._watched.add(resource)
        self.doubt(resource)

    def tell(self, resource: str, healthy: int) -> None:
        """A list with so many healthy devices was sent to it."""
        self._told[resource] = healthy

    def close(self, resource: str) -> None:
        """It watches no more. Nothing is known then, but that it gives nothing of an empty list."""
        self._watched.discard(resource)
        self.doubt(resource)
        if self._told.get(resource):
            del self._told[resource]

    def doubt(self, resource: str) -> None:
        """The Node may say something else, so that it is to be said again."""
        self._said.pop(resource, None)

    def due(self) -> Mapping[str, int]:
        """What the Node does not say yet."""
        return {name: n for name, n in self._told.items() if self._said.get(name) != n}

    def owes(self, resource: str) -> bool:
        """Whether the Node does not say yet what was told of this one."""
        return resource in self._told and self._said.get(resource) != self._told[resource]

    def say(self, amounts: Mapping[str, int]) -> None:
        """The Node says this now, or the kubelet may say it."""
        self._said |= amounts
        for name in amounts.keys() - self._watched:
            if self._told.get(name) == self._said.pop(name):
                del self._told[name]

    def lacks(self, resource: str, healthy: int) -> bool:
        """Whether the Node is yet to say this of a list that the kubelet watches."""
        return resource in self._watched and self._said.get(resource) != healthy


def status_patch(amounts: Mapping[str, int]) -> dict[str, Any]:
    """A merge patch of a Node's status."""
    return {"status": {"allocatable": {name: str(n) for name, n in sorted(amounts.items())}}}
